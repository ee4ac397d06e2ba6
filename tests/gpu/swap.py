#!/usr/bin/env python3
"""How fast a job's memory leaves the GPU for swap space and comes back, beside a program that computes.

    swap.py HOLDS --heddle BIN/heddle --log HEDDLED.LOG --neighbour PROGRAM [--mib 8192] [--rounds N] [--goal 45]

HOLDS is tests/e2e/programs/holds.cu: it changes all of its memory in each step and prints a sum of it. Before each step its
job is suspended and swapped out, and then resumed; what it prints must be what it prints undisturbed. The neighbour
(faults.cu's `work`) computes the whole time and must end with PASS. Times of the copies are heddled's, from its log: from the
first copy's begin to the last one's end, with the mapping of the device's memory; host memory stays mapped. Those of the
commands contain the worker's end, or the next worker's start, and in the first round the pinning of host memory: later rounds
find it pinned ([swap] pinned of heddled's configuration must allow as much), so that the first is told apart from them.

Exit status: 1 where anything of that does not hold, or the median of the later rounds' copies, each way, is slower than the
goal in GB/s.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


class Program:
    def __init__(self, options, directory):
        self.directory = directory
        self.process = subprocess.Popen([options.heddle, "run", "--name", "holds", "--", options.program, directory, str(options.rounds),
                                         str(options.mib)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.lines = []

    def reach(self, step):
        for line in self.process.stdout:
            self.lines.append(line)
            if line == f"step {step}\n":
                return True
        return False

    def go(self, step):
        with open(os.path.join(self.directory, str(step)), "w", encoding="ascii"):
            pass

    def end(self):
        output, errors = self.process.communicate(timeout=120)
        return "".join(self.lines) + output, errors


def heddle(options, *words):
    return subprocess.run([options.heddle, *words], capture_output=True, text=True, timeout=120)


def job(options):
    jobs = json.loads(heddle(options, "ps", "--json").stdout or "{}").get("jobs", [])
    return next((str(each["job"]) for each in jobs if each.get("name") == "holds"), None)


def run(options, disturb):
    """What it has printed, seconds of each `suspend --swap` and of each way back, and what went wrong."""
    out, back, problem = [], [], ""
    with tempfile.TemporaryDirectory(prefix="heddle-swap-") as directory:
        program = Program(options, directory)
        for step in range(1, options.rounds + 1):
            if not program.reach(step):
                problem = f"step {step} was not reached"
                break
            if disturb:
                begin = time.monotonic()
                told = heddle(options, "suspend", "--swap", job(options) or "0")
                out.append(time.monotonic() - begin)
                if told.returncode != 0:
                    problem = f"suspend: status {told.returncode}: {told.stderr.strip()}"
                begin = time.monotonic()
                program.go(step)
                heddle(options, "resume", job(options) or "0")
                if not problem and step < options.rounds:
                    program.lines.append(program.process.stdout.readline())  # the sum: all of it was read
                    back.append(time.monotonic() - begin)
            else:
                program.go(step)
        output, errors = program.end()
        if not problem and program.process.returncode != 0:
            problem = f"status {program.process.returncode}: {errors.strip()[-300:]}"
    return output, out, back, problem


def copies(log, what):
    """Seconds that heddled says the copies took, for lines that begin so."""
    pattern = re.compile(what + r".*copied in ([0-9.]+) (ns|us|ms|s|min)")
    with open(log, encoding="utf-8", errors="replace") as file:
        return [float(found[1]) * UNITS[found[2]] for found in map(pattern.search, file) if found]


def tell(name, options, took, whole):
    """Says what the rounds came to; whether the copies reach the goal."""
    ways = [("first round", took[:1], whole[:1]), ("later rounds", took[1:], whole[1:])]
    fast = False
    for rounds, copying, all_of_it in ways:
        if not copying or not all_of_it:
            print(f"FAIL: nothing was swapped {name} in the {rounds}")
            return False
        speed = options.mib * 2**20 / statistics.median(copying) / 1e9
        fast = speed >= options.goal
        print(f"{options.mib} MiB {name}, {rounds}: copies {statistics.median(copying):.3f} s, {speed:.1f} GB/s (goal {options.goal:g}); "
              f"all of it {statistics.median(all_of_it):.3f} s, {max(all_of_it):.3f} at most")
    return fast


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--log", required=True)
    parser.add_argument("--neighbour", required=True, type=os.path.abspath)
    parser.add_argument("--mib", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--goal", type=float, default=45)
    options = parser.parse_args()
    wanted, _, _, problem = run(options, False)
    if problem or "PASS" not in wanted:
        print(f"FAIL undisturbed: {problem or wanted[-300:]}")
        return 1
    neighbour = subprocess.Popen([options.heddle, "run", "--", options.neighbour, "work", str(12 * options.rounds)], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    seen, out, back, problem = run(options, True)
    neighbour_said = neighbour.communicate(timeout=300)[0].strip()
    right = not problem and seen == wanted and "PASS" in neighbour_said
    if problem or seen != wanted:
        print(f"FAIL: {problem or 'it prints something else'}")
    if "PASS" not in neighbour_said:
        print(f"FAIL the neighbour: {neighbour_said[-300:]}")
    for name, what, whole in (("out", "lie in swap space", out), ("in", "is back on device", back)):
        right &= tell(name, options, copies(options.log, what), whole)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
