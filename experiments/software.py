"""Batches that run on software devices, small: a heddled of the experiment's own, and `heddle batch`."""

import json
import os
import subprocess
import tempfile

from simulation import Failed

# Memory is a 128th of a card's, speed a 6,000th, so that two cores of a host keep up with both (demo/heddle.toml).
SCALE = 128
CONFIG = """[daemon]
warm_workers = 2
log_file = "{directory}/heddled.log"
[[device]]
preset = "{preset}"
count = {count}
memory = "128M"
slowdown = 6000
copy_slowdown = 20
"""


class Node:
    """`with Node(heddle, preset, count) as node:` — its heddled ends with it, whatever happens."""

    def __init__(self, heddle, preset, count):
        self.heddle = os.path.abspath(heddle)
        self.preset, self.count = preset, count

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heddle-experiment-")
        self.directory = self.temporary.name
        self.environment = dict(os.environ, HEDDLE_SOCKET=f"{self.directory}/control", XDG_RUNTIME_DIR=self.directory)
        config = f"{self.directory}/heddle.toml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(directory=self.directory, preset=self.preset, count=self.count))
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
