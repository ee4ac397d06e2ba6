#!/usr/bin/env python3
"""How long nobody is served after a fault, with five neighbours at work.

    faults.py PROGRAM --heddle BIN/heddle [--rounds N] [--kinds address,assert,...] [--stop-after SECONDS] [--survive]
              [--pinned N]

PROGRAM is faults.cu. Each round: five neighbours compute under heddle; one program faults (or its worker is killed in the
middle of a kernel); from the moment at which the faulty program has ended (or the worker was killed) a new program is
started, and the time until it has its result counts. A neighbour may go on or see an error, never a wrong result, and its
error must be told in words on its stderr.

A misaligned access is known late under MPS: natively too cudaDeviceSynchronize succeeds, and the device's error comes some
100 ms later (5 of 5 on an H100). So there the faulty program may end without an error. A program that is started before the
error and stopped by it counts as a neighbour, and the time runs on until the first program that has its result.

With --survive ([durability] level = "full", programs that share their faults) every neighbour must go on to a right
result, and the time from the launch of the kernel that faults, as its program prints it, until all of them compute again counts, as
`heddle ps` says of them. The fault comes when the workers stand ready that heddled has for trials, 8 s after the neighbours' start at
the latest. What the driver takes to tell of the fault, and the trial that finds it, are part of it. (Until 28 November
2026 it counted from the faulty program's start.) Of the four neighbours N (--pinned) update pinned memory in place, which cannot be
run again: with mps = "auto" they are outside of MPS, and lose nothing but a moment.

Exit status: 1 where anything of that does not hold or a program was served later than GOAL seconds.
"""

import argparse
import concurrent.futures
import json
import os
import signal
import statistics
import subprocess
import sys
import time

