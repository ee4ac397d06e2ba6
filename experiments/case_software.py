"""CASE's batches in small: real programs on software devices, under SA and Alg. 3."""

import dataclasses
import re

from case import NATURES, P100, V100, Node, mixes
from exhibit import Claim, Exhibit, Reproduction, at_least
from simulation import Failed

DRAWN = ["--scale", "128", "--work", "0.02"]  # 16 GiB to the 128 MiB of software.node_of
WARPS_OF_BLOCK = {"backprop": 8, "bfs": 8, "dwt2d": 8, "lavamd": 4, "srad_v1": 8, "srad_v2": 8}  # needle's launches are small by themselves


@dataclasses.dataclass(frozen=True, eq=False)
class Small:
    """A node of the paper's as software devices."""

    node: Node
    slowdown: int  # at which two cores keep up with all its devices
    figure: str
    shared: list  # the policies but SA
    paper: float  # Alg. 3 over SA, the mean of the mixes

    def policies(self):
        """And their workers, as the paper had them."""
        return {"sa": self.node.count, **{policy: self.node.workers for policy in self.shared}}


NODES = [Small(P100, 1200, "Figure 5a", ["mgb-warps"], 2.2), Small(V100, 3200, "Figure 5b", ["mgb-warps"], 2.0)]
SETTLED = [
    "Software devices of 128 MiB, " + " and ".join(f"{each.node.name} at a {each.slowdown:,}th of the speed" for each in NODES) + ": real "
    "programs whose kernels are executed, each of which checks its result.",
    f"W1 to W8 are drawn by `workloads/mixes/mix.py` with `{' '.join(DRAWN)}`, one seed; workers as the paper had them: one a GPU under SA, "
    + " and ".join(f"{each.node.workers} for {each.node.name}" for each in NODES) + " under MGB.",
    "With a 128th of the data a program has a 128th of its time on the host, and at that speed its kernels take as long as ever. So the host "
    "is paced as the devices are: behind each iteration a program stays on the host (`--gap`), with its memory, for as long as NATURES, which "
    "the simulation has too, has it there for its seconds in kernels on a P100. These are measured first, each kind of job alone.",
    "The part of a device that a launch fills is that of NATURES, too, by `--blocks`: about a third, as the paper says of scientific programs. "
    "(needle's are small as they are.)",
]
SLOWER = "where more kernels meet than fill the device they slow each other"


def kind_of(job):
    """What two jobs of a kind have in common: the command but for what follows the kind's options."""
    return tuple(job["command"][:job["command"].index("--seed")])


def gap_of(job, kernels):
    """Milliseconds on the host behind each iteration of a program that has so many seconds of kernels in all on a P100."""
    nature = NATURES[job["program"]]
    host = kernels * (1 - nature.kernels - nature.copies) / nature.kernels
    return round(1000 * host / int(job["command"][job["command"].index("--iterations") + 1]))


def blocks_of(job, node):
    """The option by which the program's launches fill as much of one of the node's devices as its nature has it."""
    if job["program"] not in WARPS_OF_BLOCK:
        return []
    return ["--blocks", str(max(1, round(NATURES[job["program"]].filled * node.warps / WARPS_OF_BLOCK[job["program"]])))]


def kernels_of_kinds(node_of, args):
    """Seconds of kernels of each kind of job, alone on a software P100 at its full speed."""
    jobs = [mixes.rodinia_job("kind", kind, args) for kind in mixes.LARGE + mixes.SMALL]
    for at, job in enumerate(jobs):
        job["name"] = f"kind-{at}"
        job["command"] += ["--seed", "1", "--check", args.check, *blocks_of(job, P100)]
    slowdown = NODES[0].slowdown
    with node_of(P100.preset, P100.count, slowdown=slowdown) as node:
        [result] = node.batch(mixes.as_toml(jobs, args), ["sa"], workers=P100.count)
    if result["crashed"]:
        raise Failed("; ".join(f"{job['name']}: {job['last_line']}" for job in result["jobs"] if job["exit_status"]))
    return {kind_of(job): done["kernel_ns"] / 1e9 / slowdown for job, done in zip(jobs, result["jobs"])}


def run_mix(node_of, small, args, kernels, progress):
    """{policy: what `heddle batch` says of the mix}."""
    jobs = mixes.draw_jobs(args)
    for job in jobs:
        job["command"] += ["--gap", str(gap_of(job, kernels[kind_of(job)] * small.slowdown)), *blocks_of(job, small.node)]
    results = {}
    for policy, workers in small.policies().items():
        progress(f"{small.node.name}: {args.mix} under {policy}")
        with node_of(small.node.preset, small.node.count, slowdown=small.slowdown) as node:
            [results[policy]] = node.batch(mixes.as_toml(jobs, args), [policy], workers=workers)
    return results


def on_software(node_of, workloads, seed, progress, only="", keep=lambda made: None):
    """Figure 5 in small. `node_of(preset, count, slowdown=)` is a Node of software devices; `only`: the cells in whose names, like
    "P100 W1", that regex is found.

    `keep` is given what there is so far behind each mix, which takes minutes: a run that is ended leaves that.
    """
    cells = {f"{small.node.preset} {name}": (small, name) for small in NODES for name in mixes.MIXES}
    chosen = [cell for name, cell in cells.items() if re.search(only, name)]
    if not chosen:
        raise Failed(f"no cell has '{only}' in its name; there are {', '.join(cells)}")

    def parse(name):
        return mixes.parse([name, *DRAWN, "--seed", str(seed), "--workloads", workloads])

    progress("each kind of job alone")
    kernels = kernels_of_kinds(node_of, parse("W1"))
    batches = {}
    for small, name in chosen:
        batches.setdefault(small, {})[name] = run_mix(node_of, small, parse(name), kernels, progress)
        keep(report(batches))
    return report(batches)


def exhibit(small, batches):
    """Of {mix: {policy: what `heddle batch` says of it}}."""
    rows = {name: [results[policy]["throughput_per_minute"] / results["sa"]["throughput_per_minute"] for policy in small.shared]
            for name, results in batches.items()}
    late = [f"{name} under {policy} ({100 * each['overrun']:.1f} %)" for name, results in batches.items() for policy, each in results.items()
            if not each["timing_valid"]]
    figure = Exhibit(small.figure, f"jobs a second on {small.node.name} in software, over SA", "over SA", small.shared, rows,
                     {"mgb-warps": small.paper})
    if len(batches) < len(mixes.MIXES):
        figure.notes.append(f"Of {len(mixes.MIXES)} mixes {len(batches)} ran.")
    if late:
        figure.notes.append("The host was late by more than 2 % of the kernels' time, so that times are not quite the devices' own: "
                            + ", ".join(late) + ".")
    return figure


def report(batches):
    """Of {node: {mix: {policy: what `heddle batch` says of it}}}."""
    figures = {small: exhibit(small, of_node) for small, of_node in batches.items()}
    crashed = sum(each["crashed"] for of_node in batches.values() for results in of_node.values() for each in results.values())
    claims = [at_least(f"{small.node.name}: Alg. 3 (mgb-warps) over SA, jobs a second", small.paper,
                       figure.mean_of("mgb-warps"), SLOWER) for small, figure in figures.items()]
    claims.append(Claim("no job crashes", "0", str(crashed), crashed == 0))
    return Reproduction("case-software", "CASE: batches under SA and Alg. 3", "on software devices", claims, list(figures.values()),
                        SETTLED)
