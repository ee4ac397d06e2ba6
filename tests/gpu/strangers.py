#!/usr/bin/env python3
"""Programs of other authors on a GPU, natively and under heddle: the same outcome, and how long each whole process takes.

    strangers.py DIRECTORY --heddle BIN/heddle --out DIRECTORY [--only REGEX] [--share I/N] [--stop-after SECONDS]
                 [--ways alone,among] [--passes N]

DIRECTORY holds hecbench/ (zjin-lcf/HeCBench) and cuda-samples/ (NVIDIA/cuda-samples), or one of them, as their
repositories have them. Each program is built by its own Makefile (HeCBench) or by plain nvcc (cuda-samples) for the
machine's GPU, with PTX. It runs natively alone, under heddle alone, then among others of the list, AT ONCE (six) at a
time, natively and under heddle in turns, PASSES times each: medians are compared, and one native pass with the others,
which tells how much of a ratio is chance. What it comes to natively, a failure of its own too, is what it has to come to
under heddle each time; what takes longer than LIMIT natively is left out.

Outcomes: same; refused (heddle or the runtime says by name what it does not serve); fault (under MPS another program's
fault ended it, and heddle said so); WRONG. What was done stays in --out, so that a run that was ended goes on from
there. Exit status: 1 where anything was wrong.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

WAYS = ("alone", "among")
SHARED_FAULT = "whose programs share their faults"  # as heddle says it to a bystander (daemon/shared_faults.cc)
WORST = 1.3  # how much longer a whole process may take than natively
FAILED = re.compile(r"\b(FAIL|FAILED|FAILURE|MISMATCH|ERROR:? )|\bincorrect\b|Test failed", re.I)
PASSED = re.compile(r"\b(PASS|PASSED|SUCCESS|Test passed|OK)\b", re.I)
REFUSED = re.compile(r"^heddle: .*(not served|not supported|cannot|no PTX|does not).*|.*(operation not supported|"
                     r"cudaErrorNotSupported|CUDA_ERROR_NOT_SUPPORTED|\b801\b).*", re.M)
# Headers of what is no part of the CUDA runtime, cuBLAS or cuRAND, or needs a screen.
FOREIGN = re.compile(r"#\s*include\s*[<\"][^>\"]*(GL/|GLFW|glut|vulkan|EGL|FreeImage|d3d|nvsci|mpi\.h|npp|nvjpeg|cufft|cusolver|"
                     r"cusparse|nvrtc|nvvm|nvJitLink)[^>\"]*")


def run(command, directory, limit, environment=None):
    """(exit status or None at the limit, output, seconds). Ends everything that the command started."""
    begin = time.monotonic()
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, output.decode(errors="replace"), time.monotonic() - begin


def outcome(status, output):
    """What a run came to, without the times and numbers that differ from run to run."""
    if status is None:
        return "time limit"
    if status != 0:
        return f"exit {status}"
    return "says FAIL" if FAILED.search(output) else "right"


class Program:
    def __init__(self, suite, name, source):
        self.suite, self.name, self.source = suite, name, source
        self.command = None  # relative to its directory
        self.seen = {}       # way -> [(outcome, seconds, last lines)]

    @property
    def label(self):
        return f"{self.suite}/{self.name}"

    def build(self, options):
        """Builds a copy; returns why it could not be built, or None."""
        self.directory = os.path.join(options.out, "built", self.suite, self.name, self.name)
        stamp = os.path.join(self.directory, ".command")
        if os.path.exists(stamp):
            self.command = json.load(open(stamp))
            return None
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.copytree(self.source, self.directory)
        why = self.build_hecbench(options) if self.suite == "hecbench" else self.build_sample(options)
        if why is None:
            with open(stamp, "w") as out:
                json.dump(self.command, out)
        return why

    def build_hecbench(self, options):
        self.link_siblings()
        status, output, _ = run(["make", f"ARCH=sm_{options.sm}"], self.directory, 400)
        if status != 0:
            return last_error(output)
        _, planned, _ = run(["make", "-n", f"ARCH=sm_{options.sm}", "run"], self.directory, 60)
        lines = [line.strip() for line in planned.splitlines() if line.strip().startswith("./")]
        if not lines:
            return "its Makefile names no run"
        if re.search(r"[|<>&;$`]", lines[0]):
            return f"its run needs a shell: {lines[0]}"
        self.command = lines[0].split()
        return None

    def link_siblings(self):
        """What its sources and its Makefile name in directories beside their own is found there."""
        named = set()
        for place, _, files in os.walk(self.directory):
            for name in files:
                if name.endswith((".cu", ".cpp", ".c", ".h", ".hpp", ".cuh")) or name == "Makefile":
                    named.update(re.findall(r"\.\./([\w+.-]+)", open(os.path.join(place, name), errors="replace").read()))
        for name in named:
            there, here = (os.path.join(os.path.dirname(place), name) for place in (self.source, self.directory))
            if os.path.isdir(there) and not os.path.exists(here):
                os.symlink(there, here)

    def build_sample(self, options):
        sources = sorted(name for name in os.listdir(self.directory) if name.endswith((".cu", ".cpp", ".c")))
        text = "".join(open(os.path.join(self.directory, name), errors="replace").read() for name in os.listdir(self.directory)
                       if name.endswith((".cu", ".cpp", ".c", ".h", ".cuh", ".txt")))
        found = FOREIGN.search(text)
        if found:
            return f"needs {found.group(1)}"
        flags = ["-lcublas"] if "cublas" in text else []
        flags += ["-lcurand"] if "curand" in text else []
        flags += ["-rdc=true", "-lcudadevrt"] if "CUDA_SEPARABLE_COMPILATION ON" in text else []
        flags += ["-Xcompiler", "-fopenmp"] if "omp.h" in text else []
        flags += ["-lcuda"] if re.search(r"\bcu[A-Z][A-Za-z]+\(", text) else []
        common = os.path.join(options.directory, "cuda-samples", "Common")
        status, output, _ = run(["nvcc", "-O3", "-w", "-std=c++17", f"-I{common}", "-I.", "-gencode",
                                 f"arch=compute_{options.sm},code=[compute_{options.sm},sm_{options.sm}]",
                                 *sources, "-o", self.name, *flags], self.directory, 400)
        if status != 0:
            return last_error(output)
        self.command = [f"./{self.name}"]
        return None

    def execute(self, way, prefix, options):
        command = [*prefix, os.path.join(self.directory, self.command[0]), *self.command[1:]]
        limit = options.limit if way.startswith("native") else 4 * options.limit
        status, output, seconds = run(command, self.directory, limit)
        text = "\n".join(output.strip().splitlines()[-6:])
        refusal = REFUSED.search(output)
        self.seen.setdefault(way, []).append(
            {"outcome": outcome(status, output), "seconds": seconds, "refusal": refusal.group(0)[:160] if refusal else "",
             "passes": bool(PASSED.search(output)), "shared_fault": SHARED_FAULT in output, "text": text[-600:]})

    def median(self, way):
        return statistics.median(run["seconds"] for run in self.seen[way])

    def verdict(self, way):
        """Of a run under heddle against the native ones."""
        ours = self.odd_one(way)
        if not ours:
            return "same"
        if ours.get("shared_fault"):
            return "fault"
        return "refused" if ours["refusal"] else "WRONG"

    def odd_one(self, way):
        """A run under heddle that came to what no native one did, rather one without a refusal; or None."""
        native = self.seen["native " + way]
        outcomes, passes = {run["outcome"] for run in native}, all(run["passes"] for run in native)
        odd = [run for run in self.seen["heddle " + way] if run["outcome"] not in outcomes or (passes and not run["passes"])]
        return min(odd, key=lambda run: bool(run["refusal"]) + run.get("shared_fault", False), default=None)

    def chance(self, way):
        """The slowest native run over the median of the others, where there are others."""
        times = sorted(run["seconds"] for run in self.seen["native " + way])
        return times[-1] / statistics.median(times[:-1]) if len(times) > 1 else 1


def last_error(output):
    found = re.search(r".*(?:error|undefined reference|No such file)[ :].*", output)
    return (found.group(0) if found else (output.strip().splitlines() or [""])[-1])[-120:]


def programs(options):
    found = []
    base = os.path.join(options.directory, "hecbench", "src")
    for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        if name.endswith("-cuda") and os.path.exists(os.path.join(base, name, "Makefile")):
            found.append(Program("hecbench", name, os.path.join(base, name)))
    base = os.path.join(options.directory, "cuda-samples", "Samples")
    for group in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        for name in sorted(os.listdir(os.path.join(base, group))) if os.path.isdir(os.path.join(base, group)) else []:
            place = os.path.join(base, group, name)
            if os.path.isdir(place) and any(file.endswith((".cu", ".cpp")) for file in os.listdir(place)):
                found.append(Program("cuda-samples", name, place))
    found = [program for program in found if re.search(options.only, program.label)]
    mine, of = (int(number) for number in options.share.split("/"))
    return [program for at, program in enumerate(found) if at % of == mine - 1]


class Record:
    """What was seen so far, in a file that the next run goes on from."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.seen = json.load(open(path)) if os.path.exists(path) else {}

    def keep(self, program):
        with self.lock:
            self.seen[program.label] = program.seen
            with open(self.path + ".new", "w") as out:
                json.dump(self.seen, out, indent=1)
            os.replace(self.path + ".new", self.path)


