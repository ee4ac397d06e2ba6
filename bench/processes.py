#!/usr/bin/env python3
"""Whole short processes under heddle, on a software device that does not pace: alone, six and 24 at once, with workers
that stand ready and with workers that are started for each task. All in one run, passes in turn; figures are ratios.

    processes.py BUILD_DIR [--program PROGRAM] [--passes N]

PROGRAM (default: the workload vecadd) must end with status 0. A process's time is from the start of `heddle run` to its
end. `of the time alone` compares medians with the same way's alone; `a second` counts processes that came to their end,
`of the rate alone` compares that. On a GPU, and against native runs: tests/gpu/run.sh spans.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = (1, 6, 24)
WAYS = {"ready": 24, "started": 0}  # warm_workers
CONFIG = """[daemon]
warm_workers = {warm}
kept_workers = 0
log_level = "off"
[[device]]
preset = "P100"
count = 1
memory = "4G"
slowdown = 0
copy_slowdown = 0
"""


class Heddled:
    """A heddled of its own, in a directory of its own."""

    def __init__(self, build, warm):
        self.heddle = os.path.join(build, "bin", "heddle")
        self.warm = warm
        self.directory = tempfile.mkdtemp()
        self.environment = dict(os.environ, HEDDLE_SOCKET=f"{self.directory}/control", XDG_RUNTIME_DIR=self.directory)
        config = f"{self.directory}/heddle.toml"
        with open(config, "w") as out:
            out.write(CONFIG.format(warm=warm))
        self.ask("daemon", "start", "--config", config)

    def ask(self, *words):
        return subprocess.run([self.heddle, *words], env=self.environment, check=True, capture_output=True, text=True)

    def one(self, program):
        begin = time.monotonic()
        done = subprocess.run([self.heddle, "run", "--", program], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: status {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
        return time.monotonic() - begin

    def measure(self, program, at_once):
        """Times of so many processes that begin together, and how many a second came to their end."""
        time.sleep(1 if self.warm else 0.1)  # workers of the pass before are replaced
        begin = time.monotonic()
        with ThreadPoolExecutor(at_once) as pool:
            times = list(pool.map(lambda _: self.one(program), range(at_once)))
        return times, at_once / (time.monotonic() - begin)

    def end(self):
        self.ask("daemon", "stop")
        shutil.rmtree(self.directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--program", type=os.path.abspath)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    program = options.program or os.path.join(options.build, "workloads", "vecadd")
    if not os.path.exists(program):
        print(f"there is no {program}: build it, or name another with --program", file=sys.stderr)
        return 2
    times = {(way, at_once): [] for way in WAYS for at_once in AT_ONCE}
    rates = {key: [] for key in times}
    daemons = {way: Heddled(options.build, warm) for way, warm in WAYS.items()}
    try:
        for _ in range(options.passes):
            for way, at_once in times:
                seconds, rate = daemons[way].measure(program, at_once)
                times[way, at_once] += seconds
                rates[way, at_once].append(rate)
    finally:
        for daemon in daemons.values():
            daemon.end()
    print(f"{'workers':<10}{'at once':>8}{'median ms':>11}{'longest':>9}{'of the time alone':>19}{'a second':>10}{'of the rate alone':>19}")
    for (way, at_once), seconds in times.items():
        median, rate = statistics.median(seconds), statistics.median(rates[way, at_once])
        print(f"{way:<10}{at_once:>8}{1000 * median:>11.1f}{1000 * max(seconds):>9.1f}"
              f"{median / statistics.median(times[way, 1]):>19.2f}{rate:>10.1f}{rate / statistics.median(rates[way, 1]):>19.2f}")
    for at_once in AT_ONCE:
        ratio = statistics.median(times["ready", at_once]) / statistics.median(times["started", at_once])
        print(f"{at_once} at once: with workers ready {ratio:.2f} of the time with workers started for each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
