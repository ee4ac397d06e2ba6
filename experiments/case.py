"""CASE (papers/case.txt), section V: batches of jobs under SA, CG, Alg. 2, Alg. 3 and schedGPU."""

import dataclasses
import os
import random
import statistics
import sys

from exhibit import Claim, Exhibit, Reproduction, at_least, mean, number
from simulation import Scenario, seconds

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", "mixes"))
import mix as mixes  # noqa: E402

GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Nature:
    """A program alone on a P100. The paper tells none of it; see SETTLED."""

    alone: float  # seconds
    kernels: float  # the part of it with kernels on the GPU
    copies: float
    filled: float  # the part of the GPU's warps that its largest launch takes


NATURES = {
    "backprop": Nature(25, 0.25, 0.25, 0.40),
    "bfs": Nature(20, 0.20, 0.20, 0.50),
    "dwt2d": Nature(25, 0.25, 0.15, 0.30),
    "lavamd": Nature(60, 0.60, 0.05, 0.60),
    "needle": Nature(30, 0.35, 0.15, 0.10),
    "srad_v1": Nature(45, 0.45, 0.05, 0.35),
    "srad_v2": Nature(40, 0.40, 0.10, 0.35),
}
BURSTS = 100
# Table II, by workers of all GPUs together: 1:1, 2:1, 3:1, 5:1.
TABLE_II = {
    "P100": {3: (0, 3, 8, 0), 4: (14, 6, 6, 9), 5: (13, 13, 20, 22), 6: (16, 17, 16, 16)},
    "V100": {6: (0, 6, 17, 0), 8: (13, 19, 25, 13), 10: (15, 25, 20, 25), 12: (33, 29, 38, 50)},
}
WARPS_OF_BLOCK = 8


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    preset: str
    count: int
    warps: int  # that fit into one
    faster: float  # than a P100: kernels, not copies or the host
    workers: int  # of MGB, as the paper chose


P100 = Node("2 x P100", "P100", 2, 56 * 64, 1.0, 10)
V100 = Node("4 x V100", "V100", 4, 80 * 64, 1.65, 16)

SETTLED = [
    "W1 to W8 are drawn by `workloads/mixes/mix.py`, three seeds each; the paper's own draws are not told, nor how much memory its "
    "kinds of jobs take (but that a large one takes 4 to 13 GB, a small one 1 to 4). How many fit together decides most of all that "
    "follows, so the sizes were fitted to how many jobs crash under CG in its Table II, over both nodes together (see the claims for how "
    "near that comes).",
    "What a program does with its time, and how much of a GPU a launch fills: NATURES in `experiments/case.py`. About a third of the "
    "time is kernels, and they fill about a third of the GPU, as the paper's introduction has it of scientific programs "
    "(\"typically only uses 30 % of GPU resources\").",
    "A V100 runs kernels 1.65 times as fast as a P100, by peak rate; copies and the host take as long.",
    "CG: round robin, so many jobs a GPU as there are workers over GPUs; the best ratio without a crash counts, as in the paper. A job "
    "crashes when its memory is not there.",
    "schedGPU puts all jobs on the first GPU, as the paper does.",
    "Neural networks: the paper tells of none how much of a GPU it uses (but at most 25 % for detection); so figure 6 is shown over "
    "that part. The four parts at which it has the paper's numbers are fitted by that, and go into the 128 jobs.",
]


def job(name, memory, filled, node, host, copies, kernels):
    """Seconds of the host, of copies and of kernels, of a program alone on the node."""
    assert min(host, copies, kernels) >= 0
    return {
        "name": name,
        "memory": f"{round(memory * 1024)}M",
        "blocks": max(1, round(filled * node.warps / WARPS_OF_BLOCK)),
        "threads": 32 * WARPS_OF_BLOCK,
        "bursts": BURSTS,
        "host": seconds(host / BURSTS),
        "copy": seconds(copies / BURSTS),
        "busy": seconds(kernels / BURSTS),
        "kernel": seconds(kernels / BURSTS / 10),
    }


def rodinia_job(name, program, memory, node):
    nature = NATURES[program]
    kernels, copies = nature.alone * nature.kernels, nature.alone * nature.copies
    return job(name, memory, nature.filled, node, nature.alone - kernels - copies, copies, kernels / node.faster)


def draw(name, seed):
    """The kinds of the mix's jobs, in their order: (program, GiB)."""
    count, large = mixes.MIXES[name]
    drawn = mixes.Draw(1000 * seed + int(name[1:]))
    jobs = [drawn.one_of(mixes.LARGE) for _ in range(large)] + [drawn.one_of(mixes.SMALL) for _ in range(count - large)]
    drawn.shuffle(jobs)
    return [(program, memory) for program, memory, _ in jobs]


