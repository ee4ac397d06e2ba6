"""The eager scheduling report's queue on a GPU of little memory: 2MM and 2DCONV with Eager Free, Eager Launch, both and neither."""

import functools
import os

import eager
from exhibit import Claim, Reproduction
from gpu.cells import Cell, Plan
from simulation import Failed

MEMORY = {"gpu": "1G", "rehearsal": eager.MEMORY}
# As on software devices, with 32 times the memory: 2MM has 0.36 of the device's in five matrices, of which D, the last, has a
# third, and a quarter of an H100's warps; 2DCONV two images of a quarter each.
ON_GPU = eager.Scale({
    "2MM": ["mm2", "--rows", "5888", "--inner", "2944", "--columns", "5888", "--blocks", "264", "--iterations", "4", "--check", "sample"],
    "2DCONV": ["conv2d", "--width", "8192", "--height", "8192", "--iterations", "300", "--check", "sample"],
}, apart=0.25)
REHEARSED = eager.Scale(eager.PROGRAMS, apart=0.1)
SCALES = {"gpu": ON_GPU, "rehearsal": REHEARSED}
QUEUES = {"gpu": {"mixed": eager.MIXED, "2MM alone": eager.PRODUCTS}, "rehearsal": {"mixed": eager.MIXED[:3], "2MM alone": eager.PRODUCTS[:3]}}
LIMIT = 60  # seconds of a queue


def settled(machine):
    scale, queues = SCALES[machine.kind], QUEUES[machine.kind]
    return [
        f"The report names neither GPU nor sizes nor arrivals. Here: one device of {MEMORY[machine.kind]}, for which contexts are not charged, and "
        f"{len(queues['mixed'])} jobs that arrive {scale.apart:g} s apart, in the order of the table: "
        + "; ".join(f"{kind}: `{' '.join(command)}`" for kind, command in scale.programs.items())
        + f". Each checks a sample of its result. A second queue of ours has {len(queues['2MM alone'])} jobs, 2MM alone.",
        "CASE is mgb-warps (Alg. 3). Programs are compiled by `heddle cc`" + (
            "" if has_compiled(machine) else ", but here by nvcc, as there were none of these: so without Eager Free")
        + "; early frees are switched by HEDDLE_EAGER_FREE, Eager Launch by heddled's `eager_launch`.",
        *eager.SETTLED[2:],
    ]


def compiled(machine, name):
    return os.path.join(machine.compiled or "", f"{name}_heddle")


def has_compiled(machine):
    return bool(machine.compiled) and all(os.access(compiled(machine, command[0]), os.X_OK) for command in SCALES[machine.kind].programs.values())


def path_of(machine, free, name):
    """Of a program as heddle cc compiled it, or, where there are none of these and early frees are not asked for, as nvcc did."""
    if has_compiled(machine):
        return compiled(machine, name)
    if free:
        raise Failed(f"Eager Free needs programs by heddle cc, and {compiled(machine, name)} is not there: build the target gpu_compiled and pack it")
    return machine.program(name)


def run(machine, kinds, free, node):
    """The queue in one way, of which the node knows but what `free` says of the programs."""
    scale, since = SCALES[machine.kind], len(node.log())
    queue = eager.queue_of(kinds, functools.partial(path_of, machine, free), scale)
    return eager.Run(node.batch(queue, ["mgb-warps"], workers=len(kinds), limit=LIMIT)[0], node.log()[since:], scale.apart)


def told(made):
    return f"{made.makespan:.1f} s, turnaround {made.turnaround:.1f} s, {made.launched} launched eagerly, {made.promoted} promoted"


def cells_of(machine):
    cells, queues = [], QUEUES[machine.kind]
    for way, (free, launch) in eager.WAYS.items():
        node = {"count": 1, "memory": MEMORY[machine.kind], "context_memory": "0", "slowdown": 0, "eager_launch": launch,
                "environment": {"HEDDLE_EAGER_FREE": str(int(free))}}
        cells += [Cell(f"{name}, {way}", node, functools.partial(run, machine, kinds, free), told)
                  for name, kinds in queues.items() if name == "mixed" or not free]
    return cells


def report(machine, results):
    runs, products = ({way: found for way in eager.WAYS if (found := results.get(f"{name}, {way}"))} for name in ("mixed", "2MM alone"))
    jobs = sum(len(made.pending) for made in results.values())
    right = Claim("every result is right, in all ways that ran", "-", f"{jobs} of {jobs} jobs", True if jobs else None)
    exhibits = [eager.summary("All ways", "means over the queue's jobs, and the whole queue", runs),
                eager.summary("2MM alone", "the same, with jobs of which D alone lies on the host", products)]
    exhibits += [eager.figure(*names, way, runs[way]) for way, names in {
        "CASE": ("Figure 2", "time of each job under CASE"), "Eager Launch": ("Figure 3", "time of each job under CASE and Eager Launch"),
        "Eager Free": ("Eager Free", "time of each job under CASE and Eager Free"),
        "both": ("Both", "time of each job under CASE, Eager Free and Eager Launch")}.items() if way in runs]
    if "Eager Launch" in products:
        exhibits.append(eager.figure("2MM alone, Eager Launch", "time of each job", "Eager Launch", products["Eager Launch"]))
    return Reproduction("eager-gpu", "Eager scheduling: Eager Free and Eager Launch", f"on {machine.name}",
                        [right, *eager.claims_of(runs, products)], exhibits, settled(machine))


def plan(machine, seed):
    del seed  # what the programs draw is the same each time
    return Plan(cells_of(machine), functools.partial(report, machine))
