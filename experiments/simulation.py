"""Scenarios for `heddle sim`, and what came of them."""

import dataclasses
import json
import os
import shutil
import subprocess
import tempfile


class Failed(Exception):
    """`heddle` did not do what it was asked for; says why."""


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _table(name, keys):
    return f"[[{name}]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in keys.items())


def seconds(value):
    """A duration as scenarios have it, to the nanosecond."""
    return f"{max(0, round(value * 1e9))}ns"


@dataclasses.dataclass
class Scenario:
    """As docs/simulating.md has it: `devices` and `jobs` are tables of keys, `keys` those of the root. A table in a table is a dict."""

    devices: list[dict]
    jobs: list[dict]
    keys: dict = dataclasses.field(default_factory=dict)

    def text(self):
        root = "".join(f"{key} = {_value(value)}\n" for key, value in self.keys.items())
        return root + "".join(_table("device", each) for each in self.devices) + "".join(_table("job", each) for each in self.jobs)


@dataclasses.dataclass
class Run:
    """What came of a scenario under one pair of policies. Times in seconds."""

    policy: str
    dispatch: str
    answer: dict  # as `heddle sim --json --jobs` prints it

    @property
    def jobs(self):
        return self.answer["jobs"]

    @property
    def throughput(self):
        return self.answer["runs_per_second"]

    @property
    def refused(self):
        return self.answer["refused"]

    @property
    def mean_turnaround(self):
        """Of completed runs."""
        return self.answer["mean_turnaround"]

    def turnaround(self, name):
        """The mean over the job's completed runs, of all jobs of that name; None where none was completed."""
        done = [(job["turnaround"], job["runs"]) for job in self.jobs if job["name"] == name and job["runs"] > 0]
        return sum(mean * runs for mean, runs in done) / sum(runs for _, runs in done) if done else None

    def busy(self):
        """Seconds that each job's kernels were on a device, in the order of the jobs' arrival."""
        return [job["busy"] for job in self.jobs]


def find_heddle(named, here):
    """The command: as named, or what was built beside the directory `here`, or what is installed."""
    if named:
        return named
    built = os.path.join(here, "..", "build", "dev", "bin", "heddle")
    found = built if os.access(built, os.X_OK) else shutil.which("heddle")
    if not found:
        raise Failed("no heddle: build it (make), or name it with --heddle")
    return found


class Simulator:
    """`heddle sim`, and how often it was asked."""

    def __init__(self, heddle):
        self.heddle = heddle
        self.runs = 0

    def run(self, scenario, pairs, lists_jobs=True):
        """The scenario under each (placement policy, dispatch policy) of `pairs`; Run.jobs only with `lists_jobs`. Failed where heddle refuses it."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False) as file:
            file.write(scenario.text())
        try:
            return [self._run(file.name, *pair, lists_jobs) for pair in pairs]
        finally:
            os.unlink(file.name)

    def _run(self, path, policy, dispatch, lists_jobs):
        command = [self.heddle, "sim", path, "--policy", policy, "--dispatch", dispatch, "--json", *(["--jobs"] if lists_jobs else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        self.runs += 1
        return Run(policy, dispatch, json.loads(done.stdout)[0])