LATE = ("misaligned",)  # may be known only after the faulty program's end
KINDS = ("address", "assert", "trap", "misaligned", "killed")
GOAL = 1.0


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def is_stopped(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return True


class Heddle:
    def __init__(self, options):
        self.options = options

    def start(self, *words):
        return subprocess.Popen([self.options.heddle, "run", "--", self.options.program, *words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True)

    def sessions(self):
        answer = subprocess.run([self.options.heddle, "ps", "--json"], capture_output=True, text=True, timeout=20)
        return json.loads(answer.stdout).get("sessions", []) if answer.returncode == 0 else []

    def compute_again(self, programs, limit=20):
        """When all of the programs are seen computing: each in another worker than before, be it on trial, and then those that are
        outside of MPS, which may have been held back meanwhile. None after the limit, and where one has ended before it was seen."""
        begin = time.monotonic()
        wanted, back, apart = {program.pid for program in programs}, set(), set()
        while time.monotonic() - begin < limit:
            for session in self.sessions():
                program = parent_of(session.get("pid", 0))
                computes = session.get("usage", {}).get("busy_now")
                for task in session.get("tasks", []):
                    if computes and task.get("resumptions") and task.get("state") in ("running", "in trial") and not task.get("apart"):
                        back.add(program)
                    if task.get("apart") and task.get("state") == "running":
                        apart.add(program)
                        others_are_back = wanted <= back | apart
                        if computes and others_are_back and not is_stopped(task.get("worker_pid", 0)):
                            back.add(program)
            if wanted <= back:
                return time.monotonic()
            if any(program.poll() is not None for program in programs if program.pid not in back):
                return None
            time.sleep(0.01)
        return None

    def await_ready(self, calm=1.5, least=3, most=8):
        """Until the workers stand ready that are to: their number has not changed for a while. Beside programs outside of MPS each takes
        half a second, and they are made one after the other."""
        begin = since = time.monotonic()
        number = None
        while time.monotonic() - begin < most and (time.monotonic() - since < calm or time.monotonic() - begin < least):
            answer = subprocess.run([self.options.heddle, "devices", "--json"], capture_output=True, text=True, timeout=20)
            now = [device.get("warm_workers") for device in json.loads(answer.stdout).get("devices", [])]
            if now != number:
                number, since = now, time.monotonic()
            time.sleep(0.1)

    def worker_of(self, program):
        """The worker of a program's running task; None where it does not come within 20 s."""
        for _ in range(400):
            for session in self.sessions():
                if parent_of(session.get("pid", 0)) != program.pid:
                    continue
                for task in session.get("tasks", []):
                    if task.get("worker_pid", 0) > 1 and task.get("state") == "running":
                        return task["worker_pid"]
            time.sleep(0.05)
        return None


def end(process, limit):
    try:
        return process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "", "did not end"


def provoke(heddle, kind):
    """Returns the moment from which on a new program counts, when the kernel that faults was launched, and what went wrong, if
    anything."""
    if kind != "killed":
        faulty = heddle.start(kind)
        output, errors = end(faulty, 30)
        seen = faulty.returncode == 3 or (faulty.returncode == 0 and kind in LATE)
        told = "" if seen else f"the faulty program: status {faulty.returncode}, {output.strip()} {errors.strip()}"
        return time.monotonic(), launched_at(output), told
    faulty = heddle.start("endless")
    worker = heddle.worker_of(faulty)
    if worker is None:
        os.killpg(faulty.pid, signal.SIGKILL)
        faulty.communicate()
        return time.monotonic(), None, "no worker of the endless kernel was found"
    time.sleep(0.2)  # into the kernel
    os.kill(worker, signal.SIGKILL)
    begin = time.monotonic()
    return begin, begin, (faulty, "")


def launched_at(output):
    for line in output.splitlines():
        if line.startswith("faults: at "):
            return float(line.split()[2])
    return None


def new_program(heddle):
    program = heddle.start("work", "0")
    return program, *end(program, 60)


def told_why(program, errors):
    """Whether it was stopped by somebody else's fault, and told so."""
    return program.returncode == 4 and "heddle:" in errors


def surviving_round(heddle, kind, pinned):
    """As one_round, but of the neighbours: how long until all of them compute again, whenever the faulty program ends."""
    neighbours = [heddle.start("work", "12", *(["pinned"] if number < pinned else [])) for number in range(4)]
    heddle.await_ready()
    with concurrent.futures.ThreadPoolExecutor(1) as aside:
        faulty = aside.submit(provoke, heddle, kind)
        again = heddle.compute_again(neighbours)
        _, launched, told = faulty.result()
    wrong = [told] if told else []
    stopped = 0
    for neighbour in neighbours:
        output, errors = end(neighbour, 60)
        if neighbour.returncode == 0 and "PASS" in output:
            continue
        stopped += 1
        wrong.append(f"a neighbour: status {neighbour.returncode}: {output.strip()} {errors.strip()}"[:300])
    if again is None:
        wrong.append("not all neighbours were seen computing in another worker, within 20 s or before one had ended")
    elif launched is None:
        wrong.append("the faulty program did not say when it launched its kernel")
    return again - launched if again and launched else 20.0, stopped, wrong


def one_round(heddle, kind):
    neighbours = [heddle.start("work", "3") for _ in range(5)]
    time.sleep(1.5)
    begin, _, told = provoke(heddle, kind)
    victim = None
    if isinstance(told, tuple):
        victim, told = told
    wrong = [told] if told else []
    served, output, errors = new_program(heddle)
    while kind in LATE and told_why(served, errors) and time.monotonic() - begin < 10:
        served, output, errors = new_program(heddle)
    seconds = time.monotonic() - begin
    if served.returncode != 0:
        wrong.append(f"the new program: status {served.returncode}: {output.strip()} {errors.strip()}"[:300])
    if victim:
        end(victim, 20)
    stopped = 0
    for neighbour in neighbours:
        output, errors = end(neighbour, 30)
        if neighbour.returncode == 0 and "PASS" in output:
            continue
        stopped += 1
        if not told_why(neighbour, errors):
            wrong.append(f"a neighbour: status {neighbour.returncode}: {output.strip()} {errors.strip()}"[:300])
    return seconds, stopped, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(KINDS), type=lambda text: text.split(","))
    parser.add_argument("--stop-after", type=float, default=450)
    parser.add_argument("--survive", action="store_true", help="neighbours are to go on, and until when counts")
    parser.add_argument("--pinned", type=int, default=0, help="of the neighbours that are to go on, how many update pinned memory")
    options = parser.parse_args()
    heddle, deadline, failed = Heddle(options), time.monotonic() + options.stop_after, False
    print(f"{'fault':<12} {'rounds':>6} {'median s':>9} {'worst s':>8} {'within ' + str(GOAL) + ' s':>12}   neighbours stopped")
    for kind in options.kinds:
        times, stopped = [], 0
        for _ in range(options.rounds):
            if time.monotonic() > deadline:
                print(f"{kind}: the time is up after {len(times)} rounds")
                failed = True
                break
            seconds, of_them, wrong = surviving_round(heddle, kind, options.pinned) if options.survive else one_round(heddle, kind)
            times.append(seconds)
            stopped += of_them
            for what in wrong:
                failed = True
                print(f"  {kind}: {what}")
        if times:
            late = sum(seconds > GOAL for seconds in times)
            failed |= late > 0
            print(f"{kind:<12} {len(times):>6} {statistics.median(times):>9.3f} {max(times):>8.3f} "
                  f"{len(times) - late:>6} of {len(times):<3}   {stopped} of {(4 if options.survive else 5) * len(times)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