def alone(chosen, record, options, deadline):
    for program in chosen:
        for kind, prefix in (("native", options.native), ("heddle", [options.heddle, "run", "--"])):
            if kind + " alone" in program.seen or time.monotonic() > deadline:
                continue
            if kind == "heddle" and too_long(program):
                continue
            program.execute(kind + " alone", prefix, options)
            record.keep(program)


def too_long(program):
    """Whether it ran into the limit natively."""
    return any(run["outcome"] == "time limit" for way in WAYS for run in program.seen.get("native " + way, []))


def among(chosen, record, options, deadline):
    """Everybody, AT ONCE at a time, in the same order each pass."""
    turns = (("native among", options.native), ("heddle among", [options.heddle, "run", "--"]))
    for number in range(options.passes):
        for way, prefix in turns:
            mine = [program for program in chosen if not too_long(program) and len(program.seen.get(way, [])) <= number]
            if not mine:
                continue
            if time.monotonic() > deadline:
                return False
            with ThreadPoolExecutor(options.at_once) as pool:
                list(pool.map(lambda program: program.execute(way, prefix, options), mine))
            for program in mine:
                record.keep(program)
    return True


def table(chosen, options):
    entries, ratios = {"refused": [], "fault": [], "WRONG": []}, {way: [] for way in WAYS}
    print(f"{'program':<44} {'native':>8} {'heddle':>8} {'ratio':>6}   {'native':>8} {'heddle':>8} {'ratio':>6}")
    print(f"{'':<44} {'alone, s':>8}{'':>18} {str(options.at_once) + ' at once':>8}")
    for program in chosen:
        cells = []
        for way in WAYS:
            if "heddle " + way not in program.seen:
                cells.append(" " * 24)
                continue
            verdict = program.verdict(way)
            native, heddle = program.median("native " + way), program.median("heddle " + way)
            if verdict == "same":
                ratios[way].append((heddle / native, program))
                cells.append(f"{native:8.3f} {heddle:8.3f} {heddle / native:6.2f}")
            else:
                cells.append(f"{native:8.3f} {heddle:8.3f} {verdict:>6}"[:24])
                entries[verdict].append((program, way, program.odd_one(way)))
        print(f"{program.label:<44} {cells[0]:<24}   {cells[1]:<24}".rstrip())
    for kind, runs in entries.items():
        for program, way, ours in runs:
            print(f"{kind} {way}: {program.label}: {ours['outcome']}: {(ours['refusal'] or ours['text'].splitlines()[-1:])}")
    for way in WAYS:
        if ratios[way]:
            sum_up(way, ratios[way])
    return entries["WRONG"]


