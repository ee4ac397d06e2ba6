#!/usr/bin/env python3
"""Altis' programs with managed memory (--uvm), alone, natively and under heddle: how long each process takes.

    altis.py DIRECTORY --heddle BIN/heddle --out DIRECTORY [--size 1..4] [--passes N] [--only REGEX] [--rounds N]

DIRECTORY is Altis' repository (utcs-scea/altis). Each program is built by plain nvcc, for the machine's GPU, with PTX,
against a header that gives it the calls which CUDA 13 changed. A round runs it natively, natively with --uvm, and the same
under heddle; of each the median is taken, and of what a process takes, what `--properties` (which only asks for the device)
takes is given too, since it is the same for all. Exit status: 1 where a program failed under heddle but not natively.
"""

import argparse
import os
import re
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

from strangers import last_error, run

# CUDA 13 took a location where a device's number was, and dropped a property; everything else of Altis stays as it is.
COMPATIBLE = """\
#pragma once
#ifdef __cplusplus
#include <cuda_runtime.h>
#define cudaThreadSynchronize cudaDeviceSynchronize
static inline cudaMemLocation altis_place(int device) {
  cudaMemLocation place{};
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  return place;
}
static inline cudaError_t cudaMemPrefetchAsync(const void* memory, size_t bytes, int device, cudaStream_t stream = 0) {
  return cudaMemPrefetchAsync(memory, bytes, altis_place(device), 0u, stream);
}
static inline cudaError_t cudaMemAdvise(const void* memory, size_t bytes, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise(memory, bytes, advice, altis_place(device));
}
static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                                   size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
#endif
"""
LEAST_WORK = 0.1  # seconds natively beside the start: less says nothing
COMMON = ["Option.cpp", "OptionParser.cpp", "ResultDatabase.cpp", "Timer.cpp", "CTimer.cpp"]
# Name, directory, sources where not all of the directory's, further options of nvcc.
PROGRAMS = [
    ("bfs", "level1/bfs", None, []),
    ("gemm", "level1/gemm", None, []),
    ("gups", "level1/gups", None, []),
    ("pathfinder", "level1/pathfinder", None, ["-std=c++14"]),
    ("sort", "level1/sort", None, []),
    ("fdtd2d", "level2/fdtd2d", None, ["-rdc=true"]),
    ("kmeans", "level2/kmeans", None, []),
    ("lavamd", "level2/lavamd", ["lavaMD.cu", "kernel/kernel_gpu_cuda_wrapper.cu", "util/timer/timer.c"], []),
    ("mandelbrot", "level2/mandelbrot", None, ["-rdc=true"]),
    ("nw", "level2/nw", ["needle.cu"], []),
    ("particlefilter_naive", "level2/particlefilter", ["ex_particle_CUDA_naive_seq.cu"], []),
    ("particlefilter_float", "level2/particlefilter", ["ex_particle_CUDA_float_seq.cu"], []),
    ("raytracing", "level2/raytracing/raytracing_cuda", None, []),
    ("srad", "level2/srad", ["srad.cu"], ["-rdc=true"]),
    ("where", "level2/where", None, []),
]


def build(program, options):
    """Builds it; returns why it could not be built, or None."""
    name, place, sources, more = program
    binary = os.path.join(options.out, name)
    if os.path.exists(binary):
        return None
    base = os.path.join(options.directory, "src")
    here = os.path.join(base, "cuda", place)
    if sources is None:
        sources = sorted(file for file in os.listdir(here) if file.endswith(".cu"))
    standard = [] if any(option.startswith("-std") for option in more) else ["-std=c++17"]
    command = ["nvcc", "-w", "-O3", *standard, "-DHAVE_GETTIMEOFDAY", "-gencode",
               f"arch=compute_{options.sm},code=[compute_{options.sm},sm_{options.sm}]",
               "-I", options.out, "-I", here, "-I", f"{base}/cuda/common", "-I", f"{base}/common", "-include", "altis_compatible.h",
               *(os.path.join(here, file) for file in sources), os.path.join(options.out, "main.cu"),
               *(os.path.join(base, "common", file) for file in COMMON), *more, "-lcublas", "-lcudadevrt", "-o", binary]
    status, output, _ = run(command, options.out, 400)
    return None if status == 0 else last_error(output)


