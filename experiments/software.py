"""Programs that run on software devices, small: a heddled of the experiment's own, `heddle batch` and `heddle run`."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile

from simulation import Failed

# Memory is a 128th of a card's, speed a 6,000th, so that two cores of a host keep up with both (demo/heddle.toml). A
# lent device has work for 20 ms in flight: a host that wakes late does not let it run dry.
SCALE = 128
CONFIG = """[daemon]
warm_workers = 2
eager_launch = {eager_launch}
log_file = "{directory}/heddled.log"
[dispatch]
policy = "{dispatch}"
window = "20ms"
[durability]
level = "{level}"
[[device]]
preset = "{preset}"
count = {count}
memory = "{memory}"
slowdown = {slowdown}
copy_slowdown = 20
"""


class Node:
    """`with Node(heddle, preset, count) as node:` — its heddled ends with it, whatever happens."""

    def __init__(self, heddle, preset, count, dispatch="open", slowdown=6000, level="off", memory="128M", eager_launch=False, environment=None):
        self.heddle = os.path.abspath(heddle)
        self.keys = {"preset": preset, "count": count, "dispatch": dispatch, "slowdown": slowdown, "level": level, "memory": memory,
                     "eager_launch": str(eager_launch).lower()}
        self.more_environment = environment or {}

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heddle-experiment-")
        self.directory = self.temporary.name
        self.environment = dict(os.environ, **self.more_environment, HEDDLE_SOCKET=f"{self.directory}/control", XDG_RUNTIME_DIR=self.directory)
        config = f"{self.directory}/heddle.toml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(directory=self.directory, **self.keys))
        self._heddle("daemon", "start", "--config", config)
        return self

    def __exit__(self, *_):
        self._run("daemon", "stop")
        self.temporary.cleanup()

    def _run(self, *arguments):
        return subprocess.run([self.heddle, *arguments], env=self.environment, capture_output=True, text=True, check=False)

    def _heddle(self, *arguments, accepted=(0,)):
        done = self._run(*arguments)
        if done.returncode not in accepted:
            raise Failed(f"heddle {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()[-400:]}")

    def batch(self, queue, policies, workers="auto"):
        """What `heddle batch` says of the queue (the text of its file) under each policy."""
        path, result = f"{self.directory}/queue.toml", f"{self.directory}/result.json"
        with open(path, "w", encoding="utf-8") as file:
            file.write(queue)
        # 1: some job crashed, which is what some policies are there to show. Devices come before the programs' host work.
        self._heddle("batch", path, "--policy", ",".join(policies), "--workers", str(workers), "--quiet",
                     "--output", f"{self.directory}/output", "--json-file", result, accepted=(0, 1))
        with open(result, encoding="utf-8") as file:
            results = json.load(file)
        return results if isinstance(results, list) else [results]

    def compile(self, sources, directory):
        """The programs of these CUDA sources as `heddle cc` compiles them, there."""
        for source in sources:
            self._heddle("cc", "-O3", "-o", os.path.join(directory, os.path.splitext(os.path.basename(source))[0]), source)

    def log(self):
        with open(f"{self.directory}/heddled.log", encoding="utf-8") as file:
            return file.read()

    @contextlib.contextmanager
    def running(self, jobs):
        """`heddle run` with each job's (options, command) while it lasts; they are job-0, job-1, ..."""
        processes = []
        try:
            for at, (options, command) in enumerate(jobs):
                processes.append(subprocess.Popen([self.heddle, "run", "--name", f"job-{at}", *options, "--", *command],
                                                  env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL))
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def jobs(self):
        """What `heddle ps --json` says of each job, by its name."""
        done = self._run("ps", "--json")
        if done.returncode != 0:
            raise Failed(f"heddle ps: status {done.returncode}: {done.stderr.strip()[-400:]}")
        return {job["name"]: job for job in json.loads(done.stdout)["jobs"]}

    def looks(self, count, every):
        """(seconds by heddled's clock, busy seconds of each job by its name), `count` times, `every` so many seconds."""
        done = self._run("top", "--json", "--count", str(count), "--every", f"{every}s")
        if done.returncode != 0:
            raise Failed(f"heddle top: status {done.returncode}: {done.stderr.strip()[-400:]}")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return [(each["time_ns"] / 1e9, {job["name"]: job["busy_ns"] / 1e9 for job in each["jobs"]}) for each in answers]
