#!/usr/bin/env python3
"""Draws a mix of jobs and writes it as a file for `heddle batch`.

W1 to W8 are those of CASE, Table I: 16 or 32 jobs, large (over 4 GiB) to small (1 to 4 GiB) as 1:1, 2:1, 3:1 or 5:1,
each drawn from 10 large and 7 small kinds of job. nn-predict, nn-train, nn-detect and nn-generate are eight jobs alike
(CASE, V), nn-random is 128 drawn from these four. The same mix, seed and options give the same file.

rain is the ten programs of Rain's Table 1, rain-A to rain-Y the pairs of a long and a short one in the table's order.
For these --scale divides what a launch works on, and --work the number of launches.

--scale S divides every job's memory by S, for devices of a part of a GPU's memory. What an iteration takes shrinks with
it; --work does the same to their number.
"""
import argparse
import math
import random
import sys

GIB = 1 << 30
LARGE_FROM = 4 * GIB  # a job of more is large
SMALL_FROM = 1 * GIB
MOST = 13 * GIB

# Jobs, and large ones among them.
MIXES = {
    "W1": (16, 8), "W2": (16, 11), "W3": (16, 12), "W4": (16, 13),
    "W5": (32, 16), "W6": (32, 21), "W7": (32, 24), "W8": (32, 27),
}

# Program, GiB of device memory, further options. CASE names the programs (all but bfs are large, all but lavamd small),
# how many kinds there are, and that the largest is a lavamd of 13 GB. The sizes in between are chosen so that, simulated,
# as many jobs crash under CG as in CASE's Table II (experiments/reproduce case).
LARGE = [
    ("backprop", 4.3, []),
    ("backprop", 5.5, []),
    ("dwt2d", 4.5, ["--wavelet", "9/7"]),
    ("dwt2d", 8.5, ["--wavelet", "5/3"]),
    ("lavamd", 5.2, []),
    ("lavamd", 12.5, []),
    ("needle", 4.6, []),
    ("srad_v1", 4.2, []),
    ("srad_v1", 6.0, []),
    ("srad_v2", 4.9, []),
]
SMALL = [
    ("backprop", 2.0, []),
    ("bfs", 1.5, []),
    ("bfs", 3.0, []),
    ("dwt2d", 2.5, ["--wavelet", "9/7"]),
    ("needle", 1.8, []),
    ("srad_v1", 1.3, []),
    ("srad_v2", 3.3, []),
]

