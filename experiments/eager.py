"""The eager scheduling report: a queue of 2MM and 2DCONV on one device, with Eager Free, Eager Launch, both and neither."""

import json
import os
import shlex
import tempfile

from exhibit import Claim, Exhibit, Reproduction, mean, number
from simulation import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, "..", "workloads", name) for name in ("mm2.cu", "conv2d.cu")]

# A 500th of a P100's memory and a 3,000th of its speed: two cores of a host compute a fifth of the time.
MEMORY, SLOWDOWN = "32M", 3000
PROGRAMS = {
    # 12 MiB in five matrices, of which D, the last, has 4; a quarter of the device's warps.
    "2MM": ["mm2", "--rows", "1024", "--inner", "512", "--columns", "1024", "--blocks", "112", "--iterations", "1", "--check", "sample"],
    # Two images of 8 MiB; as many warps as there are.
    "2DCONV": ["conv2d", "--width", "1024", "--height", "2048", "--iterations", "6", "--check", "sample"],
}
MIXED, PRODUCTS = ["2MM", "2MM", "2DCONV"] * 4, ["2MM"] * 8
APART = 0.5  # seconds from job to job: the order of their requests is the queue's
# Early frees by the compiled programs; the daemon launches eagerly.
WAYS = {"CASE": (False, False), "Eager Free": (True, False), "Eager Launch": (False, True), "both": (True, True)}

SETTLED = [
    f"The report names neither GPU nor sizes nor arrivals. Here: one software P100 of {MEMORY} at a {SLOWDOWN}th of the speed, and "
    f"{len(MIXED)} jobs that arrive half a second apart, in the order of the table: 2MM has 12 MiB (A, B, C, A * B, D), 2DCONV 16 MiB "
    f"(two images). Each checks a sample of its result. A second queue of ours has {len(PRODUCTS)} jobs, 2MM alone.",
    "CASE is mgb-warps (Alg. 3). All programs are compiled by `heddle cc`; early frees are switched by HEDDLE_EAGER_FREE, Eager Launch by "
    "heddled's `eager_launch`.",
    "An eager task's memory that is not on the device is read over the bus by its kernels, and promoted as whole segments; the report's is "
    "managed memory, whose pages come where they are touched.",
    "Pending: from the start of the program until it has a device (its data are made meanwhile). Running: from then to its end, its own check of the result included.",
]


def queue_of(kinds, directory):
    lines, numbers = [], {}
    for kind in kinds:
        numbers[kind] = numbers.get(kind, 0) + 1
        program, *arguments = PROGRAMS[kind]
        program = shlex.join([os.path.join(directory, program), *arguments, "--seed", str(numbers[kind])])
        command = ["/bin/sh", "-c", f"sleep {APART * len(lines):g}; exec {program}"]
        lines.append(f"[[job]]\nname = {json.dumps(f'{kind} {numbers[kind]}')}\nkind = {json.dumps(kind)}\ncommand = {json.dumps(command)}\n")
    return "\n".join(lines)


class Run:
    """The queue in one way: of each job the seconds that it was pending and running; what heddled did."""

    def __init__(self, result, log):
        jobs = result["jobs"]
        wrong = [job["name"] for job in jobs if job["exit_status"] != 0 or job["granted_s"] is None]
        if wrong:
            raise Failed(f"these jobs came to nothing: {', '.join(wrong)}")
        self.pending = {job["name"]: job["granted_s"] - job["started_s"] - APART * at for at, job in enumerate(jobs)}
        self.running = {job["name"]: job["ended_s"] - job["granted_s"] for job in jobs}
        self.makespan = max(job["ended_s"] for job in jobs)
        self.turnaround = mean(self.pending.values()) + mean(self.running.values())
        self.launched = log.count("launched eagerly")
        self.promoted = sum("copied in" in line and "more on device" in line for line in log.splitlines())
        self.overrun = 100 * result["overrun"]
        self.valid = result["timing_valid"]


def run(node_of, kinds, directory, free, launch):
    environment = {"HEDDLE_EAGER_FREE": str(int(free))}
    with node_of("P100", 1, slowdown=SLOWDOWN, memory=MEMORY, eager_launch=launch, environment=environment) as node:
        if not os.listdir(directory):
            node.compile(SOURCES, directory)
        return Run(node.batch(queue_of(kinds, directory), ["mgb-warps"], workers=len(kinds))[0], node.log())