class Batches:
    """One batch under each policy on one node."""

    def __init__(self, simulator, node, jobs):
        self.simulator, self.node, self.jobs, self.known = simulator, node, jobs, {}

    def run(self, policy, workers):
        if (policy, workers) not in self.known:
            devices = [{"preset": self.node.preset, "count": self.node.count}]
            scenario = Scenario(devices, self.jobs, {"workers": workers})
            [self.known[policy, workers]] = self.simulator.run(scenario, [(policy, "open")])
        return self.known[policy, workers]

    def sa(self):
        return self.run("sa", self.node.count)

    def mgb(self, policy="mgb-warps"):
        return self.run(policy, self.node.workers)

    def cg(self, workers):
        return self.run(f"cg:{-(-workers // self.node.count)}", workers)

    def best_cg(self):
        """The most that CG completes in a time without a crash; one job a GPU never crashes."""
        without = [self.run(f"cg:{ratio}", ratio * self.node.count) for ratio in range(1, 7)]
        return max((run.throughput for run in without if not run.refused), default=None)

    def slowdown(self, run):
        """Per cent by which kernels take longer than under SA, the mean over jobs."""
        return 100 * (statistics.fmean(ours / alone for ours, alone in zip(run.busy(), self.sa().busy())) - 1)


def rodinia(simulator, node, name, seed):
    jobs = [rodinia_job(f"{program}-{at}", program, memory, node) for at, (program, memory) in enumerate(draw(name, seed))]
    return Batches(simulator, node, jobs)


def over_mixes(nodes_batches, columns, measure):
    """Rows by mix, means over the seeds; `measure` gives a number for each column, or None."""
    rows = {}
    for name in mixes.MIXES:
        measured = [measure(each) for each in nodes_batches[name]]
        rows[name] = [mean(column) for column in zip(*measured)]
    return rows


def throughput(batches, node, name, paper):
    def measure(each):
        sa, cg = each.sa().throughput, each.best_cg()
        return [cg / sa if cg else None, each.mgb().throughput / sa]
    return Exhibit(name, f"jobs a second on {node.name}, over SA", "over SA", ["CG", "Alg. 3"],
                   over_mixes(batches, ["CG", "Alg. 3"], measure), paper)


def crashes(batches, node):
    """Table II's columns for one node: by ratio of large to small jobs, both sizes of batch."""
    ratios = {"1:1": ("W1", "W5"), "2:1": ("W2", "W6"), "3:1": ("W3", "W7"), "5:1": ("W4", "W8")}
    rows = {}
    for workers, told in TABLE_II[node.preset].items():
        rows[f"{workers} workers"] = [
            100 * statistics.fmean(each.cg(workers).refused / len(each.jobs) for name in names for each in batches[name])
            for names in ratios.values()]
        rows[f"{workers}, the paper"] = list(told)
    return Exhibit("Table II", f"jobs that crash under CG on {node.name}", "%", list(ratios), rows, digits=0, has_mean=False)


NETWORK_PARTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FIGURE_6 = {"predict": 1.4, "train": 3.1, "detect": 1.0, "generate": 2.2}


def network_jobs(part, count, seed, name="network"):
    """Their launches fill the GPU while they last. No two are as long as each other: alike, they would go in step."""
    drawn, jobs = random.Random(seed), []
    for at in range(count):
        alone = 30 * drawn.uniform(0.9, 1.1)
        jobs.append(job(f"{name}-{at}", 1.0, 1.0, V100, alone * (1 - part - 0.02), 0.02 * alone, part * alone))
    return jobs


def networks(simulator, seed, progress):
    rows = {}
    for part in NETWORK_PARTS:
        progress(f"figure 6: {part:.0%}")
        batches = Batches(simulator, V100, network_jobs(part, 8, seed))
        schedgpu, mgb = (batches.run(policy, 8).throughput for policy in ("schedgpu", "mgb-warps"))
        rows[f"{100 * part:.0f} %"] = [mgb / schedgpu]
    return Exhibit("Figure 6", "eight networks alike on 4 x V100, Alg. 3 over schedGPU, by the part of its time in which one has kernels "
                   "on the GPU", "jobs a second", ["Alg. 3 over schedGPU"], rows, has_mean=False)


def part_for(figure, wanted):
    """Where the curve of figure 6 comes to what the paper has, between its points; None where it does not."""
    points = list(zip(NETWORK_PARTS, figure.values(figure.columns[0])))
    for (low, before), (high, after) in zip(points, points[1:]):
        if before <= wanted <= after:
            return low if after == before else low + (high - low) * (wanted - before) / (after - before)
    return points[0][0] if wanted <= points[0][1] else None


def random_networks(simulator, parts, seed):
    drawn, jobs = mixes.Draw(1000 * seed), []
    for at in range(128):
        name = drawn.one_of(sorted(parts))
        jobs += [{**network_jobs(parts[name], 1, 1000 * seed + at)[0], "name": f"{name}-{at}"}]
    batches = Batches(simulator, V100, jobs)
    return batches.run("mgb-warps", 32).throughput / batches.sa().throughput


def all_seeds(simulator, node, seeds, progress):
    batches = {}
    for name in mixes.MIXES:
        progress(f"{node.name}: {name}")
        batches[name] = [rodinia(simulator, node, name, seed) for seed in seeds]
    return batches