# Iterations on a GPU of today: some seconds a job.
ITERATIONS = {
    "backprop": 4, "bfs": 12, "dwt2d": 8, "lavamd": 8, "needle": 1, "srad_v1": 300, "srad_v2": 8,
    "predict": 40, "train": 100, "detect": 300, "generate": 2000,
}
# Rain, Table 1: the name there, long or short, program, options, launches, and how many of them an iteration is. An
# option is a count of elements that a launch works on, or (in SIDES) the side of a square of them.
RAIN = [
    ("BS-L", "long", "blackscholes", {"size": 4 << 20}, 8192, 1),
    ("DXTC", "long", "dxtc", {"width": 512, "height": 512}, 262144, 1),
    ("Histogram", "long", "histogram", {"width": 1024, "height": 512}, 4096, 4),
    ("Eigenvalues", "long", "eigenvalues", {"size": 8 << 10}, 3, 3),
    ("MatMul", "long", "mm2", {"rows": 480, "inner": 480, "columns": 480}, 8192, 2),
    ("BS-S", "short", "blackscholes", {"size": 4 << 20}, 1024, 1),
    ("MonteCarlo", "short", "montecarlo", {"size": 2 << 10, "paths": 16 << 10}, 10000, 1),
    ("Transpose", "short", "transpose", {"rows": 800, "columns": 800}, 10000, 1),
    ("BFS", "short", "bfs", {"nodes": 1 << 20, "degree": 32}, 12, 12),
    ("Gaussian", "short", "gaussian", {"width": 50, "height": 50}, 8192, 4),
]
SIDES = {"width", "height", "rows", "columns", "inner"}
COUNTS = {"size", "nodes"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"

PARTICLES = 32  # of a lavamd's box
HAVE_BLOCKS = {"backprop", "bfs", "dwt2d", "lavamd", "srad_v1", "srad_v2", "nn", "mm2", "blackscholes", "dxtc",
               "histogram", "eigenvalues", "montecarlo", "transpose"}

# Device memory in GiB at most, and the network, which takes less: detect 0.06, generate 0.34, train 0.34, predict 1.04 GB. CASE
# has 0.5 to 1.5 GB for each, of frameworks with workspaces; what they have in common is that eight fit one GPU.
NETWORKS = {
    "predict": (1.6, {"side": 224, "channels": 32, "layers": 5, "classes": 1000, "batch": 128}),
    "train": (0.6, {"side": 32, "channels": 64, "layers": 3, "classes": 10, "batch": 512}),
    "detect": (0.3, {"side": 416, "channels": 16, "layers": 5, "classes": 80, "batch": 4}),
    "generate": (0.4, {"hidden": 4096, "layers": 3, "classes": 96, "batch": 64}),
}


def side(cells):
    """The side of a square of so many cells, even where it is large."""
    length = max(int(math.sqrt(cells)), 16)
    return length - length % 16 if length >= 256 else length


def sizes(program, memory):
    """The options by which a program takes about `memory` bytes (workloads/README.md has the formulas)."""
    if program == "backprop":
        return {"inputs": int(memory / 136), "hidden": 16}
    if program == "bfs":
        return {"nodes": int(memory / 46), "degree": 8}
    if program == "dwt2d":
        return {"width": side(memory / 19), "height": side(memory / 19)}
    if program == "lavamd":
        return {"boxes": max(int((memory / (112 + 64 * PARTICLES)) ** (1 / 3)), 1), "particles": PARTICLES}
    if program == "needle":
        return {"length": side(memory / 8)}
    pixel = 32 if program == "srad_v1" else 24
    return {"rows": side(memory / pixel), "columns": side(memory / pixel)}


def network_bytes(mode, net):
    """What `nn` allocates."""
    batch, classes = net["batch"], net["classes"]
    if mode == "generate":
        hidden, total = net["hidden"], batch * (1 + 2 * classes)
        for layer in range(net["layers"]):
            below = hidden if layer else classes
            total += hidden * (below + hidden + 1 + batch)
        return 4 * (total + 2 * hidden * batch + classes * (hidden + 1))
    total, largest, below, edge, channels = 3 * batch * net["side"] ** 2, 0, 3, net["side"], net["channels"]
    shapes = []  # inner, outputs, places of the kernel
    for _ in range(net["layers"]):
        edge = (edge + 1) // 2
        shapes.append((9 * below, channels, edge * edge))
        below, channels = channels, 2 * channels
    shapes.append((below, 3 * (5 + classes), edge * edge) if mode == "detect" else (below * edge * edge, classes, 1))
    for inner, outputs, places in shapes:
        layer = outputs * (inner + 1 + batch * places)
        total += 2 * layer + inner * batch * places if mode == "train" else layer
        largest = max(largest, inner * batch * places)
    return 4 * (total + largest + (2 * batch if mode == "train" else 0))


def network(mode, scale):
    """The network of the table, halved in its sizes by turns until it takes no more than its memory over `scale`."""
    gib, options = NETWORKS[mode]
    net = dict(options)
    floors = {"batch": 1, "hidden": 16, "channels": 4, "side": 16, "classes": 10}
    turns = [name for name in ("batch", "hidden", "channels", "side", "batch", "classes") if name in net]
    while network_bytes(mode, net) > gib * GIB / scale:
        for name in turns:
            if network_bytes(mode, net) > gib * GIB / scale:
                net[name] = max(net[name] // 2, floors[name])
        if all(net[name] <= floors[name] for name in turns):
            break
    return net


class Draw:
    """Choices that depend on the seed alone: of Python's generator only random() stays the same over its versions."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def one_of(self, choices):
        return choices[int(self._random.random() * len(choices))]

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            other = int(self._random.random() * (last + 1))
            items[last], items[other] = items[other], items[last]


def flags(options):
    return [text for name, value in options.items() for text in ("--" + name, str(value))]


def iterations(name, work):
    return max(round(ITERATIONS[name] * work), 1)


def rodinia_job(label, kind, args):
    program, gib, further = kind
    command = [program] + flags(sizes(program, gib * GIB / args.scale)) + further
    command += ["--iterations", str(iterations(program, args.work))]
    if program == "lavamd" and ITERATIONS[program] * args.work < 1:
        command += ["--own", str(max(round(100 * ITERATIONS[program] * args.work), 1))]
    return {"kind": label, "program": program, "app": program, "command": command}


def network_job(mode, args):
    command = ["nn", "--mode", mode] + flags(network(mode, args.scale))
    command += ["--iterations", str(iterations(mode, args.work))]
    if mode == "detect":
        command += ["--gap", str(args.gap)]
    return {"kind": mode, "program": "nn", "app": "nn-" + mode, "command": command}


def rain_job(entry, args):
    label, kind, program, options, launches, launches_an_iteration = entry
    scaled = {}
    for name, value in options.items():
        divisor = args.scale if name in COUNTS else math.sqrt(args.scale) if name in SIDES else 1
        scaled[name] = max(int(value / divisor), 1)
    rounds = max(round(launches / launches_an_iteration * args.work), 1)
    command = [program] + flags(scaled) + ["--iterations", str(rounds)]
    return {"kind": kind, "program": program, "app": label, "command": command}


def rain_entries(mix):
    if mix == "rain":
        return RAIN
    long, short = divmod(LETTERS.index(mix[len("rain-"):]), 5)
    return [RAIN[long], RAIN[5 + short]]


def draw_jobs(args):
    if args.mix in MIXES:
        count, large = MIXES[args.mix]
        draw = Draw(1000 * args.seed + int(args.mix[1:]))
        jobs = [rodinia_job("large", draw.one_of(LARGE), args) for _ in range(large)]
        jobs += [rodinia_job("small", draw.one_of(SMALL), args) for _ in range(count - large)]
        draw.shuffle(jobs)
    elif args.mix.startswith("rain"):
        jobs = [rain_job(entry, args) for entry in rain_entries(args.mix)]
    elif args.mix == "nn-random":
        draw = Draw(1000 * args.seed)
        jobs = [network_job(draw.one_of(sorted(NETWORKS)), args) for _ in range(128)]
    else:
        jobs = [network_job(args.mix[len("nn-"):], args) for _ in range(8)]
    for number, job in enumerate(jobs, 1):
        job["name"] = f"{job['app']}-{number}"
        job["command"] += ["--seed", str(number), "--check", args.check]
        if args.blocks and job["program"] in HAVE_BLOCKS:
            job["command"] += ["--blocks", str(args.blocks)]
    return jobs


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_toml(jobs, args):
    lines = [f"# {args.mix} by workloads/mixes/mix.py: seed {args.seed}, scale {args.scale:g}, work {args.work:g}."]
    for job in jobs:
        program = f"{args.workloads}/{job['command'][0]}{'_static' if args.static else ''}"
        command = ", ".join(quoted(text) for text in [program] + job["command"][1:])
        lines += ["", "[[job]]", f"name = {quoted(job['name'])}", f"kind = {quoted(job['kind'])}",
                  f"app = {quoted(job['app'])}", f"command = [{command}]"]
    return "\n".join(lines) + "\n"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    networks = ["nn-" + mode for mode in NETWORKS] + ["nn-random"]
    pairs = ["rain-" + letter for letter in LETTERS]
    parser.add_argument("mix", metavar="MIX", choices=list(MIXES) + networks + ["rain"] + pairs,
                        help="the name of a mix, as above")
    parser.add_argument("--seed", type=int, default=1, help="which of the mixes of that name (1)")
    parser.add_argument("--scale", type=float, default=1, help="divides each job's memory (1)")
    parser.add_argument("--work", type=float, default=1,
                        help="multiplies each job's iterations, of which at least 1 is left (1)")
    parser.add_argument("--workloads", default=".", help="directory of the programs (that of the file)")
    parser.add_argument("--static", action="store_true", help="the programs with the CUDA runtime linked in")
    parser.add_argument("--blocks", type=int, default=0,
                        help="at most so many blocks a launch, where a program can (0: all)")
    parser.add_argument("--gap", type=int, default=20, help="milliseconds on the host between frames of nn-detect (20)")
    parser.add_argument("--check", choices=["full", "sample", "none"],
                        help="what the jobs compare (none at scale 1 but for Rain's, where the CPU would take longer than "
                             "the GPU; else sample)")
    args = parser.parse_args(arguments)
    if args.scale < 1 or args.work <= 0:
        parser.error("--scale must be at least 1, and --work more than 0")
    if args.check is None:
        args.check = "none" if args.scale == 1 and not args.mix.startswith("rain") else "sample"
    return args


def main():
    args = parse(sys.argv[1:])
    sys.stdout.write(as_toml(draw_jobs(args), args))


if __name__ == "__main__":
    main()
