#!/usr/bin/env python3
"""Builds programs of other authors with plain nvcc and runs them under heddle; one table row for each.

    suites.py DIRECTORY [--heddle build/dev/bin/heddle] [--suite NAME] [--only REGEX] [--markdown FILE]
    suites.py DIRECTORY --cc build/dev/bin/heddle-cc ...
    suites.py DIRECTORY --check ...

DIRECTORY holds the suites as their repositories have them: rodinia (yuhc/gpu-rodinia), polybench
(sgrauerg/polybenchGpu), cuda-samples (NVIDIA/cuda-samples). What is absent is left out. What is built and written
lies in DIRECTORY/../suites-out (or --out). Sources are not changed, but for the sizes of a few programs that would not
end in time and have no option for that: `edits` in programs.py, in a copy.

With --check kernels run checked (heddle run --check), and the table says how many accesses each made outside of what
heddle took its launches to read and write: work that is run again relies on that. What else the checks find (races,
reads of what nobody wrote) is the programs' own; it is counted, and changes no outcome.

With --cc each program is built by heddle cc too and runs a second time; the table says for both what came out, and how
many launches are bound, partly or lazily, and why.
"""

import argparse
import atexit
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import inputs
import programs
import references

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = ["-include", os.path.join(HERE, "names_of_cuda_12.h")]
HEADERS = ("cuda.h", "cuda_runtime.h", "stdio.h", "stdlib.h", "math.h", "string.h", "sys/time.h", "unistd.h")
NUMBERS = re.compile(programs.NUMBER)
# Behind whatever the program has written of a line.
FINDING = re.compile(r"heddle: check: (?!\d+ findings?$).*\n", re.M)
CHECKED = re.compile(r"heddle: check: \d+ findings?$\n?", re.M)  # the last word of a run that was checked
UNDECLARED = re.compile(r"heddle: check: undeclared .*", re.M)
FOUND_SOMETHING = 66  # exit status of heddle run --check
REFUSAL = re.compile(r"^heddle: (?!.*Assertion `).*|.*(?:not supported|no PTX|Unsupported|unsupported).*", re.M)


def shell(command, directory, limit, environment=None):
    """Runs a command; (exit status or None at the time limit, output and errors)."""
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")


def driver_stub(out):
    """A directory with the toolkit's stub of the driver library, so that programs which link it are loaded on a machine
    without a driver, too: what heddle has to say comes after that."""
    directory = os.path.join(out, "driver")
    nvcc = shutil.which("nvcc")
    stub = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "../lib64/stubs/libcuda.so") if nvcc else ""
    if os.path.exists(stub):
        os.makedirs(directory, exist_ok=True)
        shutil.copy(stub, os.path.join(directory, "libcuda.so.1"))
    return directory


STARTING = threading.Lock()


def daemon_of(preset, options):
    """The socket of a heddled with unpaced devices of that preset, started at the first call."""
    directory = os.path.join(options.out, f"daemon-{preset}")
    socket = os.path.join(directory, "control")
    with STARTING:
        if not os.path.exists(socket):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            config = os.path.join(directory, "heddle.toml")
            with open(config, "w") as out:
                out.write(f'[[device]]\npreset = "{preset}"\ncount = 2\nmemory = "4G"\n'
                          "slowdown = 0\ncopy_slowdown = 0\n")
            environment = {**os.environ, "HEDDLE_SOCKET": socket}
            shell([options.heddle, "daemon", "start", "--config", config], directory, 60, environment)
            atexit.register(shell, [options.heddle, "daemon", "stop"], directory, 60, environment)
    return socket


def first_error(output):
    found = re.search(r".*(?:error|undefined reference)[ :].*", output)
    line = found.group(0) if found else output.strip().splitlines()[-1] if output.strip() else ""
    return re.sub(r"\S*/", "", line).strip()[:110]