def run_all(node_of, progress):
    """Of the mixed queue each way's run; of 2MM alone those without early frees."""
    with tempfile.TemporaryDirectory(prefix="heddle-experiment-programs-") as directory:
        runs, products = {}, {}
        for way, (free, launch) in WAYS.items():
            progress(way)
            runs[way] = run(node_of, MIXED, directory, free, launch)
        for way in ("CASE", "Eager Launch"):
            progress(f"2MM alone, {way}")
            products[way] = run(node_of, PRODUCTS, directory, *WAYS[way])
    return runs, products


BUS = ("what lies on the host is reached over the bus, 60 times slower than the device's memory, and 2DCONV's kernels hardly do anything "
       "else; an eager 2DCONV fills the device's processors meanwhile, and all others wait for them")
LAST_USE = "2MM and 2DCONV free their buffers soon behind their last kernel: what a compiler can free earlier is the time of one copy"


def claims_of(runs, products):
    case, free, eager, both = (runs[way] for way in WAYS)
    jobs = 4 * len(MIXED) + 2 * len(PRODUCTS)

    def lower(text, ours, others, why):
        return Claim(text, "-", f"{number(ours, 1)} and {number(others, 1)}", ours < others, why)

    pending = {way: mean(each.pending.values()) for way, each in runs.items()}
    return [
        Claim("every result is right, in all ways", "-", f"{jobs} of {jobs} jobs", True),
        Claim("jobs are launched eagerly", "yes (figure 3)", f"{eager.launched}, {both.launched} with Eager Free", eager.launched > 0),
        Claim("memory of theirs is promoted as it returns", "yes", f"{eager.promoted} times, {both.promoted} with Eager Free", eager.promoted > 0),
        lower("mean pending time, Eager Launch and CASE, s", pending["Eager Launch"], pending["CASE"], BUS),
        lower("mean pending time, Eager Free and CASE, s", pending["Eager Free"], pending["CASE"], LAST_USE),
        lower("the whole queue, Eager Launch and CASE, s", eager.makespan, case.makespan, BUS),
        lower("the whole queue, both and Eager Launch, s", both.makespan, eager.makespan, LAST_USE),
        lower("mean turnaround, Eager Launch and CASE, s", eager.turnaround, case.turnaround, BUS),
        lower("mean turnaround, Eager Free and CASE, s", free.turnaround, case.turnaround, LAST_USE),
        lower("2MM alone: mean pending time, Eager Launch and CASE, s",
              *(mean(products[way].pending.values()) for way in ("Eager Launch", "CASE")), BUS),
        lower("2MM alone: the whole queue, Eager Launch and CASE, s", products["Eager Launch"].makespan, products["CASE"].makespan, BUS),
    ]


def figure(name, title, way, each):
    rows = {job: [each.pending[job], each.running[job]] for job in each.pending}
    notes = [f"Under {way}, {each.launched} jobs were launched eagerly, memory was promoted {each.promoted} times, and the queue took "
             f"{each.makespan:.1f} s; the host was late by {each.overrun:.1f} %" + ("." if each.valid else ": no valid timing.")]
    return Exhibit(name, title, "seconds", ["pending", "running"], rows, digits=1, notes=notes)


def summary(name, title, runs):
    rows = {way: [mean(each.pending.values()), mean(each.running.values()), each.turnaround, each.makespan] for way, each in runs.items()}
    return Exhibit(name, title, "seconds",
                   ["pending", "running", "turnaround", "makespan"], rows, digits=1, has_mean=False)


def on_software(node_of, workloads, seed, progress):
    """Figures 2 and 3 in small, and the same with early frees. `node_of(preset, count, ...)` is a software.Node."""
    del workloads, seed  # the programs are compiled anew; what they draw is the same each time
    before = os.getloadavg()[0]
    runs, products = run_all(node_of, progress)
    exhibits = [
        summary("All ways", "means over the queue's jobs, and the whole queue", runs),
        summary("2MM alone", f"the same of {len(PRODUCTS)} jobs, of each of which D alone lies on the host", products),
        figure("Figure 2", "time of each job under CASE", "CASE", runs["CASE"]),
        figure("Figure 3", "time of each job under CASE and Eager Launch", "Eager Launch", runs["Eager Launch"]),
        figure("Eager Free", "time of each job under CASE and Eager Free", "Eager Free", runs["Eager Free"]),
        figure("2MM alone, Eager Launch", "time of each job", "Eager Launch", products["Eager Launch"]),
        figure("Both", "time of each job under CASE, Eager Free and Eager Launch", "both", runs["both"]),
    ]
    exhibits[0].notes.append(f"The host has {os.cpu_count()} processors and had a load of {before:.1f} before, {os.getloadavg()[0]:.1f} at the end.")
    return Reproduction("eager-software", "Eager scheduling: Eager Free and Eager Launch", "on software devices",
                        claims_of(runs, products), exhibits, SETTLED)
