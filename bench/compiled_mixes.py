#!/usr/bin/env python3
"""The same 16 jobs by plain nvcc and by heddle cc, with and without early frees: throughput, and memory held over time.

    compiled_mixes.py BUILD_DIR [--rounds 3] [--minutes M] [--mixes demo,memory] [--slowdown 6000] [--json FILE]

Each round runs the queue of every mix once for each way of compiling, in an order that turns from round to round, on a
heddled of the script's own under mgb-warps. With --minutes, rounds end earlier than --rounds says where another one
would take longer than that; there is always one. Throughput is told against nvcc's of the same round. Memory is what the devices'
ledgers hold, read every 20 ms: its mean over the run and its peak, as a share of what the devices have, and the product
of memory and time, which does not depend on how long a run takes.

mixes: demo    the demo's queue on the demo's devices
       memory  the same queue on devices that hold little more than its largest job
"""

import argparse
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MEMORY = {"demo": "128M", "memory": "80M"}  # of each device
NVCC, EAGER, LATE = "nvcc", "heddle cc", "heddle cc, no early frees"
PERIOD = 0.02  # seconds between two looks at the ledgers
LIMIT = 300  # seconds for one queue, which takes about 40


class Control:
    """heddled's control socket: one JSON object a packet (docs/wire-format.md)."""

    COMMAND, VERSION, TEXT = 400, 1, 16 * 1024

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)

    def ask(self, command):
        text = json.dumps(command).encode()
        body = struct.pack("<II", self.VERSION, len(text)) + text.ljust(self.TEXT, b"\0")
        self.socket.send(struct.pack("<II", self.COMMAND, 8 + len(body)) + body)
        answer = self.socket.recv(64 * 1024)
        _, _, _, length = struct.unpack_from("<IIII", answer)
        return json.loads(answer[16:16 + length])


class Ledger(threading.Thread):
    """What the devices hold, over time."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.control, self.over = Control(path), threading.Event()
        self.samples = []  # (seconds, bytes held)
        self.capacity = 0

    def run(self):
        while not self.over.wait(PERIOD):
            devices = self.control.ask({"command": "devices"})["devices"]
            self.capacity = sum(device["memory"] for device in devices)
            self.samples.append((time.monotonic(), sum(device["used"] for device in devices)))

    def stop(self):
        self.over.set()
        self.join()
        spans = [(b[0] - a[0], a[1]) for a, b in zip(self.samples, self.samples[1:])]
        held = sum(seconds * used for seconds, used in spans)
        length = sum(seconds for seconds, _ in spans) or 1
        return {"mean": held / length / self.capacity, "peak": max(used for _, used in self.samples) / self.capacity,
                "gib_seconds": held / 2**30}


class Node:
    """A heddled of one's own for one mix."""

    def __init__(self, build, mix, slowdown, directory):
        self.build, self.directory = build, directory
        os.makedirs(directory, mode=0o700)
        config = open(os.path.join(ROOT, "demo/heddle.toml")).read()
        config = re.sub(r"(?m)^memory = .*", f'memory = "{MEMORY[mix]}"', config)
        config = re.sub(r"(?m)^slowdown = .*", f"slowdown = {slowdown}", config)
        self.environment = {**os.environ, "HEDDLE_SOCKET": self.path(), "XDG_RUNTIME_DIR": directory}
        with open(os.path.join(directory, "heddle.toml"), "w") as out:
            out.write(config)
        status, output = self.heddle("daemon", "start", "--config", os.path.join(directory, "heddle.toml"))
        if status != 0:
            sys.exit(f"heddle daemon start: {output}")

    def path(self):
        return os.path.join(self.directory, "control")

    def heddle(self, *arguments, limit=60, **changes):
        """(exit status or None where it ran into the limit, output)"""
        # The devices are computed on the cores that the jobs prepare and check their results on: devices come first.
        nice = ["nice", "-n", "10"] if arguments[0] == "batch" else []
        # Output goes to a file: what the command leaves running would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen([*nice, os.path.join(self.build, "bin/heddle"), *arguments],
                                       env={**self.environment, **changes}, stdout=output, stderr=subprocess.STDOUT)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
                process.terminate()  # heddle batch ends its jobs
                process.wait()
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def stop(self):
        self.heddle("daemon", "stop")

    def stuck(self):
        """Who waits for what, for whoever has to find out why."""
        return self.heddle("ps")[1] + self.heddle("devices")[1]

    def batch(self, way, out):
        """Runs the queue; heddle batch's result, with the memory that was held."""
        os.makedirs(out, exist_ok=True)
        programs = "workloads" if way == NVCC else "tests/e2e/compiled"
        jobs = open(os.path.join(ROOT, "demo/jobs.toml.in")).read()
        with open(os.path.join(out, "jobs.toml"), "w") as file:
            file.write(jobs.replace("@WORKLOADS@", os.path.join(self.build, programs)))
        ledger = Ledger(self.path())
        ledger.start()
        eager = {LATE: {"HEDDLE_EAGER_FREE": "0"}}.get(way, {})
        watch = threading.Timer(LIMIT - 5, lambda: print(f"not done after {LIMIT - 5} s:\n{self.stuck()}", file=sys.stderr))
        watch.start()
        try:
            status, output = self.heddle("batch", os.path.join(out, "jobs.toml"), "--policy", "mgb-warps", "--workers",
                                         "auto", "--output", out, "--json-file", os.path.join(out, "result.json"),
                                         "--trace", os.path.join(out, "trace.json"), "--quiet", limit=LIMIT, **eager)
        finally:
            watch.cancel()
            memory = ledger.stop()
        if status not in (0, 1):
            sys.exit(f"heddle batch {'ended with status ' + str(status) if status else 'took too long'}: {output}")
        result = json.load(open(os.path.join(out, "result.json")))
        return {**result, "memory": memory}