def sum_up(way, ratios):
    print(f"{way}: heddle over native: median {statistics.median(ratio for ratio, _ in ratios):.2f} of {len(ratios)} programs")
    # What takes less natively starts no CUDA, and a ratio says nothing of it.
    long = [(ratio, program) for ratio, program in ratios if program.median("native " + way) >= 0.2]
    slow = sorted(((ratio, program.name) for ratio, program in long if ratio > WORST), reverse=True)
    if long:
        print(f"{way}: of those that take 0.2 s and more natively: median {statistics.median(ratio for ratio, _ in long):.2f} of {len(long)}")
        print(f"{way}: of {len(long)} that take 0.2 s and more, {len(slow)} are above {WORST}: " +
              ", ".join(f"{name} {ratio:.2f}" for ratio, name in slow))
        chance = sorted(program.chance(way) for _, program in long)
        print(f"{way}: a native run over the others of its program: median {statistics.median(chance):.2f}, "
              f"{sum(each > WORST for each in chance)} are above {WORST}, worst {chance[-1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--out", required=True, type=os.path.abspath)
    parser.add_argument("--only", default=".")
    parser.add_argument("--share", default="1/1", help="I/N: the I-th of N parts of the list")
    parser.add_argument("--sm", default="90", help="the GPU's compute capability, as nvcc has it")
    parser.add_argument("--limit", type=float, default=30, help="seconds that a program may take natively; under heddle four times that")
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--passes", type=int, default=2, help="how often all run among others, natively and under heddle")
    parser.add_argument("--stop-after", type=float, default=420, help="seconds; a later run goes on from there")
    parser.add_argument("--ways", default=WAYS, type=lambda text: text.split(","), help="alone, among, or both (default)")
    parser.add_argument("--native", default=[], type=str.split, help="a command that native runs begin with")
    options = parser.parse_args()
    deadline = time.monotonic() + options.stop_after
    os.makedirs(options.out, exist_ok=True)
    found = programs(options)
    if not found:
        print(f"no program in {options.directory} is named like '{options.only}'", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        why = dict(zip(found, pool.map(lambda program: program.build(options), found)))
    chosen = [program for program in found if why[program] is None]
    print(f"{len(found)} programs, {len(chosen)} built; left out: " +
          "; ".join(f"{program.name} ({reason})" for program, reason in why.items() if reason))
    record = Record(os.path.join(options.out, "seen.json"))
    for program in chosen:
        program.seen = record.seen.get(program.label, {})
    complete = True
    if "alone" in options.ways:
        alone(chosen, record, options, deadline)
        complete = all("heddle alone" in program.seen or too_long(program) for program in chosen)
    if "among" in options.ways:
        complete = among(chosen, record, options, deadline) and complete
    judged = [program for program in chosen if not too_long(program)]
    for program in chosen:
        native = {run["outcome"] for way in WAYS for run in program.seen.get("native " + way, [])} - {"right"}
        if native:
            print(f"natively: {program.label}: {', '.join(sorted(native))}")
    wrong = table(judged, options)
    if not complete:
        print("not all was run in the time given: run again with the same --out")
    return 1 if wrong or not complete else 0


if __name__ == "__main__":
    sys.exit(main())
