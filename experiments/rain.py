"""Rain (papers/rain.txt), section 5: load balancers and device schedulers over streams of requests."""

import dataclasses
import os
import random
import statistics

from exhibit import Claim, Exhibit, Reproduction, at_least, mean, number
from simulation import Failed, Scenario, seconds


@dataclasses.dataclass(frozen=True)
class Application:
    """A row of Table 1, alone on the pool's fastest GPU. Its launches are the paper's, what else there is was settled."""

    name: str
    launches: int
    alone: float  # seconds from begin to end
    busy: float  # of them with kernels on the GPU
    copies: float  # of them with copies under way


# Settled: the paper has 35 to 105 s for long jobs, 5 to 17 s for short ones, and Gaussian as the shortest, with the GPU
# in use for "a very short period of time". What part is kernels follows from what the programs do: DXTC, Eigenvalues,
# Monte Carlo compute; Histogram moves 512 MB for little work; BFS and Gaussian mostly launch.
LONG = [
    Application("BS-L", 8192, 50, 0.50, 0.20),
    Application("DXTC", 262144, 65, 0.80, 0.02),
    Application("Histogram", 4096, 35, 0.30, 0.40),
    Application("Eigenvalues", 3, 105, 0.85, 0.02),
    Application("MatMul", 8192, 80, 0.70, 0.10),
]
SHORT = [
    Application("BS-S", 1024, 8, 0.50, 0.20),
    Application("MonteCarlo", 10000, 12, 0.70, 0.05),
    Application("Transpose", 10000, 10, 0.55, 0.15),
    Application("BFS", 12, 17, 0.15, 0.30),
    Application("Gaussian", 8192, 5, 0.10, 0.05),
]
PAIRS = {chr(ord("A") + index): (LONG[index // 5], SHORT[index % 5]) for index in range(25)}
GAUSSIAN = [letter for letter, (_, short) in PAIRS.items() if short.name == "Gaussian"]

# By peak rate: Quadro 2000 and Tesla C2050 in node A, Quadro 4000 and Tesla C2070 in node B. One model, as Rain takes
# any GPU for any request. One GPU's contexts took turns then.
FERMI = {"preset": "P100", "model": "Fermi", "memory": "3G", "context": "50M", "sharing": "time-sliced"}
FAST = {**FERMI, "slowdown": 1.0}
NODE_A = [FAST, {**FERMI, "slowdown": 2.1}]
POOL = NODE_A + NODE_A
BURSTS = 400  # of a request at most: waits of the host. More change nothing but how long a simulation takes.

BALANCERS = ["grr", "gmin", "gwtmin"]
SETTLED = [
    "A stream's lambda is its application's running time alone (the paper: \"proportional\").",
    "Running times and the parts of kernels and copies of Table 1's programs: see LONG and SHORT in `experiments/rain.py`. "
    "A context has the whole GPU in its turn, so copies count as kernels.",
    "GPUs by peak rate: a Quadro takes 2.1 times as long as a Tesla, for every program.",
    "The CUDA runtime's default puts all on device 0, the node's fastest.",
    "Single node GRR, the baseline of figures 6, 7 and 10: both streams on the two GPUs of one node.",
    "A job's time is from its arrival to its end, the mean over its stream; speedups are means over applications.",
    "Fairness is Jain's index of what each had of the GPU (the paper: of \"total execution time\"), by weight, of two programs that run again and again; "
    "a program that asks for less than its share lowers it whoever schedules.",
    "Eigenvalues launches three times, so each of its kernels has the GPU for half a minute, and no device scheduler can take it back.",
    "Shares drawn at random: whole weights from 1 to 4.",
    "Lengths of epochs, slices and quanta: 100 ms, 5 to 100 ms, 10 ms (the paper has none).",
]


def job(application, memory="100M", **keys):
    bursts = min(BURSTS, application.launches)
    # A GPU of that time gives a context all of itself for its slice, for copies as for kernels.
    kernels = application.alone * (application.busy + application.copies)
    return {
        "name": application.name,
        "memory": memory,
        "blocks": 512,
        "bursts": bursts,
        "host": seconds(application.alone * (1 - application.busy - application.copies) / bursts),
        "busy": seconds(kernels / bursts),
        "kernel": seconds(kernels / application.launches),
        **keys,
    }


def stream(application, length):
    """Requests for `length` seconds, on average one each time that one takes alone."""
    return job(application, count=max(1, round(length / application.alone)), every=seconds(application.alone), arrivals="random")


def completion_times(simulator, devices, jobs, pairs, seeds):
    """For each pair of policies: the mean time of each application's requests, over all seeds."""
    times = [{} for _ in pairs]
    for seed in seeds:
        for into, run in zip(times, simulator.run(Scenario(devices, jobs, {"seed": seed}), pairs)):
            for name in {each["name"] for each in jobs}:
                into.setdefault(name, []).append(run.turnaround(name))
    return [{name: mean(values) for name, values in each.items()} for each in times]


def speedup(base, times):
    return statistics.fmean(base[name] / times[name] for name in times)


def balancers_on_one_node(simulator, seeds, progress):
    rows = {}
    for application in LONG + SHORT:
        progress(f"figure 5: {application.name}")
        jobs = [stream(application, 40 * application.alone)]
        [runtime] = completion_times(simulator, NODE_A[:1], jobs, [("gmin", "open")], seeds)
        shared = completion_times(simulator, NODE_A, jobs, [(policy, "open") for policy in BALANCERS], seeds)
        rows[application.name] = [speedup(runtime, times) for times in shared]
    return Exhibit("Figure 5", "one application's requests on a node with two GPUs, over the CUDA runtime", "speedup", BALANCERS,
                   rows, {"grr": 1.57, "gmin": 1.72, "gwtmin": 1.73})


def pair_jobs(long, short):
    length = 30 * long.alone
    return [stream(long, length), stream(short, length)]


class Pairs:
    """The 25 pairs on four GPUs against one node's two under grr, for each pair of policies once."""

    def __init__(self, simulator, seeds, progress):
        self.simulator, self.seeds, self.progress = simulator, seeds, progress
        self.base, self.known = {}, {}

    def _times(self, devices, letter, pair):
        return completion_times(self.simulator, devices, pair_jobs(*PAIRS[letter]), [pair], self.seeds)[0]

    def speedup(self, letter, policy, dispatch):
        key = (letter, policy, dispatch)
        if letter not in self.base:
            self.base[letter] = self._times(NODE_A, letter, ("grr", "open"))
        if key not in self.known:
            self.known[key] = speedup(self.base[letter], self._times(POOL, letter, (policy, dispatch)))
        return self.known[key]

    def exhibit(self, name, title, pairs, paper):
        rows = {}
        for letter in PAIRS:
            self.progress(f"{name.lower()}: pair {letter}")
            rows[letter] = [self.speedup(letter, *pair) for pair in pairs.values()]
        return Exhibit(name, title, "weighted speedup", list(pairs), rows, paper)


def usable(application):
    """The part of a GPU that it could use: alone, it has the GPU for that part of the time."""
    return application.busy + application.copies


def due(pair, weights):
    """What each has where nobody gets more than it can use: its share, and what the other leaves of its own."""
    total = sum(weights)
    got = [min(usable(each), weight / total) for each, weight in zip(pair, weights)]
    left = 1 - sum(got)
    return [each + min(left, max(0, usable(application) - each)) for each, application in zip(got, pair)]


def jain(values):
    squares = sum(each * each for each in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def service(run):
    """What each of two jobs had of their GPU, in seconds of all of it: in time slices, half of the time when both were there."""
    busy = run.busy()
    both = sum(busy) - sum(run.answer["device_busy"])
    return [each - both / 2 for each in busy]


class Fairness:
    """Pairs that run again and again on one GPU for `HORIZON`, under each dispatch policy of `columns`."""

    HORIZON = 1800  # seconds

    def __init__(self, simulator, weights_of, columns, progress):
        self.columns, self.by_weight, self.by_due = columns, {}, {}
        for letter, pair in PAIRS.items():
            progress(f"fairness: pair {letter}")
            weights = weights_of(letter)
            jobs = [job(each, repeats=True, weight=float(weight)) for each, weight in zip(pair, weights)]
            scenario = Scenario([FAST], jobs, {"horizon": f"{self.HORIZON}s"})
            runs = simulator.run(scenario, [("gmin", dispatch) for dispatch in columns.values()])
            had = [service(run) for run in runs]
            self.by_weight[letter] = [100 * jain([each / weight for each, weight in zip(both, weights)]) for both in had]
            self.by_due[letter] = [100 * jain([each / is_due for each, is_due in zip(both, due(pair, weights))]) for both in had]

    def exhibit(self, name, title, rows, paper):
        return Exhibit(name, title, "Jain's index, %", list(self.columns), rows, paper, digits=1)


def random_weights(seed):
    draw = random.Random(seed)
    weights = {letter: (draw.randint(1, 4), draw.randint(1, 4)) for letter in PAIRS}
    return lambda letter: weights[letter]


# Why what does not hold does not.
BLIND = ("grr sends half of all requests to GPUs that are 2.1 times as slow, for every program here; the paper's programs "
         "differed in that, and it tells by how much for none")
NO_SWITCH = ("open is time slices without a cost of switching here, which is ideal processor sharing; on the paper's GPUs each "
             "switch cost, and las saves switches")
FEEDBACK = "the gain over gmin is what two kinds of programs on one GPU save each other; in time slices they take turns all the same"
ASKS_LESS = ("Gaussian has the GPU for a seventh of its time and cannot use half of it; and kernels of half a minute (Eigenvalues) are "
             "beyond the debts that tfs keeps")
LITTLE = "Gaussian and BFS gain nothing from more GPUs here (figure 5), since little of their time is the GPU's; why they did, we do not know"
OVERHEAD = "a program whose host computes between bursts loses the turns in which it has nothing to run"
IDEAL = "time slices are ideal processor sharing here, without the costs that the paper's runtime had"


def claims_of_balancers(five, six, seven, ten):
    claims = [at_least(f"figure 5: {policy} over the CUDA runtime", five.paper[policy], five.mean_of(policy), BLIND)
              for policy in BALANCERS]
    claims += [at_least(f"figure 6: {policy} on four GPUs", six.paper[policy], six.mean_of(policy)) for policy in BALANCERS]
    order = six.mean_of("grr") < min(six.mean_of("gmin"), six.mean_of("gwtmin"))
    claims.append(Claim("figure 6: gmin and gwtmin above grr", "3.48, 3.33 > 2.89",
                        f"{number(six.mean_of('gmin'))}, {number(six.mean_of('gwtmin'))} and {number(six.mean_of('grr'))}", order))
    best = sorted(six.rows, key=lambda letter: -max(six.rows[letter]))[:5]
    claims.append(Claim("figure 6: the largest speedups are those with Gaussian", " ".join(GAUSSIAN), " ".join(sorted(best)),
                        sorted(best) == GAUSSIAN, LITTLE))
    claims += [at_least(f"figure 7: {column}", seven.paper[column], seven.mean_of(column), BLIND) for column in seven.paper]
    raised = [seven.mean_of(f"{policy}-las") / six.mean_of(policy) for policy in BALANCERS]
    claims.append(Claim("figure 7: las over no device schedule, for each balancer", "1.64, 1.55, 1.61",
                        ", ".join(number(each) for each in raised), min(raised) > 1, NO_SWITCH))
    fs = [seven.mean_of(column) for column in ("gmin-las", "gmin-fs")]
    claims.append(Claim("las above fs (our goal)", "-", f"{number(fs[0])} and {number(fs[1])}", fs[0] > fs[1]))
    claims += [at_least(f"figure 10: {column}", ten.paper[column], ten.mean_of(column), FEEDBACK) for column in ten.paper]
    return claims


def claims_of_our_own(own):
    """What heddle's own policies, which the paper does not have, come to beside those that they grew out of."""
    def above(text, ours, others):
        means = [own.mean_of(column) for column in (ours, others)]
        return Claim(f"heddle's own: {text}", "-", f"{number(means[0])} and {number(means[1])}", means[0] >= means[1])

    return [above("las:2 at least las, under gmin", "gmin-las:2", "gmin-las"),
            above("guf:cpu at least guf, with las on each GPU", "guf:cpu-las", "guf-las"),
            above("guf:cpu with las:2 at least with las", "guf:cpu-las:2", "guf:cpu-las")]


def claims_of_fairness(eight, due_eight, nine):
    tfs, fs, runtime = eight.mean_of("tfs"), eight.mean_of("fs"), eight.mean_of("runtime")
    short_kernels = statistics.fmean(values[due_eight.columns.index("tfs")] for letter, values in due_eight.rows.items()
                                     if PAIRS[letter][0].name != "Eigenvalues")
    return [
        at_least("figure 8: fairness of tfs, %", 96, tfs, ASKS_LESS, digits=1),
        at_least("figure 8: the best pair under tfs, %", 99.99, max(eight.values("tfs")), digits=2),
        at_least("figure 8: tfs by what each can use of its share, all but Eigenvalues, % (our goal)", 99, short_kernels, OVERHEAD,
                 digits=1),
        Claim("figure 8: tfs over the CUDA runtime and over fs", "+43 %, +19 %",
              f"{100 * (tfs / runtime - 1):+.1f} %, {100 * (tfs / fs - 1):+.1f} %", tfs >= max(runtime, fs), IDEAL),
        Claim("figure 9: tfs over fs with random shares", "+29.3 %", f"{100 * (nine.mean_of('tfs') / nine.mean_of('fs') - 1):+.1f} %",
              nine.mean_of("tfs") >= nine.mean_of("fs")),
    ]


def simulate(simulator, seed, progress):
    seeds = [seed, seed + 1, seed + 2]
    five = balancers_on_one_node(simulator, seeds, progress)
    pairs = Pairs(simulator, seeds, progress)
    six = pairs.exhibit("Figure 6", "pairs of streams on four GPUs", {policy: (policy, "open") for policy in BALANCERS},
                        {"grr": 2.89, "gmin": 3.48, "gwtmin": 3.33})
    seven = pairs.exhibit("Figure 7", "the same with las on each GPU",
                          {**{f"{policy}-las": (policy, "las") for policy in BALANCERS}, "gmin-fs": ("gmin", "fs")},
                          {"grr-las": 4.75, "gmin-las": 5.40, "gwtmin-las": 5.37})
    ten = pairs.exhibit("Figure 10", "balancers with feedback, las on each GPU",
                        {"gmin-las": ("gmin", "las"), "rtf": ("rtf", "las"), "guf": ("guf", "las")}, {"rtf": 6.16, "guf": 6.71})
    own = pairs.exhibit("Heddle's own", "policies that the paper does not have, beside those that they grew out of: `las:<n>` lends to n at a time, "
                        "`guf:cpu` divides by programs' processor time",
                        {"gmin-open": ("gmin", "open"), "gmin-las": ("gmin", "las"), "gmin-las:2": ("gmin", "las:2"),
                         "guf-las": ("guf", "las"), "guf:cpu-las": ("guf:cpu", "las"), "guf:cpu-las:2": ("guf:cpu", "las:2"),
                         "guf:cpu-open": ("guf:cpu", "open")}, {})
    own.notes.append("Time slices cost nothing here, so `open` is above any schedule (see figure 7), and las:2 is between las and `open`.")
    dispatches = {"runtime": "open", "fs": "fs", "tfs": "tfs"}
    equal = Fairness(simulator, lambda _: (1, 1), dispatches, progress)
    paper = {"tfs": 96}
    eight = equal.exhibit("Figure 8", "fairness of pairs with equal shares of one GPU", equal.by_weight, paper)
    due_eight = equal.exhibit("Figure 8, by what is due", "the same, each against what it can use of its share", equal.by_due, {})
    drawn = Fairness(simulator, random_weights(seed), {"fs": "fs", "tfs": "tfs"}, progress)
    nine = drawn.exhibit("Figure 9", "fairness of pairs with random shares of one GPU", drawn.by_weight, {})
    return Reproduction("rain", "Rain: balancers, device schedulers, fairness", "simulated",
                        claims_of_balancers(five, six, seven, ten) + claims_of_fairness(eight, due_eight, nine) + claims_of_our_own(own),
                        [five, six, seven, eight, due_eight, nine, ten, own], SETTLED)


# On software devices: Table 1's programs of workloads/, without end. A kernel takes from 3 ms (Black-Scholes) to 0.8 s
# (Eigenvalues) at that speed, and two cores of a host keep up with them.
SLOWDOWN = 1000
PROGRAMS = {
    "BS-L": ["blackscholes", "--size", "262144"],
    "DXTC": ["dxtc"],
    "Histogram": ["histogram"],
    "Eigenvalues": ["eigenvalues"],
    "MatMul": ["mm2"],
    "BS-S": ["blackscholes"],
    "MonteCarlo": ["montecarlo"],
    "Transpose": ["transpose"],
    "BFS": ["bfs"],
    "Gaussian": ["gaussian"],
}
WITHOUT_END = ["--iterations", "1000000", "--check", "none"]
EACH_ONCE = "AGMSY"  # pairs in which each program is once
LOOK, FROM, TO = 2.5, 2, 6  # seconds; a pair is watched from the look of one number to that of the other

SETTLED_SOFTWARE = [
    "The programs of Table 1 as `workloads/` has them, at their default sizes (BS-L: four times that of BS-S), at a thousandth of a "
    "P100's speed, without end: those that do not wait for the device in between (all but Histogram and BFS) always have work.",
    f"Five of the 25 pairs, so that each program is in one. Fairness is Jain's index of the time in which each one's kernels were on the "
    f"device in {(TO - FROM) * LOOK:g} s, by weight, as `heddle top` tells it.",
    "The CUDA runtime's time slices are not there: under `open` a software device runs kernels of several programs side by side.",
    "Shares drawn at random: whole weights from 1 to 4.",
]
LONG_KERNELS = "kernels of Eigenvalues take 0.8 s here: beyond the debts that tfs keeps (four rounds of 100 ms)"
TURNS = "in 10 s a pair has about a hundred turns, and kernels end when they end"


def pair_on(node_of, workloads, pair, weights, dispatch):
    """Seconds that each of the pair had of a device of their own while they were watched."""
    commands = [(["--weight", str(weight)], [os.path.join(workloads, PROGRAMS[each.name][0]), *PROGRAMS[each.name][1:], *WITHOUT_END])
                for each, weight in zip(pair, weights)]
    with node_of("P100", 1, dispatch=dispatch, slowdown=SLOWDOWN) as node, node.running(commands) as names:
        looks = node.looks(TO + 1, LOOK)
    before, after = looks[FROM][1], looks[TO][1]
    if any(before.get(name, 0) == 0 for name in names):
        raise Failed(f"of {' and '.join(each.name for each in pair)} not both were at work after {FROM * LOOK:g} s")
    return [after[name] - before[name] for name in names]


def fairness_on(node_of, workloads, weights_of, name, title, progress):
    rows = {}
    for letter in EACH_ONCE:
        pair, weights = PAIRS[letter], weights_of(letter)
        label = f"{letter}: {pair[0].name}, {pair[1].name}" + ("" if weights == (1, 1) else f", {weights[0]} to {weights[1]}")
        rows[label] = []
        for dispatch in ("fs", "tfs"):
            progress(f"{name.lower()}: {label} under {dispatch}")
            had = pair_on(node_of, workloads, pair, weights, dispatch)
            rows[label].append(100 * jain([each / weight for each, weight in zip(had, weights)]))
    return Exhibit(name, title, "Jain's index, %", ["fs", "tfs"], rows, digits=1)


def on_software(node_of, workloads, seed, progress):
    """Figures 8 and 9 in small. `node_of(preset, count, ...)` is a Node of software devices."""
    load = [os.getloadavg()[0]]
    eight = fairness_on(node_of, workloads, lambda _: (1, 1), "Figure 8", "fairness of pairs with equal shares of one device", progress)
    eight.paper["tfs"] = 96
    nine = fairness_on(node_of, workloads, random_weights(seed), "Figure 9", "fairness of pairs with random shares of one device", progress)
    load.append(os.getloadavg()[0])
    eight.notes.append(f"The host has {os.cpu_count()} processors and had a load of {load[0]:.1f} before, {load[1]:.1f} at the end.")
    over = [100 * (figure.mean_of("tfs") / figure.mean_of("fs") - 1) for figure in (eight, nine)]
    short_kernels = statistics.fmean(tfs for label, (_, tfs) in eight.rows.items() if "Eigenvalues" not in label)
    claims = [
        at_least("figure 8: fairness of tfs, %", 96, eight.mean_of("tfs"), LONG_KERNELS, digits=1),
        at_least("figure 8: the best pair under tfs, %", 99.99, max(eight.values("tfs")), TURNS, digits=2),
        at_least("figure 8: tfs, all but Eigenvalues, % (our goal)", 99, short_kernels, TURNS, digits=1),
        Claim("figure 8: tfs over fs", "+19 %", f"{over[0]:+.1f} %", over[0] >= 0),
        Claim("figure 9: tfs over fs with random shares", "+29.3 %", f"{over[1]:+.1f} %", over[1] >= 0),
    ]
    return Reproduction("rain-software", "Rain: fairness of device schedulers", "on software devices", claims, [eight, nine],
                        SETTLED_SOFTWARE)
