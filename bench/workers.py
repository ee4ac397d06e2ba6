#!/usr/bin/env python3
"""How many jobs of a batch are to run at once: `auto` against fixed numbers, on simulated mixes.

    bench/workers.py build/dev                     # the table of docs/results
    bench/workers.py build/dev --mixes w1,host-bound --devices 1 --seeds 3

Each mix is drawn by seed, simulated (`heddle sim`) with 1, 2, ... jobs at once and with auto, and judged by the time
until its last job has ended: how much later auto is done than the best fixed number.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

POLICIES = ["mgb-warps", "mgb-sm", "schedgpu"]
DISPATCHES = ["open", "fs"]


def job(name, count, memory_mib, blocks, bursts, host_ms, busy_ms, copy_ms=0, tasks=1, kernel_ms=1):
    return dict(name=name, count=count, memory=f"{memory_mib}M", blocks=blocks, bursts=bursts, host=f"{host_ms}ms",
                busy=f"{busy_ms}ms", copy=f"{copy_ms}ms", tasks=tasks, kernel=f"{min(kernel_ms, busy_ms)}ms")


def drawn(rng, name, memory, blocks, seconds, busy_part, tasks=(1, 1)):
    """One job whose figures are drawn evenly from the ranges; `busy_part` of its time it has work on the device."""
    burst = rng.randint(20, 200)
    busy = max(1, round(burst * rng.uniform(*busy_part)))
    bursts = max(1, round(rng.uniform(*seconds) * 1000 / burst))
    count = rng.randint(*tasks)
    return job(name, 1, rng.randint(*memory), rng.randint(*blocks), max(1, bursts // count), burst - busy, busy,
               tasks=count, kernel_ms=rng.choice([1, 5, 20]))


LARGE = dict(memory=(4096, 10240), blocks=(100, 448), seconds=(10, 40), busy_part=(0.3, 0.9))
SMALL = dict(memory=(1024, 4096), blocks=(30, 200), seconds=(5, 20), busy_part=(0.2, 0.7))


def of_kinds(rng, jobs, large, small, first=LARGE, second=SMALL):
    """`jobs` jobs of two kinds, `large` of the first for `small` of the second, in an order that is drawn."""
    kinds = [first if i % (large + small) < large else second for i in range(jobs)]
    rng.shuffle(kinds)
    return [drawn(rng, f"job-{i}", **kind) for i, kind in enumerate(kinds)]


def case_mix(jobs, large, small):
    return lambda rng, devices: of_kinds(rng, jobs, large, small)


def alike(count_a_device, **figures):
    return lambda rng, devices: [drawn(rng, f"job-{i}", **figures) for i in range(count_a_device * devices)]


MIXES = {
    # CASE, Table I: 16 and 32 jobs, large to small 1:1, 2:1, 3:1, 5:1 (our draw, not its programs).
    "w1": case_mix(16, 1, 1), "w2": case_mix(16, 2, 1), "w3": case_mix(16, 3, 1), "w4": case_mix(16, 5, 1),
    "w5": case_mix(32, 1, 1), "w6": case_mix(32, 2, 1), "w7": case_mix(32, 3, 1), "w8": case_mix(32, 5, 1),
    # Little memory, one fills the device: more at once bring nothing.
    "device-bound": alike(12, memory=(200, 800), blocks=(448, 600), seconds=(5, 20), busy_part=(0.9, 1)),
    # Mostly on the host: many at once are needed.
    "host-bound": alike(16, memory=(200, 800), blocks=(100, 448), seconds=(10, 30), busy_part=(0.05, 0.15)),
    # Small kernels, always there.
    "small-kernels": alike(16, memory=(200, 800), blocks=(10, 60), seconds=(5, 20), busy_part=(0.8, 1)),
    # Nearly all of the memory each, half of the time on the host.
    "memory-bound": alike(8, memory=(7000, 15000), blocks=(100, 448), seconds=(5, 20), busy_part=(0.4, 0.6)),
    # Of two seconds, many.
    "short": alike(40, memory=(500, 4000), blocks=(50, 448), seconds=(1, 3), busy_part=(0.2, 0.8)),
    # Long ones among short ones.
    "long-short": lambda rng, devices: of_kinds(rng, 24 * devices, 1, 7, dict(LARGE, seconds=(40, 80)),
                                                dict(SMALL, seconds=(1, 4))),
    # Several tasks, their memory given back in between.
    "many-tasks": alike(12, memory=(1000, 12000), blocks=(50, 448), seconds=(10, 30), busy_part=(0.2, 0.8),
                        tasks=(3, 8)),
}


def toml_of(devices, jobs, context):
    lines = ["[[device]]", 'preset = "P100"', f'context = "{context}"', f"count = {devices}", ""]
    for each in jobs:
        lines.append("[[job]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in each.items()]
    return "\n".join(lines) + "\n"


def numbers(devices, jobs):
    """Fixed numbers of jobs: 1 to 8 a device, then further apart, then all."""
    return sorted({n for n in [k * devices for k in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)] if n < jobs} | {jobs})


def simulate(heddle, path, policies, dispatches, workers):
    command = [heddle, "sim", path, "--policy", ",".join(policies), "--dispatch", ",".join(dispatches), "--workers",
               ",".join(map(str, workers)), "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def compare(heddle, mix, devices, seed, policies, dispatches, context, directory):
    """(policy, dispatch) -> number of jobs at once, or "auto" -> (seconds until all were done, most at once)"""
    jobs = MIXES[mix](random.Random(f"{mix}/{devices}/{seed}"), devices)
    path = os.path.join(directory, "scenario.toml")
    with open(path, "w") as file:
        file.write(toml_of(devices, jobs, context))
    found = {}
    for run in simulate(heddle, path, policies, dispatches, numbers(devices, len(jobs)) + ["auto"]):
        assert run["completed"] == len(jobs), (mix, run["policy"], run["workers"], run["completed"])
        found.setdefault((run["policy"], run["dispatch"]), {})[run["workers"]] = (run["makespan"], run["most_at_once"])
    return found


class Row:
    """One mix under one policy: by how many per cent auto, and five a device, were behind the best fixed number."""

    def __init__(self, mix, devices, policy, dispatch, draws):
        self.name = (mix, devices, policy, dispatch)
        fixed = [number for number in draws[0] if number != "auto"]

        def total(number):
            return sum(draw[number][0] for draw in draws)

        def behind(number):
            return (total(number) / total(self.best) - 1) * 100

        self.best = min(fixed, key=lambda number: (total(number), int(number)))
        self.auto = behind("auto")
        self.five = behind(min(fixed, key=lambda number: abs(int(number) - 5 * devices)))
        self.most = [draw["auto"][1] for draw in draws]
        # Against the number that is best for the very draw, which nobody knows beforehand.
        self.draws = [(draw["auto"][0] / min(draw[number][0] for number in fixed) - 1) * 100 for draw in draws]

    def text(self):
        cells = [*self.name, self.best, f"{min(self.most)} to {max(self.most)}", f"{self.auto:.1f} %",
                 f"{max(self.draws):.1f} %", f"{self.five:.1f} %"]
        return "| " + " | ".join(map(str, cells)) + " |"


def summary(rows, limit):
    auto, draws = [row.auto for row in rows], [draw for row in rows for draw in row.draws]
    return (f"{len(rows)} mixes: auto {statistics.mean(auto):.2f} % behind the best number on average, at worst "
            f"{max(auto):.1f} %, over {limit:g} % in {sum(each > limit for each in auto)}. {len(draws)} draws, each "
            f"against its own best: {statistics.mean(draws):.2f} %, {max(draws):.1f} %, "
            f"{sum(each > limit for each in draws)}. Five a device: {statistics.mean(row.five for row in rows):.2f} %, "
            f"{max(row.five for row in rows):.1f} %, {sum(row.five > limit for row in rows)}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build directory")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--devices", default="1,2,4")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--dispatches", default=",".join(DISPATCHES))
    parser.add_argument("--seeds", type=int, default=5, help="draws of each mix")
    parser.add_argument("--context", default="500M", help="memory of a device for each job there")
    parser.add_argument("--limit", type=float, default=5, help="per cent")
    parser.add_argument("--worst", type=int, help="show only so many rows, the worst")
    options = parser.parse_args()
    heddle = os.path.join(options.build, "bin", "heddle")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for mix in options.mixes.split(","):
            for devices in map(int, options.devices.split(",")):
                draws = [compare(heddle, mix, devices, seed, options.policies.split(","),
                                 options.dispatches.split(","), options.context, directory)
                         for seed in range(1, options.seeds + 1)]
                rows += [Row(mix, devices, *key, [draw[key] for draw in draws]) for key in draws[0]]
    print(summary(rows, options.limit) + "\n")
    print("| mix | devices | policy | dispatch | best number | auto: most at once | auto behind the best | a draw, at "
          "worst | five a device behind the best |\n|" + " --- |" * 9)
    shown = sorted(rows, key=lambda row: -row.auto)[:options.worst] if options.worst is not None else rows
    for row in shown:
        print(row.text())


if __name__ == "__main__":
    sys.exit(main())