def prepare(options):
    os.makedirs(options.out, exist_ok=True)
    for name, text in (("altis_compatible.h", COMPATIBLE), ("config.h", "")):
        with open(os.path.join(options.out, name), "w") as out:
            out.write(text)
    main = open(os.path.join(options.directory, "src/cuda/common/main.cu"), errors="replace").read()
    with open(os.path.join(options.out, "main.cu"), "w") as out:
        out.write(main.replace("deviceProp.clockRate", "0"))


def execute(command, options):
    """(what went wrong or None, seconds)"""
    status, output, seconds = run(command, options.out, options.limit)
    if status is None:
        return f"not done after {options.limit:.0f} s", seconds
    if status != 0:
        return f"exit {status}: {(output.strip().splitlines() or [''])[-1][-160:]}", seconds
    return None, seconds


def measure(program, options):
    name = program[0]
    plain = [os.path.join(options.out, name), "-s", str(options.size), "-n", str(options.passes), "-q"]
    under = [options.heddle, "run", "--"]
    ways = {"start": [plain[0], "--properties"], "heddle start": [*under, plain[0], "--properties"],
            "native": plain, "native uvm": [*plain, "--uvm"], "heddle": [*under, *plain], "heddle uvm": [*under, *plain, "--uvm"]}
    seen, wrong = {way: [] for way in ways}, {}
    for _ in range(options.rounds):
        for way, command in ways.items():
            why, seconds = execute(command, options)
            seen[way].append(seconds)
            if why:
                wrong[way] = why
    return {way: statistics.median(times) for way, times in seen.items()}, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=os.path.abspath)
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--out", required=True, type=os.path.abspath)
    parser.add_argument("--size", type=int, default=1, help="Altis' problem size, 1 to 4")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=".", help="a regular expression that the names match")
    parser.add_argument("--sm", default="90", help="the GPU's compute capability, as nvcc has it")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a run may take")
    options = parser.parse_args()
    prepare(options)
    chosen = [program for program in PROGRAMS if re.search(options.only, program[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        why = dict(zip((program[0] for program in chosen), pool.map(lambda program: build(program, options), chosen)))
    for name, reason in why.items():
        if reason:
            print(f"not built: {name}: {reason}")
    print(f"size {options.size}, {options.passes} passes, median of {options.rounds}; whole processes, seconds")
    print(f"{'program':<22} {'native':>8} {'uvm':>8} {'heddle':>8} {'uvm':>8}   {'ratio':>6} {'uvm':>6}  without start, uvm")
    whole, inside, failed = [], [], 0
    for program in chosen:
        if why[program[0]]:
            continue
        median, wrong = measure(program, options)
        if any(not way.startswith("heddle") for way in wrong):
            print(f"{program[0]:<22} natively: {wrong}")
            continue
        if wrong:
            failed += 1
            print(f"{program[0]:<22} FAILED under heddle: {wrong}")
            continue
        whole.append(median["heddle uvm"] / median["native uvm"])
        work = median["native uvm"] - median["start"]
        if work >= LEAST_WORK:
            inside.append((median["heddle uvm"] - median["heddle start"]) / work)
        print(f"{program[0]:<22} {median['native']:8.3f} {median['native uvm']:8.3f} {median['heddle']:8.3f} {median['heddle uvm']:8.3f}"
              f"   {median['heddle'] / median['native']:6.2f} {whole[-1]:6.2f} " +
              (f"{inside[-1]:8.2f}" if work >= LEAST_WORK else f"{'-':>8}"), flush=True)
    for what, each in (("whole processes", whole), (f"without their start, where {LEAST_WORK} s are left natively", inside)):
        if each:
            print(f"with managed memory, heddle over native, {what}: median {statistics.median(each):.2f}, worst {max(each):.2f} "
                  f"of {len(each)} programs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