class Run:
    """One program by one compiler."""

    def __init__(self, program, options, compiler="nvcc"):
        self.program, self.options, self.compiler = program, options, compiler
        self.source = os.path.join(options.directory, program.directory)
        kind = "cuda" if compiler == "nvcc" else "cc"
        self.out = os.path.join(options.out, program.suite, kind, program.name)
        self.built, self.ran, self.why, self.seconds = "", "", "", 0.0
        self.undeclared, self.findings = 0, 0  # with --check

    def run(self):
        reason = programs.graphical(self.program, self.options.directory)
        if reason:
            self.built, self.why = "left out", f"graphics or a foreign library: {reason}"
        elif self.build():
            self.execute()
        print(" | ".join([self.program.suite, os.path.basename(self.compiler), *self.row()]), flush=True)
        return self

    def build(self):
        os.makedirs(self.out, exist_ok=True)
        self.edit()
        binary = os.path.join(self.out, "program")
        command = ["nice", "-n", "5", self.compiler, "-w", *self.sizes(), *self.program.flags, *self.program.sources, "-o", binary]
        built = os.path.join(self.out, "built")
        if self.options.reuse and os.path.exists(built):
            self.built = open(built).read()
            return True
        report = os.path.join(self.out, "launches")
        for stale in (report, built):
            if os.path.exists(stale):
                os.remove(stale)
        status, output = shell(command, self.source, 600, {**os.environ, "HEDDLE_CC_REPORT": report})
        self.built = "yes"
        if status and re.search(r"cudaThread(Synchronize|Exit)", output):
            status, output = shell(command + SHIM, self.source, 600)
            self.built = "with CUDA 12's names"
        if status != 0:
            self.built, self.why = "no", first_error(output)
            return False
        with open(built, "w") as out:
            out.write(self.built)
        return True

    def edit(self):
        """A copy of the sources with other sizes, where the program has no other way to set them."""
        if not self.program.edits:
            return
        copy = os.path.join(self.out, "source")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.source, copy)
        for name in self.program.sources:
            path = os.path.join(copy, name)
            text = open(path).read()
            for old, new in self.program.edits:
                text = re.sub(old, new, text)
            with open(path, "w") as out:
                out.write(text)
        self.source = copy

    def launches(self):
        """What heddle cc said of each launch: (bound, partly or lazy; why). One that was inlined counts once."""
        path = os.path.join(self.out, "launches")
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        fields = [line.split("\t") for line in lines]
        return [said[2:] for said in dict.fromkeys((at, kernel, *why) for at, _, kernel, *why in fields)]

    def sizes(self):
        if not self.program.sizes:
            return []
        header = os.path.join(self.out, "sizes.h")
        with open(header, "w") as out:
            out.write("".join(f"#include <{name}>\n" for name in HEADERS))
            out.write("".join(f"#define {name} {value}\n" for name, value in self.program.sizes.items()))
        return ["-include", header]

    def environment(self):
        environment = dict(os.environ)
        if "-lcuda" in self.program.flags:
            found = os.environ.get("LD_LIBRARY_PATH", "")
            environment["LD_LIBRARY_PATH"] = f"{found}:{driver_stub(self.options.out)}".lstrip(":")
        if self.program.preset:
            environment["HEDDLE_SOCKET"] = daemon_of(self.program.preset, self.options)
        return environment

    def prepare(self, directory):
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        data = os.path.join(self.source, "data")
        if os.path.isdir(data):
            shutil.copytree(data, os.path.join(directory, "data"))
        for name in self.program.files:
            shutil.copy(os.path.join(self.source, name), directory)
        if self.program.inputs:
            getattr(inputs, self.program.inputs)(directory)
        return directory

    def execute(self):
        program = self.program
        directory = self.prepare(os.path.join(self.out, "run"))
        start = time.monotonic()
        how = ["--check"] if self.options.check else []
        status, output = shell([self.options.heddle, "run", *how, "--", os.path.join(self.out, "program"),
                                *program.arguments], directory, self.options.limit, self.environment())
        self.seconds = time.monotonic() - start
        with open(os.path.join(self.out, "output"), "w") as out:
            out.write(output)
        if self.options.check:
            self.undeclared, self.findings = len(UNDECLARED.findall(output)), len(FINDING.findall(output))
            checked = CHECKED.search(output)
            output = CHECKED.sub("", FINDING.sub("", output))
            status = 0 if status == FOUND_SOMETHING else status
        refusal = REFUSAL.search(re.sub(r"heddle: no daemon at.*\n", "", output))
        if status is None:
            self.ran, self.why = "time limit", f"{self.options.limit} s"
        elif self.options.check and not checked:
            self.ran, self.why = "not checked", output.strip().splitlines()[-1][:110] if output.strip() else ""
        elif refusal and refusal.group(0).startswith("heddle: "):
            self.ran, self.why = "refused", refusal.group(0)[8:150]
        elif program.wrong and re.search(program.wrong, output, re.M):
            self.ran, self.why = "WRONG", re.search(program.wrong, output, re.M).group(0)
        elif status == 2 and re.search(r"(?i)waiv|require|no test|need", output):
            self.ran, self.why = "waived by itself", re.search(r"(?i).*(waiv|require|need).*", output).group(0)[:110]
        elif status != 0 and not re.search(program.right or "$^", output, re.M):
            last = output.strip().splitlines()
            self.ran, self.why = f"exit {status}", (last[-1] if last else "")[:110]
        elif program.compares and re.search(program.compares, output, re.M):
            self.ran, self.why = "right", "own check"
        elif program.right:
            right = re.search(program.right, output, re.M)
            self.ran, self.why = ("right", "own check") if right else ("ran", "has no check of its own")
        elif program.reference:
            directory = os.path.join(self.out, "run")
            wanted = NUMBERS.findall(getattr(references, program.reference)(directory))
            self.ran, self.why = differences(self.numbers(output, directory), [float(number) for number in wanted],
                                             program.tolerance, "as computed anew")
        elif program.compare:
            self.against_cpu(output)
        else:
            self.ran, self.why = "ran", "has no check of its own"

    def against_cpu(self, output):
        program = self.program
        compiler = "g++" if program.cpu_sources[0].endswith("cpp") else "gcc"
        binary = os.path.join(self.out, "cpu")
        status, text = shell([compiler, "-w", "-fcommon", *program.cpu_flags, *program.cpu_sources, "-lm", "-o",
                              binary], self.source, 300)
        if status != 0:
            self.ran, self.why = "ran", f"CPU version does not build: {first_error(text)}"
            return
        directory = self.prepare(os.path.join(self.out, "run-cpu"))
        status, expected = shell([binary, *program.cpu_arguments], directory, self.options.limit)
        seen = self.numbers(output, os.path.join(self.out, "run"))
        wanted = self.numbers(expected, directory)
        self.ran, self.why = differences(seen, wanted, program.tolerance, "as the CPU version")

    def numbers(self, output, directory):
        text = output
        if self.program.compare != "stdout":
            path = os.path.join(directory, self.program.compare)
            text = open(path, errors="replace").read() if os.path.exists(path) else ""
        if self.program.keep:
            text = "\n".join(re.findall(self.program.keep, text, re.M))
        if re.search(r"\bnan\b", text, re.I):
            return []  # says nothing about the program
        return [float(number) for number in NUMBERS.findall(text)][-self.program.last:]

    def row(self):
        checked = [str(self.undeclared), str(self.findings)] if self.options.check else []
        return [self.program.name, self.built, self.ran, self.why.replace("|", "/"), *checked,
                f"{self.seconds:.1f}" if self.ran else ""]


