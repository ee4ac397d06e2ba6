#!/usr/bin/env python3
"""What programs get of one GPU under each dispatch policy: shares of busy time while all of them always have work.

    shares.py PROGRAM --heddle BIN/heddle --config HEDDLE.TOML [--seconds 10] [--only NAME,...]

PROGRAM is workloads/episodes.cu; HEDDLE.TOML the node, without [dispatch]. For each case a heddled of its own: its jobs
run for as long as it takes, what each was busy for is read from `heddle ps` at the begin and the end of the window.
Goals: `token` holds each request within 1 point and exceeds no limit by more than a quota; `tfs` reaches a Jain index
of 0.99 over the weights; what one does not use goes to the others.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# name: dispatch policy, options of `heddle run` for each job, and the share that each is to get (None: what comes)
CASES = {
    "open": ("open", ["", ""], [None, None]),
    "fs": ("fs", ["", "", ""], [None, None, None]),
    "tfs-equal": ("tfs", ["", "", ""], [1 / 3, 1 / 3, 1 / 3]),
    "tfs-weights": ("tfs", ["--weight 1", "--weight 2", "--weight 5"], [1 / 8, 2 / 8, 5 / 8]),
    "las": ("las", ["", ""], [None, None]),
    "token-1-9": ("token", ["--share 0.1", "--share 0.9"], [0.1, 0.9]),
    "token-3-7": ("token", ["--share 0.3", "--share 0.7"], [0.3, 0.7]),
    "token-5-5": ("token", ["--share 0.5", "--share 0.5"], [0.5, 0.5]),
    "token-2-3-5": ("token", ["--share 0.2", "--share 0.3", "--share 0.5"], [0.2, 0.3, 0.5]),
    "token-idle-share": ("token", ["--share 0.2"], [1.0]),
    "token-limit": ("token", ["--share 0.2 --limit 0.4", "--share 0.2 --limit 0.3"], [0.4, 0.3]),
}


def busy_of(answer):
    """Seconds that each job's work was on a device, by the job's name."""
    return {job["name"]: job["usage"]["busy_ns"] / 1e9 for job in answer["jobs"] if job.get("usage")}


class Node:
    def __init__(self, heddle, config, policy):
        self.heddle, self.directory = heddle, tempfile.mkdtemp(prefix="heddle-shares-")
        self.environment = dict(os.environ, HEDDLE_SOCKET=self.directory + "/control", XDG_RUNTIME_DIR=self.directory)
        path = self.directory + "/heddle.toml"
        with open(path, "w", encoding="utf-8") as out:
            out.write(open(config, encoding="utf-8").read() + f'\n[dispatch]\npolicy = "{policy}"\n')
        self.command("daemon", "start", "--config", path)

    def command(self, *arguments):
        done = subprocess.run([self.heddle, *arguments], env=self.environment, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"heddle {' '.join(arguments)}: status {done.returncode}: {done.stderr[-400:]}")
        return done.stdout

    def busy(self):
        return busy_of(json.loads(self.command("ps", "--json")))

    def stop(self):
        self.command("daemon", "stop")


def window(node, jobs, seconds):
    """Busy seconds of each job in a window that begins when all of them are at work."""
    deadline = time.monotonic() + 30
    while True:
        first = node.busy()
        if all(first.get(name, 0) > 0.2 for name in jobs):
            break
        ended = [f"{name}: {process.returncode}" for name, process in jobs.items() if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            raise RuntimeError(f"not all at work: busy {first}, ended {ended}")
        time.sleep(0.2)
    begin, first = time.monotonic(), node.busy()
    time.sleep(seconds)
    last, end = node.busy(), time.monotonic()
    return [last[name] - first[name] for name in jobs], end - begin


def run(case, options):
    policy, arguments, wanted = CASES[case]
    node = Node(options.heddle, options.config, policy)
    jobs = {}
    try:
        program = [options.program, "--gap", "0", "--launches", "20", "--size", str(options.size), "--steps", str(options.steps),
                   "--iterations", "1000000", "--check", "none"]
        for number, more in enumerate(arguments):
            name = f"job-{number}"
            jobs[name] = subprocess.Popen([options.heddle, "run", "--name", name, *more.split(), "--", *program],
                                          env=node.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
        busy, lasted = window(node, jobs, options.seconds)
    finally:
        for process in jobs.values():
            process.send_signal(signal.SIGTERM)
        try:
            for process in jobs.values():
                process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            for process in jobs.values():
                process.kill()
        node.stop()
    shares = [each / lasted for each in busy]
    weighted = [share / want for share, want in zip(shares, wanted) if want]
    jain = sum(weighted) ** 2 / (len(weighted) * sum(each * each for each in weighted)) if weighted and sum(weighted) else None
    off = max((abs(share - want) for share, want in zip(shares, wanted) if want), default=None)
    print(f"{case:<18}{policy:<8}" + ("  ".join(f"{share:.3f}" + (f" of {want:.3f}" if want else "")
                                               for share, want in zip(shares, wanted))).ljust(50) +
          f" sum {sum(shares):.3f}" + (f"  Jain {jain:.4f}  off by {100 * off:.1f} points" if weighted else ""), flush=True)
    if policy == "tfs":
        return jain >= 0.99
    if case == "token-limit":
        return all(share <= want + 0.01 for share, want in zip(shares, wanted))
    return policy != "token" or case == "token-idle-share" and shares[0] > 0.9 or off is not None and off <= 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--config", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--size", type=int, default=4 << 20, help="values that a kernel computes")
    parser.add_argument("--steps", type=int, default=2000, help="that it computes of each")
    parser.add_argument("--only", default="", help="cases, separated by commas")
    options = parser.parse_args()
    missed = []
    for case in options.only.split(",") if options.only else CASES:
        try:
            if not run(case, options):
                missed.append(case)
        except (RuntimeError, KeyError, subprocess.TimeoutExpired) as error:
            print(f"{case:<18}did not run: {error}", flush=True)
            missed.append(case)
    print("all within their goals" if not missed else "missed: " + ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
