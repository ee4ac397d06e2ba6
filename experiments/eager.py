"""The eager scheduling report: a queue of 2MM and 2DCONV on one device, with Eager Free, Eager Launch, both and neither."""

import dataclasses
import json
import os
import shlex
import tempfile

from exhibit import Claim, Exhibit, Reproduction, mean, number
from simulation import Failed, Scenario, seconds

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


@dataclasses.dataclass
class Scale:
    """What the kinds of jobs do on some devices, and how long one comes behind another."""

    programs: dict[str, list[str]]
    apart: float


SOFTWARE = Scale(PROGRAMS, APART)
# Early frees by the compiled programs; the daemon launches eagerly.
WAYS = {"CASE": (False, False), "Eager Free": (True, False), "Eager Launch": (False, True), "both": (True, True)}

SETTLED = [
    f"The report names neither GPU nor sizes nor arrivals. Here: one software P100 of {MEMORY} at a {SLOWDOWN}th of the speed, and "
    f"{len(MIXED)} jobs that arrive half a second apart, in the order of the table: 2MM has 12 MiB (A, B, C, A * B, D), 2DCONV 16 MiB "
    f"(two images). Each checks a sample of its result. A second queue of ours has {len(PRODUCTS)} jobs, 2MM alone.",
    "CASE is mgb-warps (Alg. 3). All programs are compiled by `heddle cc`; early frees are switched by HEDDLE_EAGER_FREE, Eager Launch by "
    "heddled's `eager_launch`.",
    "An eager task's memory that is not on the device is promoted as whole segments; its kernels wait for that for as long as they would take "
    "to reach it over the bus, and then do that. The report's is managed memory, whose pages come where they are touched.",
    "Pending: from the start of the program until it has a device (its data are made meanwhile). Running: from then to its end, its own check of the result included.",
]


def queue_of(kinds, path_of, scale=SOFTWARE):
    """The file of the queue; `path_of` a program's name."""
    lines, numbers = [], {}
    for kind in kinds:
        numbers[kind] = numbers.get(kind, 0) + 1
        program, *arguments = scale.programs[kind]
        program = shlex.join([path_of(program), *arguments, "--seed", str(numbers[kind])])
        command = ["/bin/sh", "-c", f"sleep {scale.apart * len(lines):g}; exec {program}"]
        lines.append(f"[[job]]\nname = {json.dumps(f'{kind} {numbers[kind]}')}\nkind = {json.dumps(kind)}\ncommand = {json.dumps(command)}\n")
    return "\n".join(lines)


class Run:
    """The queue in one way: of each job the seconds that it was pending and running; what heddled did."""

    def __init__(self, result, log, apart=APART):
        jobs = result["jobs"]
        wrong = [f"{job['name']} ({job.get('last_line', '')})" for job in jobs if job["exit_status"] != 0 or job["granted_s"] is None]
        if wrong:
            raise Failed(f"these jobs came to nothing: {', '.join(wrong)}")
        self.pending = {job["name"]: job["granted_s"] - job["started_s"] - apart * at for at, job in enumerate(jobs)}
        self.running = {job["name"]: job["ended_s"] - job["granted_s"] for job in jobs}
        self.makespan = max(job["ended_s"] for job in jobs)
        self.turnaround = mean(self.pending.values()) + mean(self.running.values())
        self.launched = log.count("launched eagerly")
        self.promoted = sum("copied in" in line and "more on device" in line for line in log.splitlines())
        self.overrun = 100 * result["overrun"]
        self.valid = result["timing_valid"]

    def timing(self):
        return f"; the host was late by {self.overrun:.1f} %" + ("." if self.valid else ": no valid timing.")


def run(node_of, kinds, directory, free, launch):
    environment = {"HEDDLE_EAGER_FREE": str(int(free))}
    with node_of("P100", 1, slowdown=SLOWDOWN, memory=MEMORY, eager_launch=launch, environment=environment) as node:
        if not os.listdir(directory):
            node.compile(SOURCES, directory)
        return Run(node.batch(queue_of(kinds, lambda name: os.path.join(directory, name)), ["mgb-warps"], workers=len(kinds))[0], node.log())


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
       "else; one that has waited in vain for its memory is on the device for so much longer, and all others wait for it")
