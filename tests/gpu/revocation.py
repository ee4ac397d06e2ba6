#!/usr/bin/env python3
"""How soon a device is another's that a batch program computes on, and what that costs the batch program.

    revocation.py EPISODES --heddle BIN/heddle --kernel SECONDS (--goal SECONDS | --beside) [--requests N] [--slo 50ms]

EPISODES is workloads/episodes.cu. heddled has a deadline policy (priority:hard, or :soft) and [durability] level = "full".
A batch program updates its memory in place in kernels of about that length, without a pause; a user-facing one sends
requests of a few short kernels with pauses in between, so that each of them takes the device back. Counted is what
heddled measured: from the withdrawal of the lease (or, of workers that were terminated, from the decision) until the
device was free; requests within their SLO; work that was run again. Both programs must end with PASS.

With --beside heddled has priority:share: nothing is to be revoked, and 99 of 100 requests are to end within their SLO.

Exit status: 1 where that does not hold, nothing was revoked, or 99 of 100 took longer than the goal.
"""

import argparse
import json
import os
import subprocess
import sys
import time


class Node:
    def __init__(self, options):
        self.options = options

    def start(self, name, options, *words):
        command = [self.options.heddle, "run", "--name", name, *options, "--", self.options.program, *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def job(self, name):
        answer = subprocess.run([self.options.heddle, "ps", "--json"], capture_output=True, text=True, timeout=20)
        jobs = json.loads(answer.stdout).get("jobs", []) if answer.returncode == 0 else []
        return next((job for job in jobs if job.get("name") == name), {})


def batch(values, steps, bursts):
    return ["--size", values, "--steps", steps, "--launches", 1, "--gap", 0, "--iterations", bursts]


def steps_for(node, seconds):
    """How many steps a kernel of the batch program has that takes so long."""
    steps = 1
    while True:
        program = node.start("calibration", [], *batch(node.options.values, steps, 1 << 20), "--check", "none")
        usage, deadline = {}, time.monotonic() + 30
        while usage.get("launches", 0) < 4 and time.monotonic() < deadline:
            usage = node.job("calibration").get("usage", {})
            time.sleep(0.05)
        program.terminate()
        program.communicate(timeout=60)
        if usage.get("launches", 0) < 4:
            raise RuntimeError("the batch program does not compute")
        each = usage["kernel_ns"] / usage["launches"] / 1e9
        if each > seconds / 8:
            return max(1, round(steps * seconds / each))
        steps *= 4


def finish(program, what, limit):
    """Whether it passed, and what it has said otherwise."""
    try:
        output, errors = program.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        return False, f"{what} does not end within {limit} s"
    passed = program.returncode == 0 and "PASS" in output
    return passed, f"{what}: status {program.returncode}: {output.strip()[-200:]} {errors.strip()[-300:]}"


def milliseconds(value):
    return "-" if value is None else f"{value / 1e6:.1f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--kernel", required=True, type=float, help="seconds")
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--goal", type=float, help="seconds")
    goal.add_argument("--beside", action="store_true", help="requests run beside batch")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--slo", default="50ms")
    parser.add_argument("--values", type=int, default=1 << 22, help="of 4 bytes, which each kernel of the batch program overwrites")
    options = parser.parse_args()
    node = Node(options)
    steps = steps_for(node, options.kernel)
    # Long enough that a kernel ends between two requests, with another worker's start before it.
    pause = round(1000 * (options.kernel + 0.2))
    lasts = options.requests * (pause / 1000 + 0.1)
    runs = node.start("batch", [], *batch(options.values, steps, max(3, round(lasts / options.kernel))), "--check", "sample")
    deadline = time.monotonic() + 30
    while node.job("batch").get("usage", {}).get("launches", 0) < 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    serves = node.start("server", ["--class", "user-facing", "--slo", options.slo], "--size", 4096, "--steps", 50, "--launches", 4,
                        "--gap", pause, "--iterations", options.requests)
    seen, requests = {}, {}
    while serves.poll() is None and time.monotonic() < deadline + 4 * lasts:
        seen = node.job("batch") or seen
        requests = node.job("server").get("requests", requests)
        time.sleep(0.1)
    right, problems = True, []
    for passed, said in (finish(serves, "the server", 60), finish(runs, "the batch program", 4 * lasts + 60)):
        right &= passed
        problems += [] if passed else [said]
    revoked, usage = seen.get("revocations", {}), seen.get("usage", {})
    worst = revoked.get("p99_ns")
    met, missed = requests.get("met", 0), requests.get("missed", 0)
    goal = "none are wanted" if options.beside else f"goal {options.goal * 1000:g} ms"
    print(f"kernels of {options.kernel * 1000:g} ms: {revoked.get('count', 0)} revocations, from the withdrawal until the device is free p50 "
          f"{milliseconds(revoked.get('p50_ns'))}, p99 {milliseconds(worst)} ({goal})")
    print(f"  {revoked.get('terminated', 0)} by termination, from the decision p50 {milliseconds(revoked.get('terminated_p50_ns'))}, p99 "
          f"{milliseconds(revoked.get('terminated_p99_ns'))}; {revoked.get('not_terminated', 0)} were not possible")
    print(f"  requests within {options.slo}: {met} of {met + missed}, p50 {milliseconds(requests.get('p50_ns'))}, p99 "
          f"{milliseconds(requests.get('p99_ns'))}; run again {revoked.get('lost_ns', 0) / 1e9:.2f} s, beside {usage.get('busy_ns', 0) / 1e9:.2f} s of work")
    for problem in problems:
        print(f"FAIL {problem}")
    if options.beside:
        return 0 if right and not revoked.get("count") and met >= 0.99 * (met + missed) > 0 else 1
    decided = revoked.get("terminated_p99_ns") if revoked.get("terminated") else worst
    return 0 if right and revoked.get("count") and decided is not None and decided <= options.goal * 1e9 else 1


if __name__ == "__main__":
    sys.exit(main())