def batch_claims(figures, goals):
    claims = []
    for (node, figure, turnaround), (goal, over_cg, faster) in zip(figures, goals):
        ours, cg = figure.mean_of("Alg. 3"), figure.mean_of("CG")
        claims.append(at_least(f"{node.name}: Alg. 3 over SA, jobs a second", goal, ours, LESS))
        claims.append(at_least(f"{node.name}: the same over the best CG without a crash, % (as fitted)", over_cg, 100 * (ours / cg - 1), FAIR_CG, 0))
        claims.append(at_least(f"{node.name}: turnaround under SA over that under Alg. 3", faster, turnaround.mean_of("Alg. 3"), QUEUE))
    return claims


LESS = "it follows from how much of the time is kernels, which the paper does not tell (see what was settled)"
FAIR_CG = "CG with the best ratio that happens not to crash in one draw is close to what memory allows; the paper's did worse"
QUEUE = "all jobs stand in the queue at the beginning, so turnaround shrinks about as the whole batch does"
DISTANCE = "Alg. 2 refuses what does not find a place on the SMs for every block, and NATURES fill a third"


def simulate(simulator, seed, progress):
    seeds = [seed, seed + 1, seed + 2]
    batches = {node: all_seeds(simulator, node, seeds, progress) for node in (P100, V100)}
    progress("figures 4 and 5")
    def alg_2_and_3(each):
        return [each.mgb().throughput / each.mgb("mgb-sm").throughput]
    four = Exhibit("Figure 4", "jobs a second on 4 x V100, Alg. 3 over Alg. 2", "over Alg. 2", ["Alg. 3"],
                   over_mixes(batches[V100], ["Alg. 3"], alg_2_and_3), {"Alg. 3": 1.21})
    five = [throughput(batches[P100], P100, "Figure 5a", {"Alg. 3": 2.2}),
            throughput(batches[V100], V100, "Figure 5b", {"Alg. 3": 2.0})]
    two = [crashes(batches[node], node) for node in (P100, V100)]
    def shorter(each):
        return [each.sa().mean_turnaround / each.mgb().mean_turnaround]
    three = [Exhibit("Table III", f"turnaround under SA over that under Alg. 3, {node.name}", "times", ["Alg. 3"],
                     over_mixes(batches[node], ["Alg. 3"], shorter), {"Alg. 3": told}) for node, told in ((P100, 3.7), (V100, 2.8))]
    def slower(each):
        return [each.slowdown(each.mgb("mgb-sm")), each.slowdown(each.mgb())]
    table_4 = Exhibit("Table IV", "how much longer kernels take than under SA, 4 x V100", "%", ["Alg. 2", "Alg. 3"],
                      over_mixes(batches[V100], ["Alg. 2", "Alg. 3"], slower), {"Alg. 2": 1.8, "Alg. 3": 2.5}, digits=1)
    six = networks(simulator, seed, progress)
    parts = {name: part_for(six, wanted) for name, wanted in FIGURE_6.items()}
    claims = [at_least("4 x V100: Alg. 3 over Alg. 2, jobs a second", 1.21, four.mean_of("Alg. 3"), DISTANCE)]
    claims += batch_claims([(P100, five[0], three[0]), (V100, five[1], three[1])], [(2.2, 64, 3.7), (2.0, 41, 2.8)])
    mgb_refused = sum(each.mgb().refused for node in batches.values() for row in node.values() for each in row)
    claims.append(Claim("no job crashes under Alg. 3", "0", str(mgb_refused), mgb_refused == 0))
    for node, table in zip((P100, V100), two):
        ours, told = (statistics.fmean(value for name, row in table.rows.items() if name.endswith("paper") == is_paper for value in row)
                      for is_paper in (False, True))
        claims.append(Claim(f"Table II, {node.name}: mean of its cells, % (fitted, both nodes together)", number(told, 0),
                            number(ours, 0), None))
    slow = table_4.mean_of("Alg. 3")
    claims.append(Claim("Table IV: kernels are slower under Alg. 3 by at most, %", "2.5", number(slow, 1), slow <= 2.5,
                        "kernels of 16 jobs on four GPUs meet, and where they do not fit they slow each other"))
    for name, wanted in FIGURE_6.items():
        part = parts[name]
        claims.append(Claim(f"figure 6: {name}: {wanted} times schedGPU", f"{wanted}",
                            f"with kernels {100 * part:.0f} % of the time" if part else "for no part", None if part else False))
    if all(parts.values()):
        together = statistics.fmean(random_networks(simulator, parts, each) for each in seeds)
        claims.append(at_least("128 networks, 32 workers, over SA, with those fitted parts", 2.7, together, LESS))
    return Reproduction("case", "CASE: batches under SA, CG, Alg. 2, Alg. 3 and schedGPU", "simulated", claims,
                        [four, *five, *two, *three, table_4, six], SETTLED)