LAST_USE = "2MM and 2DCONV free their buffers soon behind their last kernel: what a compiler can free earlier is the time of one copy"


# Why what does not hold does not: in the order of the claims.
REASONS = [BUS, LAST_USE, BUS, LAST_USE, BUS, LAST_USE, BUS, BUS]


def claims_of(runs, products, reasons=()):
    """Of the ways that ran. `reasons`: why what does not hold does not, where it is known."""
    whys = iter(reasons)

    def both(count):
        return ", ".join(f"{count(runs[way])} under {way}" for way in ("Eager Launch", "both") if way in runs) or "-"

    def lower(text, measure, ours, others, among):
        why, values = next(whys, ""), [measure(among[way]) if way in among else None for way in (ours, others)]
        return Claim(text, "-", " and ".join(number(each, 1) for each in values), None if None in values else values[0] < values[1], why)

    def pending(each):
        return mean(each.pending.values())

    def makespan(each):
        return each.makespan

    def turnaround(each):
        return each.turnaround

    eager = runs.get("Eager Launch")
    return [
        Claim("jobs are launched eagerly", "yes (figure 3)", both(lambda each: each.launched), eager and eager.launched > 0),
        Claim("memory of theirs is promoted as it returns, times", "yes", both(lambda each: each.promoted), eager and eager.promoted > 0),
        lower("mean pending time, Eager Launch and CASE, s", pending, "Eager Launch", "CASE", runs),
        lower("mean pending time, Eager Free and CASE, s", pending, "Eager Free", "CASE", runs),
        lower("the whole queue, Eager Launch and CASE, s", makespan, "Eager Launch", "CASE", runs),
        lower("the whole queue, both and Eager Launch, s", makespan, "both", "Eager Launch", runs),
        lower("mean turnaround, Eager Launch and CASE, s", turnaround, "Eager Launch", "CASE", runs),
        lower("mean turnaround, Eager Free and CASE, s", turnaround, "Eager Free", "CASE", runs),
        lower("2MM alone: mean pending time, Eager Launch and CASE, s", pending, "Eager Launch", "CASE", products),
        lower("2MM alone: the whole queue, Eager Launch and CASE, s", makespan, "Eager Launch", "CASE", products),
    ]


# The same queue, counted. What the programs do follows from their code (workloads/) and a P100's resources.
MIB = 1 << 20
SIMULATED_DEVICE = {"preset": "P100", "memory": MEMORY, "slowdown": SLOWDOWN, "copy_slowdown": 20}  # as software.devices has it
SWAP = "64M"
WARP_INSTRUCTIONS = 56 * 1.4805e9 * 2  # that a P100 issues a second
WARPS, SECTOR = 56 * 64, 32  # resident at once; bytes that memory moves at least
# Instructions of a warp: for each of 2MM's multiplications and additions, and for each pass of 2DCONV.
PER_PRODUCT, PER_PASS = 5, 880


def kernel_seconds(warp_instructions, warps):
    return warp_instructions / (WARP_INSTRUCTIONS * min(1, warps / WARPS))


