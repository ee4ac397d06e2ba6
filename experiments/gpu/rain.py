"""Rain's pairs on GPUs: what device schedulers make of two programs on one, against each alone; with several, balancers too."""

import functools
import time

import rain
from case import mixes
from exhibit import Claim, Exhibit, Reproduction, mean, number
from gpu.cells import Cell, Plan

DISPATCHES = ["open", "las", "las:2", "fs", "tfs"]  # las:2 is heddle's own: lends to two at a time
LETTERS = "GMY"  # pairs
SIZES = {  # on a GPU: as Table 1 has them
    "BS-L": ["--size", "4m"], "DXTC": ["--width", "512", "--height", "512"], "Histogram": ["--width", "1024", "--height", "512"],
    "Eigenvalues": ["--size", "8k"], "MatMul": ["--rows", "480", "--inner", "480", "--columns", "480"], "BS-S": ["--size", "4m"],
    "MonteCarlo": ["--size", "2k", "--paths", "16k"], "Transpose": ["--rows", "800", "--columns", "800"],
    "BFS": ["--nodes", "1m", "--degree", "32"], "Gaussian": ["--width", "50", "--height", "50"],
}
ALONE, TOGETHER = 1.2, 1.8  # seconds that programs are watched
BALANCERS = ["grr", "gmin", "gwtmin"]
# Options of the queue of all ten for mix.py: what part of Table 1's launches.
QUEUE = {"gpu": ["--work", "0.05"], "rehearsal": ["--scale", "64", "--work", "0.0005"]}


def settled(machine):
    watched = f"{machine.seconds(TOGETHER):g} s"
    made = [
        f"Pairs {', '.join(LETTERS)} of the 25, at Table 1's sizes and without end. The speedup of a pair is the sum over both of how fast each "
        f"goes on beside the other, against alone (heddle, `open`): launches a second while it is watched, {machine.seconds(ALONE):g} s alone and "
        f"{watched} together. 1: as one after the other; 2: as if each had a device of its own.",
        "Rain's are streams of requests on four GPUs, and its speedups are over one node with two: on one GPU there is nothing to balance, and "
        "the figures are not to be compared with the paper's.",
        "Under `open` programs share the GPU as the driver has it: in time slices, or side by side under MPS. `las:2` is heddle's own: it lends to "
        "two at a time.",
    ]
    if machine.count > 1:
        made.append(f"Balancers: a queue of Table 1's ten programs, `workloads/mixes/mix.py rain {' '.join(QUEUE[machine.kind])}`, all at once on {machine.count} devices.")
    return made


def command_of(machine, name):
    program, *small = rain.PROGRAMS[name]
    return [machine.program(program), *(SIZES[name] if machine.kind == "gpu" else small), *rain.WITHOUT_END]


def rates(machine, names, watched, node):
    """Launches a second of each of these programs, run together."""
    def launches(jobs, job):
        return jobs.get(job, {}).get("usage", {}).get("launches", 0)

    with node.running([([], command_of(machine, name)) for name in names]) as jobs:
        node.wait(lambda: (now := node.jobs()) and all(launches(now, job) > 0 for job in jobs), 60, f"{' and '.join(names)}: not all were at work")
        time.sleep(0.3)
        begin, before = time.monotonic(), node.jobs()
        time.sleep(machine.seconds(watched))
        end, after = time.monotonic(), node.jobs()
    return [(launches(after, job) - launches(before, job)) / (end - begin) for job in jobs]


def told_rates(found):
    return ", ".join(f"{each:.1f}" for each in found) + " launches a second"


def balance(machine, node):
    """Programs a minute of the queue of ten under each balancer."""
    args = mixes.parse(["rain", "--static", "--workloads", machine.workloads, "--check", "none", *QUEUE[machine.kind]])
    queue = mixes.as_toml(mixes.draw_jobs(args), args)
    return {each["policy"]: each["throughput_per_minute"] for each in node.batch(queue, BALANCERS, workers=10, limit=100)}


def told_balance(found):
    return ", ".join(f"{policy} {each:.1f}" for policy, each in found.items()) + " programs a minute"


def cells_of(machine):
    pairs = {letter: [each.name for each in rain.PAIRS[letter]] for letter in LETTERS}
    cells = [Cell(f"{name} alone", {"dispatch": "open", "count": 1}, functools.partial(rates, machine, [name], ALONE), told_rates)
             for pair in pairs.values() for name in pair]
    for dispatch in DISPATCHES:
        cells += [Cell(f"{letter} under {dispatch}", {"dispatch": dispatch, "count": 1}, functools.partial(rates, machine, pair, TOGETHER), told_rates)
                  for letter, pair in pairs.items()]
    if machine.count > 1:
        cells += [Cell(f"balancers under {dispatch}", {"dispatch": dispatch}, functools.partial(balance, machine), told_balance)
                  for dispatch in ("open", "las")]
    return cells


def progress(results, letter, dispatch):
    """What each of the pair made of its speed alone; None where something of it did not run."""
    names = [each.name for each in rain.PAIRS[letter]]
    alone, found = [results.get(f"{name} alone", [None])[0] for name in names], results.get(f"{letter} under {dispatch}")
    return [ours / each for ours, each in zip(found, alone)] if found and all(alone) else None


def pairs_exhibits(results):
    speedups, least = {}, {}
    for letter in LETTERS:
        label = f"{letter}: {', '.join(each.name for each in rain.PAIRS[letter])}"
        found = [progress(results, letter, dispatch) for dispatch in DISPATCHES]
        if any(found):
            speedups[label] = [sum(each) if each else None for each in found]
            least[label] = [min(each) if each else None for each in found]
    return [Exhibit("Pairs", "two programs on one device: the sum of each one's speed over that alone", "weighted speedup", DISPATCHES, speedups),
            Exhibit("The slower one", "of each pair, against alone", "speed", DISPATCHES, least)]


def balancers_exhibit(results):
    rows = {dispatch: [found[policy] / found["grr"] for policy in BALANCERS]
            for dispatch in ("open", "las") if (found := results.get(f"balancers under {dispatch}"))}
    return Exhibit("Balancers", "ten programs on all devices, over grr", "programs a minute", BALANCERS, rows, has_mean=False)


def claims_of(speedups):
    def above(ours, others):
        means = [speedups.mean_of(column) for column in (ours, others)]
        holds = None if None in means else means[0] >= means[1]
        return Claim(f"{ours} at least {others}: mean speedup of the pairs", "-", f"{number(means[0])} and {number(means[1])}", holds)

    every = mean([value for row in speedups.rows.values() for value in row])
    return [above("las", "open"), above("las", "fs"), above("las:2", "las"),
            Claim("mean speedup of all pairs and schedulers", "-", number(every), None)]


def report(machine, results):
    exhibits = pairs_exhibits(results)
    claims = claims_of(exhibits[0])
    if machine.count > 1:
        exhibits.append(balancers_exhibit(results))
    return Reproduction("rain-gpu", "Rain: device schedulers over pairs of programs", f"on {machine.name}", claims, exhibits, settled(machine))


def plan(machine, seed):
    del seed  # nothing here is random
    return Plan(cells_of(machine), functools.partial(report, machine))