def row(mix, way, results, against):
    ratios = [mine["throughput_per_minute"] / other["throughput_per_minute"] for mine, other in zip(results, against)
              if other["throughput_per_minute"]]

    def middle(value, form):
        return form.format(statistics.median(value(result) for result in results))

    return [mix, way, middle(lambda r: r["throughput_per_minute"], "{:.2f}"),
            f"{statistics.median(ratios):.3f}" if ratios else "-",
            f"{min(ratios):.3f}-{max(ratios):.3f}" if ratios else "-",
            middle(lambda r: r["mean_wait_s"], "{:.1f} s"), middle(lambda r: 100 * r["memory"]["mean"], "{:.1f} %"),
            middle(lambda r: 100 * r["memory"]["peak"], "{:.1f} %"), middle(lambda r: r["memory"]["gib_seconds"], "{:.2f}"),
            str(sum(r["crashed"] for r in results)), middle(lambda r: 100 * r["overrun"], "{:+.1f} %")]


def table(results):
    rows = [["mix", "compiled by", "jobs/min", "ratio", "range", "wait", "mean held", "peak held", "GiB s", "crashed",
             "overrun"]]
    for mix, ways in results.items():
        rows += [row(mix, way, runs, ways[NVCC]) for way, runs in ways.items()]
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def measure(options, nodes, results):
    out = os.path.join(options.build, "compiled_mixes")
    began = time.monotonic()
    for number in range(options.rounds):
        for mix, ways in results.items():
            for way in list(ways)[number % 3:] + list(ways)[:number % 3]:
                result = nodes[mix].batch(way, os.path.join(out, mix, f"{number}-{way.replace(' ', '-')}"))
                ways[way].append(result)
                print(f"{mix} {number + 1}/{options.rounds} {way}: {result['throughput_per_minute']:.2f} jobs/min, "
                      f"overrun {100 * result['overrun']:+.1f} %", file=sys.stderr, flush=True)
        passed = time.monotonic() - began
        if options.minutes and passed * (number + 2) / (number + 1) > 60 * options.minutes:
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="no round that would end later")
    parser.add_argument("--mixes", default="demo,memory")
    parser.add_argument("--slowdown", type=float, default=6000, help="of the devices; more where the host is slow")
    parser.add_argument("--json", help="every run's figures")
    options = parser.parse_args()
    results = {mix: {NVCC: [], EAGER: [], LATE: []} for mix in options.mixes.split(",")}
    with tempfile.TemporaryDirectory() as directory:
        nodes = {}
        try:
            for mix in results:
                nodes[mix] = Node(options.build, mix, options.slowdown, os.path.join(directory, mix))
            measure(options, nodes, results)
        finally:
            for node in nodes.values():
                node.stop()
    print(table(results))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    return 1 if any(r["crashed"] for ways in results.values() for runs in ways.values() for r in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
