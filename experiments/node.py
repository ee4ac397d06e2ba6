"""A heddled of the experiment's own, on whatever devices its configuration names, and real programs under it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from simulation import Failed

# A lent software device has work for 20 ms in flight: a host that wakes late does not let it run dry.
CONFIG = """[daemon]
warm_workers = 2
kept_workers = {kept_workers}
eager_launch = {eager_launch}
log_file = "{directory}/heddled.log"
[dispatch]
policy = "{dispatch}"
window = "{window}"
[durability]
level = "{level}"
{devices}"""
A_COMMAND_TAKES = 60  # seconds, at most
ENDS_WITHIN = 15  # seconds, behind a signal


def _ended(process, limit):
    try:
        process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return False
    return True


class Node:
    """`with Node(heddle, devices) as node:` — its heddled ends with it, whatever happens. `devices`: the tables of its configuration that
    say what it has; `keep_log`: where heddled's log goes in the end."""

    def __init__(self, heddle, devices, dispatch="open", level="off", eager_launch=False, window="20ms", kept_workers=2, environment=None,
                 keep_log=None):
        self.heddle = os.path.abspath(heddle)
        self.keys = {"devices": devices, "dispatch": dispatch, "level": level, "eager_launch": str(eager_launch).lower(), "window": window,
                     "kept_workers": kept_workers}
        self.more_environment, self.keep_log = environment or {}, keep_log
        self.processes, self.started = {}, 0

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heddle-experiment-", ignore_cleanup_errors=True)
        self.directory = self.temporary.name
        self.environment = dict(os.environ, **self.more_environment, HEDDLE_SOCKET=f"{self.directory}/control", XDG_RUNTIME_DIR=self.directory)
        config = f"{self.directory}/heddle.toml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(directory=self.directory, **self.keys))
        try:
            self._heddle("daemon", "start", "--config", config)
            self._wait_for_devices()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Failed):
            self._run("daemon", "stop")
        if self.keep_log and os.path.exists(f"{self.directory}/heddled.log"):
            shutil.copyfile(f"{self.directory}/heddled.log", self.keep_log)
        self.temporary.cleanup()

    def _run(self, *arguments, limit=A_COMMAND_TAKES):
        """The command, its status, what it said; one that takes longer is ended as Ctrl-C does, which ends what it runs."""
        with subprocess.Popen([self.heddle, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except BaseException as error:
                process.send_signal(signal.SIGINT)
                if not _ended(process, ENDS_WITHIN):
                    process.kill()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise Failed(f"heddle {' '.join(arguments)}: not done after {limit:.0f} s{self._complaints()}") from None
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def _heddle(self, *arguments, accepted=(0,), **keys):
        done = self._run(*arguments, **keys)
        if done.returncode not in accepted:
            raise Failed(f"heddle {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()[-400:]}{self._complaints()}")
        return done.stdout

    def _complaints(self):
        """The last warnings and errors of heddled's log, as the end of a message."""
        try:
            lines = [line.split(" ", 1)[1] for line in self.log().splitlines() if " warning " in line or " error " in line]
        except OSError:
            return ""
        return "; heddled: " + " | ".join(lines[-3:]) if lines else ""

    def _wait_for_devices(self):
        """Until a worker is warm on each device: on a GPU it says first which addresses are free."""
        self.wait(lambda: all(each["warm_workers"] > 0 for each in self.devices()), 30, "no worker is warm on some device")

    def wait(self, true, limit, otherwise):
        """Until `true()`; after `limit` seconds Failed, with the text `otherwise` (or what it returns)."""
        deadline = time.monotonic() + limit
        while not true():
            if time.monotonic() > deadline:
                raise Failed(f"{otherwise() if callable(otherwise) else otherwise} after {limit} s{self.ended()}{self._complaints()}")
            time.sleep(0.1)

    def devices(self):
        return json.loads(self._heddle("devices", "--json"))["devices"]

    def batch(self, queue, policies, workers="auto", limit=3600):
        """What `heddle batch` says of the queue (the text of its file) under each policy."""
        path, result = f"{self.directory}/queue.toml", f"{self.directory}/result.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write(queue)
        # 1: some job crashed, which is what some policies are there to show. Devices come before the programs' host work.
        self._heddle("batch", path, "--policy", ",".join(policies), "--workers", str(workers), "--quiet",
                     "--output", f"{self.directory}/output", "--json-file", result, accepted=(0, 1), limit=limit)
        with open(result, encoding="utf-8") as file:
            results = json.load(file)
        return results if isinstance(results, list) else [results]

    def compile(self, sources, directory):
        """The programs of these CUDA sources as `heddle cc` compiles them, there."""
        for source in sources:
            self._heddle("cc", "-O3", "-o", os.path.join(directory, os.path.splitext(os.path.basename(source))[0]), source, limit=600)

    def log(self):
        with open(f"{self.directory}/heddled.log", encoding="utf-8") as file:
            return file.read()

    @contextlib.contextmanager
    def running(self, jobs):
        """`heddle run` with each job's (options, command) while it lasts; their names, which no jobs have had on this node before."""
        names = [f"job-{self.started + at}" for at in range(len(jobs))]
        self.started += len(jobs)
        mine = {}
        try:
            for name, (options, command) in zip(names, jobs):
                with open(f"{self.directory}/{name}.err", "w", encoding="utf-8") as said:
                    mine[name] = subprocess.Popen([self.heddle, "run", "--name", name, *options, "--", *command],
                                                  env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
                self.processes[name] = mine[name]
            yield names
        finally:
            for process in mine.values():
                process.send_signal(signal.SIGTERM)
            for name, process in mine.items():
                del self.processes[name]
                if not _ended(process, ENDS_WITHIN):
                    process.kill()
                    process.wait()

    def ended(self):
        """Which of the jobs that are to run have ended, and what they said, as the end of a message."""
        parts = []
        for name, process in self.processes.items():
            if process.poll() is not None:
                with open(f"{self.directory}/{name}.err", encoding="utf-8", errors="replace") as said:
                    parts.append(f"{name} ended with status {process.returncode}: {said.read().strip()[-200:]}")
        return "; " + "; ".join(parts) if parts else ""

    def jobs(self):
        """What `heddle ps --json` says of each job, by its name."""
        return {job["name"]: job for job in json.loads(self._heddle("ps", "--json"))["jobs"]}

    def looks(self, count, every):
        """(seconds by heddled's clock, busy seconds of each job by its name), `count` times, `every` so many seconds."""
        answers = [json.loads(line) for line in
                   self._heddle("top", "--json", "--count", str(count), "--every", f"{every}s", limit=count * every + A_COMMAND_TAKES).splitlines()]
        return [(each["time_ns"] / 1e9, {job["name"]: job["busy_ns"] / 1e9 for job in each["jobs"]}) for each in answers]