def differences(seen, wanted, tolerance, how):
    if not wanted or len(seen) != len(wanted):
        return ("ran", f"outputs do not compare: {len(seen)} and {len(wanted)} numbers")
    far = sum(abs(a - b) > tolerance * max(1.0, abs(b)) for a, b in zip(seen, wanted))
    if far:
        return "WRONG", f"{far} of {len(seen)} numbers are not {how}"
    return "right", f"{len(seen)} numbers {how}"


class Pair:
    """One program by nvcc and by heddle cc."""

    def __init__(self, program, options):
        self.program = program
        self.runs = [Run(program, options), Run(program, options, options.cc)]

    def run(self):
        for run in self.runs:
            run.run()
        return self

    @property
    def ran(self):
        return "WRONG" if any(run.ran == "WRONG" for run in self.runs) else ""

    def row(self):
        launches = self.runs[1].launches()
        counts = [str(sum(kind == wanted for kind, _ in launches)) for wanted in ("bound", "partly", "lazy")]
        reasons = Counter(plain(part) for kind, why in launches if kind != "bound" for part in why.split("; "))
        return [self.program.name, *(outcome(run) for run in self.runs), *counts,
                "; ".join(f"{n} x {why}" for why, n in reasons.most_common())]


def outcome(run):
    if run.built in ("no", "left out"):
        return f"{'does not build' if run.built == 'no' else 'left out'}: {run.why.replace('|', '/')}"
    return run.ran if run.ran in ("right", "ran") else f"{run.ran}: {run.why.replace('|', '/')}"


