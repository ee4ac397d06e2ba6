#!/usr/bin/env python3
"""What the durability levels cost (docs/revocation.md): the same programs with `off`, `long`, `auto` and `full`, in one run.

    durability.py BUILD_DIR [--repetitions N] [--minutes M] [--workloads NAMES] [--mix] [--slowdown S] [--long-from T]
    durability.py BUILD_DIR --gpu [--mps on|auto]

Each repetition runs every workload once at each level, in turning order, under a heddled for each level. Figures are
ratios to `off` of the same repetition, their median and their quartiles. `cpu`: processor time of the program, its worker
and heddled together, which other processes on the machine hardly change. `time`: from the start of `heddle run` to its
end, of use only on a machine that does nothing else. Without --slowdown the devices do not pace: a kernel takes the time
that the host needs for it, and so do copies. With it kernels and copies take the modelled GPU's time, that many times;
and each figure is the difference of two runs, of n and of 2 n iterations, so that what a program pays once, for the first
launch of each kernel, is not in it. --long-from is to be that many times what it would be on the GPU, too.

--mix adds a queue of small jobs by `heddle batch` on two devices.

--gpu: on this machine's first GPU, under a heddled that is started for each level; figures are differences as with
--slowdown.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LEVELS = ("off", "long", "auto", "full")
CONFIG = """[daemon]
warm_workers = 1
kept_workers = 0
log_level = "off"
[durability]
level = "{level}"
long_from = "{long_from}"
"""
SOFTWARE = """[[device]]
preset = "P100"
count = {count}
memory = "512M"
slowdown = {slowdown}
copy_slowdown = {copy_slowdown}
"""
GPU = """[[gpu]]
index = 0
mps = "{mps}"
"""
# By name: what it is, program, options, their {n} on devices that do not pace, on those that do, and on GPUs.
WORKLOADS = {
    "queued": ("short launches in place, queued", "vecadd", "--size 16384 --streams 1 --iterations {n}", 10000, 200, 5000),
    "waited": ("a short launch and copies, each waited for", "vecadd", "--size {n}k --chunk 4096 --streams 1", 16384, 256, 65536),
    "streams": ("short launches and copies on three streams", "vecadd", "--size {n}k", 24576, 1024, 65536),
    "in place": ("a vector of {size} updated again and again", "vecadd",
                 "--size {elements} --chunk {elements} --streams 1 --iterations {n}", 30, 60, 5000),
    "srad": ("a solver, its image both ways in every iteration", "srad_v2", "--rows {side} --columns {side} --iterations {n}",
             60, 20, 100),
    "solver": ("a solver that waits in every iteration", "srad_v1", "--rows {side} --columns {side} --iterations {n}",
               60, 20, 6000),
    "train": ("a network's training", "nn", "--mode train --iterations {n}", 64, 4, 8000),
    "generate": ("a network with many small launches", "nn", "--mode generate --iterations {n}", 1000, 20, 20000),
    "long": ("long kernels that update {values} in place", "episodes",
             "--size {numbers} --steps {steps} --launches 1 --gap 0 --iterations {n}", 8, 4, 200),
}
UNPACED = {"elements": "8m", "size": "32 MiB", "side": 512, "values": "1 MiB", "numbers": "256k", "steps": 1000}
PACED = {"elements": "512k", "size": "2 MiB", "side": 128, "values": "64 KiB", "numbers": "16k", "steps": 100}
ON_GPU = {"elements": "16m", "size": "64 MiB", "side": 2048, "values": "16 MiB", "numbers": "4m", "steps": 20000}


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""  # gone meanwhile


class Node:
    """A heddled of its own, at one level."""

    def __init__(self, options, level):
        self.heddle = os.path.join(options.build, "bin", "heddle")
        self.directory = tempfile.mkdtemp()
        self.environment = dict(os.environ, HEDDLE_SOCKET=f"{self.directory}/control", XDG_RUNTIME_DIR=self.directory)
        config = f"{self.directory}/heddle.toml"
        with open(config, "w") as out:
            device = GPU if options.gpu else SOFTWARE
            out.write((CONFIG + device).format(level=level, long_from=options.long_from, count=2 if options.mix else 1,
                                               slowdown=options.slowdown, copy_slowdown=options.slowdown, mps=options.mps))
        self.ask("daemon", "start", "--config", config)
        self.heddled = self.look()["heddled"]["pid"]

    def ask(self, *words):
        return subprocess.run([self.heddle, *words], env=self.environment, check=True, capture_output=True,
                              text=True).stdout

    def look(self):
        devices = json.loads(self.ask("devices", "--json"))
        return {**devices, "heddled": json.loads(self.ask("daemon", "status", "--json"))}

    def settle(self):
        """Until the workers of what has ended are gone, and the next ones ready."""
        while True:
            devices = self.look()["devices"]
            ready = sum(device["warm_workers"] for device in devices)
            if all(d["warm_workers"] >= 1 and d["used"] == 0 for d in devices) and self.children() == ready:
                return
            time.sleep(0.02)

    def children(self):
        with open(f"/proc/{self.heddled}/task/{self.heddled}/children") as file:
            return sum(name_of(pid) == "heddle-worker" for pid in file.read().split())

    def cpu(self):
        """Processor seconds of heddled and of the workers that it has reaped."""
        with open(f"/proc/{self.heddled}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def run(self, command):
        """(processor seconds, seconds)"""
        self.settle()
        cpu, own, began = self.cpu(), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=600)
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: status {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
        self.settle()
        return self.cpu() - cpu + after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime, seconds

    def measure(self, command, paced):
        if not paced:
            return self.run(command(self, 1))
        once, twice = self.run(command(self, 1)), self.run(command(self, 2))
        return tuple(b - a for a, b in zip(once, twice))

    def end(self):
        self.ask("daemon", "stop")
        shutil.rmtree(self.directory, ignore_errors=True)


def programs(options):
    """name -> (what it is, node and 1 or 2 -> command)"""
    chosen = list(WORKLOADS) if options.workloads is None else [name for name in options.workloads.split(",") if name]
    sizes = ON_GPU if options.gpu else PACED if options.slowdown else UNPACED
    found = {}
    for name in chosen:
        what, program, arguments, unpaced, paced, on_gpu = WORKLOADS[name]
        count = on_gpu if options.gpu else paced if options.slowdown else unpaced

        def command(node, times, program=program, arguments=arguments, count=count):
            words = arguments.format(n=count * times, **sizes).split()
            path = os.path.join(options.build, "workloads", program)
            return [node.heddle, "run", "--", path, "--check", "none", *words]

        found[name] = (what.format(**sizes), command)
    if options.mix:
        jobs = os.path.join(options.scratch, "mix.toml")
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(jobs, "w") as out:
            subprocess.run([sys.executable, os.path.join(root, "workloads/mixes/mix.py"), "W1", "--scale", "128",
                            "--work", "0.05", "--check", "none", "--workloads",
                            os.path.join(options.build, "workloads")], check=True, stdout=out)
        found["W1"] = ("CASE's W1: 16 jobs on two devices, memory by 128",
                       lambda node, times: [node.heddle, "batch", jobs, "--workers", "4", "--output",
                                       tempfile.mkdtemp(dir=node.directory)])
    return found


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def told(values):
    middle, low, high = quartiles(values)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def table(found, what, levels):
    heads = [f"{level}: {figure}" for figure in ("cpu", "time") for level in levels[1:]]
    print("| workload | off: cpu, time | " + " | ".join(heads) + " |")
    print("| --- " * (2 + len(heads)) + "|")
    for name, runs in found.items():
        if not runs:
            continue
        ratios = {(level, i): [run[level][i] / max(run["off"][i], 1e-3) for run in runs] for level in levels for i in (0, 1)}
        cpu, seconds = (statistics.median(run["off"][i] for run in runs) for i in (0, 1))
        cells = [f"{name}: {what[name]}", f"{cpu:.2f} s, {seconds:.2f} s"]
        cells += [told(ratios[level, i]) for i in (0, 1) for level in levels[1:]]
        print("| " + " | ".join(cells) + " |", flush=True)


def repeat_beside_each_other(options, commands, turn, nodes, found):
    for level in turn:
        nodes[level] = nodes.get(level) or Node(options, level)
    for name, (_, command) in commands.items():
        found[name].append({level: nodes[level].measure(command, options.slowdown > 0) for level in turn})


def repeat_on_gpu(options, commands, turn, nodes, found):
    """A GPU is one heddled's."""
    seen = {name: {} for name in commands}
    for level in turn:
        nodes[level] = Node(options, level)
        for name, (_, command) in commands.items():
            seen[name][level] = nodes[level].measure(command, True)
        nodes.pop(level).end()
    for name, runs in seen.items():
        found[name].append(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--minutes", type=float, help="no repetition that would end later")
    parser.add_argument("--workloads", help="of " + ",".join(WORKLOADS))
    parser.add_argument("--mix", action="store_true")
    parser.add_argument("--slowdown", type=float, default=0)
    parser.add_argument("--long-from", default="5ms")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--mps", choices=("on", "off", "auto"), default="off")
    parser.add_argument("--levels", default=",".join(LEVELS), help="of which off is the first")
    options = parser.parse_args()
    options.levels = options.levels.split(",")
    if options.levels[0] != "off" or not set(options.levels) <= set(LEVELS):
        parser.error(f"--levels: off and some of {', '.join(LEVELS[1:])} are wanted, not {','.join(options.levels)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as options.scratch:
        commands = programs(options)
        nodes = {}
        found = {name: [] for name in commands}
        try:
            for number in range(options.repetitions):
                first = number % len(options.levels)
                turn = options.levels[first:] + options.levels[:first]
                repeat = repeat_on_gpu if options.gpu else repeat_beside_each_other
                repeat(options, commands, turn, nodes, found)
                passed = time.monotonic() - began
                print(f"repetition {number + 1} after {passed:.0f} s", file=sys.stderr, flush=True)
                if options.minutes and passed * (number + 2) / (number + 1) > 60 * options.minutes:
                    break
        except KeyboardInterrupt:
            print("ended early: the table is of the repetitions before", file=sys.stderr)
        finally:
            for node in nodes.values():
                node.end()
    table(found, {name: what for name, (what, _) in commands.items()}, options.levels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
