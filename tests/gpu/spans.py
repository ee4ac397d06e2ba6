#!/usr/bin/env python3
"""Where the time of a whole process goes, natively and under heddle: spans of a short and a long program, some at once.

    spans.py PROGRAM --heddle BIN/heddle [--at-once 1,6,24] [--passes N]

PROGRAM is spans.cu. For each way and number at once: the median over all processes of each span in milliseconds, the
median and the longest whole process, and how many programs a second came to their end. `start` is what happens before
main (under heddle: `heddle run` and the redirection), `end` what happens after the last span. Natively the context is
made in the span `context`; under heddle the worker's stands where the program first waits for it, mostly `copy-in`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SPANS = ("start", "count", "context", "memory", "host", "copy-in", "first-launch", "launches", "copy-out", "free", "check", "end")


def one(command):
    begin = time.time_ns()
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180)
    end = time.time_ns()
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
    at = [("begin", begin)]
    for line in done.stdout.splitlines():
        if line.startswith("span "):
            _, name, when = line.split()
            at.append(("start" if name == "main" else name, int(when)))
    at.append(("end", end))
    spans = {name: (when - before) / 1e6 for (_, before), (name, when) in zip(at, at[1:])}
    return spans, (end - begin) / 1e6


def measure(command, at_once, passes):
    """All processes of so many passes, and programs a second of the passes together."""
    runs, seconds = [], 0.0
    for _ in range(passes):
        begin = time.monotonic()
        with ThreadPoolExecutor(at_once) as pool:
            runs += list(pool.map(lambda _: one(command), range(at_once)))
        seconds += time.monotonic() - begin
    return runs, at_once * passes / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--at-once", default="1,6,24", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--ways", default="native,heddle", type=lambda text: text.split(","))
    options = parser.parse_args()
    prefix = {"native": [], "heddle": [options.heddle, "run", "--"]}
    print("medians in ms".ljust(26) + "".join(f"{name:>13}" for name in SPANS) + f"{'whole':>10}{'longest':>10}{'a second':>10}")
    ratios = []
    for kind in ("short", "long"):
        for at_once in options.at_once:
            passes = options.passes * 3 if at_once == 1 else options.passes
            whole, rate = {}, {}
            for way in options.ways:
                runs, rate[way] = measure([*prefix[way], options.program, kind], at_once, passes)
                whole[way] = statistics.median(total for _, total in runs)
                medians = [statistics.median(spans.get(name, 0) for spans, _ in runs) for name in SPANS]
                print(f"{kind}, {at_once} at once, {way}".ljust(26) + "".join(f"{value:13.2f}" for value in medians) +
                      f"{whole[way]:10.1f}{max(total for _, total in runs):10.1f}{rate[way]:10.2f}", flush=True)
            if len(whole) == 2:
                ratios.append(f"{kind}, {at_once} at once: whole process heddle over native {whole['heddle'] / whole['native']:.2f}, "
                              f"throughput {rate['heddle'] / rate['native']:.2f}")
    print("\n".join(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