def plain(why):
    """A reason without the names that make it one of its kind."""
    why = re.sub(r"(parameter|variable) '[^']*'", r"a \1", why)
    why = re.sub(r"may change: .* gets its address", "may change: a function gets its address", why)
    return re.sub(r"its \d+ instructions.*", "too large or called too often", why)


def pairs_markdown(pairs):
    lines = []
    for suite in dict.fromkeys(pair.program.suite for pair in pairs):
        chosen = [pair for pair in pairs if pair.program.suite == suite]
        lines += [f"\n## {suite}", "", "| program | nvcc | heddle cc | bound | partly | lazy | why not bound |",
                  "|---|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(pair.row()) + " |" for pair in chosen]
        total = [sum(int(pair.row()[at]) for pair in chosen) for at in (3, 4, 5)]
        same = sum(outcome(pair.runs[0]).split(":")[0] == outcome(pair.runs[1]).split(":")[0] for pair in chosen)
        lines += ["", f"{len(chosen)} programs, {same} with the same outcome by both; launches: {total[0]} bound, "
                  f"{total[1]} partly, {total[2]} lazy."]
    return "\n".join(lines) + "\n"


def markdown(runs):
    lines = []
    for suite in dict.fromkeys(run.program.suite for run in runs):
        rows = [run.row() for run in runs if run.program.suite == suite]
        columns = ["program", "builds", "result", "how, or why not", "s"]
        if any(run.options.check for run in runs):
            columns[4:4] = ["undeclared", "all findings"]
        lines += [f"\n## {suite}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        counts = {}
        for row in rows:
            key = row[2] or ("left out" if row[1] == "left out" else "does not build")
            counts[key] = counts.get(key, 0) + 1
        lines += ["", f"{len(rows)} programs: " + ", ".join(f"{n} {key}" for key, n in sorted(counts.items())) + "."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--heddle", default="build/dev/bin/heddle", type=os.path.abspath)
    parser.add_argument("--cc", type=os.path.abspath, help="heddle-cc: each program by both compilers")
    parser.add_argument("--check", action="store_true", help="run kernels checked, and count undeclared accesses")
    parser.add_argument("--out", type=os.path.abspath)
    parser.add_argument("--suite", default=".")
    parser.add_argument("--only", default=".")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reuse", action="store_true", help="programs that were built before are not built again")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    options.out = options.out or options.directory.rstrip("/") + "-out"
    wanted = [p for make in (programs.polybench, programs.rodinia, programs.samples)
              for p in make(options.directory) if re.search(options.suite, p.suite)
              and re.search(options.only, p.name) and os.path.isdir(os.path.join(options.directory, p.directory))]
    with ThreadPoolExecutor(options.jobs) as pool:
        kind, table = (Pair, pairs_markdown) if options.cc else (Run, markdown)
        runs = list(pool.map(lambda program: kind(program, options).run(), wanted))
    if options.markdown:
        with open(options.markdown, "w") as out:
            out.write(table(runs))
    return 1 if any(run.ran == "WRONG" or getattr(run, "undeclared", 0) for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