def product_job(rows=1024, inner=512, columns=1024, blocks=112, tile=16):
    """2MM as bursts of a third of its work: the first is A * B, the other two are the second product."""
    a, b, c, middle, d = (4 * size for size in (rows * inner, inner * inner, inner * columns, rows * inner, rows * columns))
    # Each matrix is read once for each tile of the result beside it; results are written once.
    buffers = [
        {"size": a, "touched": a * inner // tile, "from": 1, "until": 1},
        {"size": b, "touched": b * rows // tile, "from": 1, "until": 1},
        {"size": c, "touched": c * rows // tile // 2, "from": 2, "until": 3},
        {"size": middle, "touched": middle * columns // tile // 2},
        {"size": d, "touched": d // 2, "from": 2, "until": 3},
    ]
    products = rows * inner * (inner + columns) / 3
    return {"blocks": blocks, "bursts": 3, "busy": kernel_seconds(PER_PRODUCT * products / 32, blocks * 8), "buffer": buffers}


def convolution_job(width=1024, height=2048, passes=6, tile=16, radius=2):
    """2DCONV: a burst for each pass, which reads one image and writes the other, in turns."""
    image = 4 * width * height
    row = 4 * (tile + 2 * radius)  # of what a block reads: not at a sector's beginning
    read = image // (4 * tile * tile) * (tile + 2 * radius) * SECTOR * (row // SECTOR + 2)
    pixels = width * height
    buffers = [{"size": image, "touched": (read + image) // 2} for _ in range(2)]
    return {"blocks": pixels // (tile * tile), "bursts": passes, "busy": kernel_seconds(PER_PASS * pixels / 32, WARPS), "buffer": buffers}


SIMULATED_JOBS = {"2MM": product_job, "2DCONV": convolution_job}

SETTLED_SIMULATED = [
    f"The report names neither GPU nor sizes nor arrivals. Here: the queue of --software, counted: one P100 of {MEMORY} at a {SLOWDOWN}th of "
    f"the speed, and {len(MIXED)} jobs that arrive half a second apart, in the order of the table: 2MM has 11 MiB (A, B, C, A * B, D), 2DCONV "
    f"16 MiB (two images). A second queue of ours has {len(PRODUCTS)} jobs, 2MM alone.",
    "CASE is mgb-warps (Alg. 3).",
    "2MM is Polybench's: two products, A * B and then its product with C, so A and B are free behind the first one. 2DCONV goes from one image "
    "to the other and back, so both are in use to its end.",
    f"Kernels take as long as a P100 issues their instructions: {PER_PRODUCT} of a warp for each multiplication and addition of 2MM, {PER_PASS} for "
    "each pass of 2DCONV. Both numbers are fitted to how long each program runs alone on a software device. What they touch follows from "
    "their tiles.",
    "An eager task's memory that is not on the device is promoted as whole buffers; its kernels wait for that for as long as they would take "
    "to reach it over the bus, and then do that. The report's is managed memory, whose pages come where they are touched.",
    "Left out: the programs' own time on the host, and their copies.",
]


class Counted:
    """As Run, of a simulation."""

    def __init__(self, run):
        wrong = [job["name"] for job in run.jobs if job["runs"] != 1]
        if wrong:
            raise Failed(f"these jobs came to nothing: {', '.join(wrong)}")
        self.pending = {job["name"]: job["granted"] - job["arrived"] for job in run.jobs}
        self.running = {job["name"]: job["ended"] - job["granted"] for job in run.jobs}
        self.makespan = run.answer["makespan"]
        self.turnaround = mean(self.pending.values()) + mean(self.running.values())
        eager = run.answer["eager"]
        self.launched, self.promoted = eager["launches"], eager["promotions"]
        self.on_host, self.moved, self.moving = eager["on_host"] / MIB, eager["promoted"] / MIB, eager["moving"]

    def timing(self):
        return "."


def count(simulator, kinds, free, launch, **keys):
    jobs, numbers = [], {}
    for at, kind in enumerate(kinds):
        numbers[kind] = numbers.get(kind, 0) + 1
        job = {"name": f"{kind} {numbers[kind]}", "app": kind, "start": seconds(APART * at), **SIMULATED_JOBS[kind]()}
        jobs.append({**job, "busy": seconds(job["busy"])})
    root = {"eager_free": free, "eager_launch": launch, "swap": {"host": SWAP}, **keys}
    return Counted(simulator.run(Scenario([SIMULATED_DEVICE], jobs, root), [("mgb-warps", "open")])[0])


def moved(name, title, runs):
    rows = {way: [each.launched, each.on_host, each.promoted, each.moved, 1000 * each.moving] for way, each in runs.items()}
    return Exhibit(name, title, "", ["launched eagerly", "MiB on the host", "promotions", "MiB promoted", "ms of copies"], rows, digits=0,
                   has_mean=False)


def figure(name, title, way, each):
    rows = {job: [each.pending[job], each.running[job]] for job in each.pending}
    notes = [f"Under {way}, {each.launched} jobs were launched eagerly, memory was promoted {each.promoted} times, and the queue took "
             f"{each.makespan:.1f} s" + each.timing()]
    return Exhibit(name, title, "seconds", ["pending", "running"], rows, digits=1, notes=notes)


def summary(name, title, runs):
    rows = {way: [mean(each.pending.values()), mean(each.running.values()), each.turnaround, each.makespan] for way, each in runs.items()}
    return Exhibit(name, title, "seconds",
                   ["pending", "running", "turnaround", "makespan"], rows, digits=1, has_mean=False)


def on_software(node_of, workloads, seed, progress):
    """Figures 2 and 3 in small, and the same with early frees. `node_of(preset, count, ...)` is a Node of software devices."""
    del workloads, seed  # the programs are compiled anew; what they draw is the same each time
    before = os.getloadavg()[0]
    runs, products = run_all(node_of, progress)
    jobs = 4 * len(MIXED) + 2 * len(PRODUCTS)
    right = Claim("every result is right, in all ways", "-", f"{jobs} of {jobs} jobs", True)
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
                        [right, *claims_of(runs, products, REASONS)], exhibits, SETTLED)


SIMULATED_BUS = ("2DCONV's kernels hardly do anything but read and write their images, of which one lies on the host, 60 times slower than the "
                 "device; while an eager one is there it fills the device's processors, and all others wait for them (the report's managed memory moves the pages "
                 "that kernels touch)")
PROMOTES_FIRST = ("what returns is an eager job's before it is that of jobs that wait, which begin later for it; and each is interrupted once")
SIMULATED_REASONS = [SIMULATED_BUS] * 6 + [PROMOTES_FIRST] * 2


def count_all(simulator, kinds, progress, name, **keys):
    runs = {}
    for way, (free, launch) in WAYS.items():
        progress(f"{name}, {way}")
        runs[way] = count(simulator, kinds, free, launch, **keys)
    return runs


def simulate(simulator, seed, progress):
    """Figures 2 and 3, and the same with early frees."""
    del seed  # nothing is random
    runs, products = (count_all(simulator, kinds, progress, name) for kinds, name in ((MIXED, "mixed"), (PRODUCTS, "2MM alone")))
    patient, patient_products = (count_all(simulator, kinds, progress, f"{name}, no reservations", age_limit="1h")
                                 for kinds, name in ((MIXED, "mixed"), (PRODUCTS, "2MM alone")))
    no_numbers = "The report shows its figures as pictures, without numbers, and figures of Eager Free or of both not at all."
    exhibits = [
        summary("All ways", "means over the queue's jobs, and the whole queue", runs),
        moved("All ways: memory", "what was launched eagerly, and what of it was promoted", runs),
        summary("2MM alone", f"the same of {len(PRODUCTS)} jobs, of each of which D alone lies on the host", products),
        moved("2MM alone: memory", "the same", products),
        summary("No reservations", "all ways, where the oldest request reserves no device (age_limit of an hour)", patient),
        moved("No reservations: memory", "the same", patient),
        summary("2MM alone, no reservations", "the same", patient_products),
        moved("2MM alone, no reservations: memory", "the same", patient_products),
        figure("Figure 2", "time of each job under CASE", "CASE", runs["CASE"]),
        figure("Figure 3", "time of each job under CASE and Eager Launch", "Eager Launch", runs["Eager Launch"]),
        figure("Eager Free", "time of each job under CASE and Eager Free", "Eager Free", runs["Eager Free"]),
        figure("Both", "time of each job under CASE, Eager Free and Eager Launch", "both", runs["both"]),
    ]
    exhibits[0].notes.append(no_numbers)
    exhibits[4].notes.append("By default the oldest request reserves the device when it has waited for 2 s, and goes before promotions of jobs that "
                             "came behind it.")
    return Reproduction("eager", "Eager scheduling: Eager Free and Eager Launch", "simulated",
                        claims_of(runs, products, SIMULATED_REASONS), exhibits, SETTLED_SIMULATED)
