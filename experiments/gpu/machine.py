"""Where cells run: nodes with this machine's GPUs, or, to rehearse without one, with software devices; and the programs there."""

import dataclasses
import os
import subprocess

import software
from node import Node
from simulation import Failed

GPU = """[[gpu]]
index = {index}
mps = "{mps}"
{more}"""
# Of software devices: P100 of which the host keeps up with kernels of one block.
REHEARSED_SLOWDOWN, REHEARSED_MEMORY = 50, "128M"
# How long a kernel that is measured for others' lengths takes at least, and how many of them are looked at.
MEASURED, LOOKED_AT = 0.002, 8


@dataclasses.dataclass
class Machine:
    heddle: str
    workloads: str
    kind: str  # "gpu" or "rehearsal": which of a paper's scales counts
    count: int  # devices
    name: str  # of them, for people
    mps: str = "off"
    first: int = 0  # the driver's number of the first GPU
    compiled: str | None = None  # the directory of what heddle cc compiled, PROGRAM_heddle each
    stretch: float = 1.0  # how much longer things are watched
    logs: str | None = None  # where heddled's logs go
    nodes: int = 0  # that were started
    a_step: float = 0.0  # seconds of a step of workloads/episodes, once it was measured

    def devices(self, memory=None, slowdown=None, context_memory=None, count=None):
        """The tables of a node's configuration that say what it has."""
        count = count or self.count
        if self.kind == "rehearsal":
            return software.devices("P100", count, REHEARSED_SLOWDOWN if slowdown is None else slowdown, memory or REHEARSED_MEMORY)
        more = f'memory = "{memory}"\n' if memory else ""
        more += f'context_memory = "{context_memory}"\n' if context_memory else ""
        return "".join(GPU.format(index=self.first + at, mps=self.mps, more=more) for at in range(count))

    def node(self, memory=None, slowdown=None, context_memory=None, count=None, **keys):
        """A Node with `count` devices (all of them), each of at most `memory`. `slowdown` counts for software devices, `context_memory`
        for GPUs."""
        self.nodes += 1
        log = os.path.join(self.logs, f"heddled-{self.nodes}.log") if self.logs else None
        window = "2ms" if self.kind == "gpu" else "20ms"
        return Node(self.heddle, self.devices(memory, slowdown, context_memory, count), window=window, keep_log=log, **keys)

    def program(self, name):
        """Of workloads/, with the CUDA runtime linked in, as most are."""
        path = os.path.join(self.workloads, f"{name}_static")
        if not os.access(path, os.X_OK):
            raise Failed(f"{path} was not built")
        return path

    def seconds(self, value):
        return self.stretch * value

    @property
    def values(self):
        """Of workloads/episodes, with which a kernel fills the device; one block where a host computes it."""
        return 1 << 18 if self.kind == "gpu" else 256

    def step(self, node):
        """Seconds that a step on each of these values takes there: measured by kernels of some milliseconds, once."""
        steps = 20000 if self.kind == "gpu" else 2000
        while not self.a_step:
            command = [self.program("episodes"), "--size", str(self.values), "--steps", str(steps), "--launches", "1", "--gap", "0",
                       "--iterations", "1000000", "--check", "none"]
            with node.running([([], command)]) as [name]:
                def usage():
                    return node.jobs().get(name, {}).get("usage", {})
                node.wait(lambda: usage().get("launches", 0) >= LOOKED_AT, 30, "workloads/episodes, whose kernels are to be measured, did not compute")
                seen = usage()
            each = seen["kernel_ns"] / seen["launches"] / 1e9
            if each > MEASURED:
                self.a_step = each / steps
            steps *= 8
        return self.a_step

    def episodes(self, node, kernel, launches, pause, *more):
        """The command of a program that computes in bursts of kernels of `kernel` seconds, with pauses of `pause` before each."""
        steps = max(1, round(kernel / self.step(node)))
        return [self.program("episodes"), "--size", str(self.values), "--steps", str(steps), "--launches", str(launches),
                "--gap", str(round(1000 * pause)), "--iterations", "1000000", "--check", "none", *more]


def _names_of_gpus():
    """What the driver calls the GPUs; without nvidia-smi nobody knows, and heddled will say what there is."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def with_gpus(heddle, workloads, count, mps, **keys):
    names = _names_of_gpus()
    return Machine(heddle, workloads, "gpu", count, f"{count} x {names[0] if names else 'a GPU of unknown name'}, mps {mps}", mps=mps, **keys)


def rehearsal(heddle, workloads, count=1, **keys):
    return Machine(heddle, workloads, "rehearsal", count, f"{count} x software P100, a rehearsal: the figures mean nothing", **keys)
