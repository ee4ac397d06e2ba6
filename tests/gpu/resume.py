#!/usr/bin/env python3
"""Kills a program's worker between its steps and compares what it prints with an undisturbed run.

    resume.py PROGRAM... --heddle BIN/heddle [--steps N] [--words WORD,...] [--neighbour PROGRAM]

A PROGRAM is one of tests/e2e/programs that takes DIRECTORY STEPS WORD...: its step n begins when DIRECTORY/n is there, and it
prints what each step finds. Its worker is killed before each step, once all that came before is done; what it prints must
be what it prints when nobody disturbs it. Timed is a step with and without a new worker, from DIRECTORY/n to the next
"step" line. The neighbour (faults.cu's `work`) computes beside it the whole time and must end with PASS.

Exit status: 1 where anything of that does not hold.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time


class Steps:
    """A program that waits for a file before each of its steps."""

    def __init__(self, command, steps, words):
        self.directory = tempfile.TemporaryDirectory(prefix="heddle-steps-")
        self.steps, self.begins, self.lines = steps, {}, []
        self.process = subprocess.Popen([*command, self.directory.name, str(steps), *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        self.errors = ""
        self.readers = [threading.Thread(target=self.read_output), threading.Thread(target=self.read_errors)]
        for reader in self.readers:
            reader.start()

    def read_output(self):
        for line in self.process.stdout:
            self.lines.append(line)
            words = line.split()
            if len(words) == 2 and words[0] == "step":
                self.begins[int(words[1])] = time.monotonic()
        self.begins[self.steps + 1] = time.monotonic()

    def read_errors(self):
        self.errors = self.process.stderr.read()

    def wait_for(self, step, limit=60):
        deadline = time.monotonic() + limit
        while step not in self.begins:
            if time.monotonic() > deadline:
                return False
            if self.process.poll() is not None:  # what it has said may still be read
                self.readers[0].join(5)
                return step in self.begins
            time.sleep(0.002)
        return True

    def go(self, step):
        with open(os.path.join(self.directory.name, str(step)), "w", encoding="ascii"):
            return time.monotonic()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        for reader in self.readers:
            reader.join()
        return "".join(self.lines)


def task_of(heddle, name):
    """The one task of the session whose program's name ends so."""
    answer = subprocess.run([heddle, "ps", "--json"], capture_output=True, text=True, timeout=20)
    for session in json.loads(answer.stdout).get("sessions", []) if answer.returncode == 0 else []:
        if os.path.basename(session.get("program", "")).startswith(name) and session.get("tasks"):
            return session["tasks"][0]
    return {}


def drained(heddle, name):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        task = task_of(heddle, name)
        if task.get("state") == "running" and task.get("drained") and task.get("worker_pid", 0) > 1:
            return task
        time.sleep(0.01)
    return task_of(heddle, name)


def run(options, command, name, kill):
    program, times, problem = Steps(command, options.steps, options.words), [], ""
    for step in range(1, options.steps + 1):
        if not program.wait_for(step):
            problem = f"step {step} was not reached"
            break
        if kill:
            task = drained(options.heddle, name)
            if not task.get("drained") or task.get("resumptions", 0) != step - 1:
                problem = f"before step {step} its task is {json.dumps(task)}"
                break
            os.kill(task["worker_pid"], signal.SIGKILL)
        begin = program.go(step)
        if not program.wait_for(step + 1):
            problem = f"step {step} did not end"
            break
        times.append(program.begins[step + 1] - begin)
    if problem:
        program.kill()
    output = program.end()
    if not problem and program.process.returncode != 0:
        problem = f"exit status {program.process.returncode}"
    return output, times[:-1], f"{problem}: {program.errors.strip()[:300]}" if problem else ""


def check(options, path):
    name = os.path.basename(path)
    command = [options.heddle, "run", "--", path]
    wanted, calm, problem = run(options, command, name, False)
    if not problem:
        output, killed, problem = run(options, command, name, True)
    if not problem and output != wanted:
        differ = [(a, b) for a, b in zip(wanted.splitlines(), output.splitlines()) if a != b]
        problem = f"it prints something else: {differ[:2]}"
    if problem or "PASS" not in wanted:
        print(f"FAIL {name}: {problem or wanted[-200:]}")
        return False
    print(f"ok   {name}: {options.steps} workers killed, the same output; a step takes {statistics.median(calm) * 1e3:.0f} ms, "
          f"with a new worker {statistics.median(killed) * 1e3:.0f} ms, {max(killed) * 1e3:.0f} at most")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--words", type=lambda text: text.split(","), default=[])
    parser.add_argument("--neighbour", type=os.path.abspath)
    options = parser.parse_args()
    neighbour = None
    if options.neighbour:
        neighbour = subprocess.Popen([options.heddle, "run", "--", options.neighbour, "work", "15"], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    right = all([check(options, path) for path in options.programs])
    if neighbour:
        said = neighbour.communicate(timeout=120)[0].strip()
        right = right and "PASS" in said
        print(f"{'ok  ' if 'PASS' in said else 'FAIL'} the neighbour: {said.splitlines()[-1] if said else 'nothing'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
