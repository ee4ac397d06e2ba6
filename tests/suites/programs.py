"""Which programs the suites have: how each is built, what it is given, and how it tells that it is right.

Nothing of the suites is kept here. Sources lie in a directory that the caller names; inputs that a suite does not
bring along are made by `inputs.py`.
"""

import glob
import os
import re
from dataclasses import dataclass, field


@dataclass
class Program:
    suite: str
    name: str
    directory: str  # where it is built, from the suites' directory
    sources: list
    flags: list = field(default_factory=list)
    sizes: dict = field(default_factory=dict)  # macros defined behind the headers, which use such names themselves
    edits: list = field(default_factory=list)  # (pattern, replacement) in a copy of the sources
    files: list = field(default_factory=list)  # of the sources' directory, that it reads beside `data`
    arguments: list = field(default_factory=list)
    inputs: str = ""  # a function of inputs.py
    preset: str = ""  # of the devices, where the default ones lack what it needs
    right: str = ""  # output of a run that found its own result right
    wrong: str = ""  # output of one that did not
    compares: str = ""  # output of one that compares, and whose exit status tells what it found
    cpu_sources: list = field(default_factory=list)  # the same on the CPU
    cpu_flags: list = field(default_factory=list)
    cpu_arguments: list = field(default_factory=list)
    reference: str = ""  # a function of references.py, where the suite has nothing to compare with
    compare: str = ""  # file that both write, or "stdout"
    keep: str = ""  # of the lines compared: those with a match, of each the match
    last: int = 0  # only so many numbers, the last ones
    tolerance: float = 1e-3


# --- PolyBench-GPU: each program compares with its own CPU loop -----------------------------------------------------

POLYBENCH_SIZES = {"N": 192, "NI": 192, "NJ": 192, "NK": 192, "NL": 192, "NM": 192, "M": 192, "NX": 192, "NY": 192,
                   "NQ": 24, "NR": 24, "NP": 24, "TMAX": 10, "TSTEPS": 10}
# CORR and COVAR round the number of their blocks of 256 threads down.
POLYBENCH_OTHERS = {"DOITGEN": {"NQ": 48, "NR": 48, "NP": 48}, "3DCONV": {"NI": 64, "NJ": 64, "NK": 64},
                    "CORR": {"N": 256, "M": 256}, "COVAR": {"N": 256, "M": 256}}


def polybench(suites):
    for directory in sorted(glob.glob(os.path.join(suites, "polybench/CUDA/*/"))):
        name = os.path.basename(directory.rstrip("/"))
        sources = [os.path.basename(f) for f in glob.glob(directory + "*.cu")]
        sizes = POLYBENCH_SIZES | POLYBENCH_OTHERS.get(name, {})
        yield Program("PolyBench-GPU", name, f"polybench/CUDA/{name}", sources,
                      flags=["-O3"], sizes=sizes,
                      right=r"Non-Matching CPU-GPU Outputs.*: 0\s*$", wrong=r"Non-Matching CPU-GPU Outputs.*: [1-9]")


# --- Rodinia: own checks where there are some, else the suite's OpenMP version -------------------------------------

NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"


def rodinia(suites):
    cuda, omp = "rodinia/cuda/", os.path.join(suites, "rodinia/openmp/")
    fixed_time = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixed_time.c")

    # Some include helper_cuda.h, which NVIDIA ships with its samples.
    helpers = os.path.join(suites, "cuda-samples/Common")

    def program(name, directory, sources, flags=(), **more):
        return Program("Rodinia", name, cuda + directory, sources, flags=[*flags, f"-I{helpers}"], **more)

    openmp = ["-O2", "-fopenmp"]
    yield program("b+tree", "b+tree", ["main.c", "kernel/kernel_gpu_cuda_wrapper.cu",
                                       "kernel/kernel_gpu_cuda_wrapper_2.cu", "util/timer/timer.c", "util/num/num.c",
                                       "util/cuda/cuda.cu"],
                  inputs="b_plus_tree", arguments="file mil.txt command command.txt".split(),
                  cpu_sources=[omp + "b+tree/" + f for f in ("main.c", "kernel/kernel_cpu.c", "kernel/kernel_cpu_2.c",
                                                             "util/timer/timer.c", "util/num/num.c")],
                  cpu_flags=openmp, cpu_arguments="core 2 file mil.txt command command.txt".split(),
                  compare="output.txt")
    yield program("backprop", "backprop", ["backprop.c", "facetrain.c", "imagenet.c", "backprop_cuda.cu"],
                  flags=["-DGPU"], arguments=["4096"])
    yield program("bfs", "bfs", ["bfs.cu"], inputs="bfs_graph", arguments=["graph.txt"],
                  cpu_sources=[omp + "bfs/bfs.cpp"], cpu_flags=openmp, cpu_arguments=["2", "graph.txt"],
                  compare="result.txt")
    for kind in ("euler3d", "euler3d_double", "pre_euler3d", "pre_euler3d_double"):
        cpu = kind.replace("euler3d", "euler3d_cpu")
        yield program(f"cfd/{kind}", "cfd", [f"{kind}.cu"], inputs="cfd_mesh", arguments=["mesh"],
                      cpu_sources=[omp + f"cfd/{cpu}.cpp"], cpu_flags=openmp + ["-Dblock_length=8"],
                      cpu_arguments=["mesh"], compare="density", last=576, tolerance=1e-2)
    yield program("dwt2d", "dwt2d", ["main.cu", "dwt.cu", "components.cu", "dwt_cuda/fdwt53.cu", "dwt_cuda/fdwt97.cu",
                                     "dwt_cuda/common.cu", "dwt_cuda/rdwt97.cu", "dwt_cuda/rdwt53.cu"],
                  flags=["-I."], inputs="bitmap", arguments="192.bmp -d 192x192 -f -5 -l 3".split())
    yield program("gaussian", "gaussian", ["gaussian.cu"], arguments=["-s", "16"])
    yield program("heartwall", "heartwall", ["main.cu", "AVI/avilib.c", "AVI/avimod.c"], flags=["-IAVI"],
                  inputs="video", arguments=["test.avi", "2"])
    yield program("hotspot", "hotspot", ["hotspot.cu"], inputs="hotspot",
                  arguments="64 2 4 temp power output.out".split(), cpu_sources=[omp + "hotspot/hotspot_openmp.cpp"],
                  cpu_flags=openmp, cpu_arguments="64 64 4 2 temp power output.out".split(), compare="output.out")
    yield program("hotspot3D", "hotspot3D", ["3D.cu"], inputs="hotspot3d",
                  arguments="64 8 10 power temp output.out".split(), right=r"Accuracy: \d\.\d+e-0[4-9]",
                  wrong=r"Accuracy: (\d\.\d+e(\+|-0[0-3])|-?nan|\d+\.\d+$)")
    yield program("huffman", "huffman", ["main_test_cu.cu", "stats_logger.cpp", "cpuencode.cpp"], inputs="symbols",
                  arguments=["test.in"], right=r"PASS", wrong=r"FAIL")
    yield program("hybridsort", "hybridsort", ["bucketsort.cu", "mergesort.cu", "main.cu"], arguments=["r"],
                  right=r"PASSED", wrong=r"FAILED")
    yield program("kmeans", "kmeans", ["cluster.c", "getopt.c", "kmeans.c", "kmeans_clustering.c", "kmeans_cuda.cu",
                                       "rmse.c"], inputs="points", arguments="-o -i points".split())
    yield program("lavaMD", "lavaMD", ["main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "util/num/num.c",
                                       "util/timer/timer.c", "util/device/device.cu", fixed_time], flags=["-DOUTPUT"],
                  arguments=["-boxes1d", "3"],
                  cpu_sources=[omp + "lavaMD/" + f for f in ("main.c", "kernel/kernel_cpu.c", "util/num/num.c",
                                                             "util/timer/timer.c")] + [fixed_time],
                  cpu_flags=openmp + ["-DOUTPUT"], cpu_arguments="-cores 2 -boxes1d 3".split(), compare="result.txt")
    yield program("lud", "lud/cuda", ["lud.cu", "lud_kernel.cu", "../common/common.c"], flags=["-I../common"],
                  arguments=["-s", "128", "-v"], wrong=r"dismatch", right=r">>>Verify<<<<")
    yield program("leukocyte", "leukocyte/CUDA", ["detect_main.c", "avilib.c", "find_ellipse.c", "track_ellipse.c",
                                                  "misc_math.c", "find_ellipse_kernel.cu", "track_ellipse_kernel.cu"],
                  flags=["-I../meschach_lib"])
    yield program("mummergpu", "mummergpu/src", ["mummergpu.cu", "mummergpu_main.cpp", "mummergpu_gold.cpp",
                                                 "suffix-tree.cpp", "PoolMalloc.cpp"])
    yield program("myocyte", "myocyte", ["main.cu"], inputs="myocyte", arguments=["10", "1", "0"])
    yield program("nn", "nn", ["nn_cuda.cu"], inputs="hurricanes",
                  arguments="filelist -r 5 -lat 30 -lng 90".split(), reference="nearest_hurricanes",
                  compare="stdout", keep=r"Distance=[\d.]+")
    yield program("nw", "nw", ["needle.cu"], flags=["-DTRACEBACK"], arguments=["256", "10"],
                  cpu_sources=[omp + "nw/needle.cpp"], cpu_flags=openmp + ["-DTRACEBACK"],
                  cpu_arguments=["256", "10", "2"], compare="result.txt")
    for kind in ("naive", "float"):
        yield program(f"particlefilter/{kind}", "particlefilter", [f"ex_particle_CUDA_{kind}_seq.cu"],
                      arguments="-x 64 -y 64 -z 5 -np 256".split(),
                      cpu_sources=[omp + "particlefilter/ex_particle_OPENMP_seq.c"], cpu_flags=openmp,
                      cpu_arguments="-x 64 -y 64 -z 5 -np 256".split(), compare="stdout",
                      keep=rf"[XY]E: {NUMBER}", last=2, tolerance=0.2)
    yield program("pathfinder", "pathfinder", ["pathfinder.cu"], flags=["-DBENCH_PRINT"],
                  arguments="2000 40 20".split(), cpu_sources=[omp + "pathfinder/pathfinder.cpp"],
                  cpu_flags=openmp + ["-DBENCH_PRINT"], cpu_arguments="2000 40".split(), compare="stdout",
                  keep=r"^[\d ]{2000,}$")
    yield program("srad_v1", "srad/srad_v1", ["main.cu"], inputs="image", arguments="5 0.5 64 64".split(),
                  cpu_sources=[omp + "srad/srad_v1/main.c"], cpu_flags=openmp,
                  cpu_arguments="5 0.5 64 64 2".split(), compare="image_out.pgm", tolerance=1.01)
    yield program("srad_v2", "srad/srad_v2", ["srad.cu"], flags=["-DOUTPUT"],
                  arguments="128 128 0 31 0 31 0.5 2".split(), cpu_sources=[omp + "srad/srad_v2/srad.cpp"],
                  cpu_flags=openmp + ["-DOUTPUT"], cpu_arguments="128 128 0 31 0 31 2 0.5 2".split(),
                  compare="stdout", keep=r"^(?:\d+\.\d+ ){16,}")
    yield program("streamcluster", "streamcluster", ["streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu",
                                                     "streamcluster_header.cu"],
                  arguments="10 20 32 1024 1024 100 none output.txt 1".split(),
                  cpu_sources=[omp + "streamcluster/streamcluster_omp.cpp"], cpu_flags=openmp,
                  cpu_arguments="10 20 32 1024 1024 100 none output.txt 1".split(), compare="output.txt")


# --- the samples: sources, flags and arguments as their CMake files and the list for automatic runs say ------------

SAMPLES_OF = ("0_Introduction", "2_Concepts_and_Techniques", "3_CUDA_Features", "4_CUDA_Libraries",
              "5_Domain_Specific", "6_Performance")
NOT_COMPUTE = re.compile(r"EGL|(?<![a-z])D3D|Vulkan|vulkan|GL/|GLFW|NvSci|glut|helper_gl|freeglut|mpi\.h|npp|nvjpeg|"
                         r"FreeImage|cuda_gl_interop|nvcuvid", re.I)
# Smaller problems than the samples' own, where a software device would not finish those in time.
SAMPLE_ARGUMENTS = {
    "FDTD3d": ["--dimx=64", "--dimy=64", "--dimz=64", "--timesteps=2"],
    "MonteCarloMultiGPU": ["--scaling=weak"],
    "NV12toBGRandResize": ["-input=data/test1920x1080.nv12", "-width=1920", "-height=1080", "-dst_width=640",
                           "-dst_height=480", "-batch=2"],
    "SobolQRNG": ["--vectors=4096", "--dimensions=64"],
    "UnifiedMemoryPerf": ["-kernel-iterations=1"],
    "cudaGraphsPerfScaling": ["5", "1", "20", "1", "0", "1", "40"],
    "globalToShmemAsyncCopy": ["-wA=256", "-hA=256", "-wB=256", "-hB=256"],
    "matrixMul": ["-wA=128", "-hA=128", "-wB=128", "-hB=128"],
    "reductionMultiBlockCG": ["-n=65536", "-maxblocks=8"],
    "simpleStreams": ["--use_generic_memory"],
    "transpose": ["-dimX=128", "-dimY=128"],
}
# The same where the sources say it alone.
GEMMS = [f"{kind}TensorCoreGemm" for kind in ("bf16", "cuda", "dmma", "imma", "tf32")]
SAMPLE_EDITS = {
    "BlackScholes": [(r"(OPT_N +=) \d+", r"\1 100000"), (r"(NUM_ITERATIONS =) \d+", r"\1 4")],
    "HSOpticalFlow": [(r"(nSolverIters =) \d+", r"\1 10"), (r"(nLevels +=) \d+", r"\1 3")],
    "MonteCarloMultiGPU": [(r"(nOptions =) 8 \* 1024", r"\1 256"), (r"(PATH_N =) \d+", r"\1 16384")],
    "NV12toBGRandResize": [(r"(define TEST_LOOP) \d+", r"\1 1")],
    "UnifiedMemoryPerf": [(r"(maxSampleSizeInMb =) \d+", r"\1 1"), (r"(VERIFY_GPU_CORRECTNESS) 0", r"\1 1")],
    "alignedTypes": [(r"(MEM_SIZE +=) \d+", r"\1 1000000"), (r"(NUM_ITERATIONS =) \d+", r"\1 2")],
    "convolutionTexture": [(r"(iterations +=) \d+", r"\1 1")],
    "scan": [(r"(iCycles =) \d+", r"\1 1")],
    "simplePitchLinearTexture": [(r"(define NUM_REPS) \d+", r"\1 2")],
    "simpleStreams": [(r"(nreps +=) 10\b", r"\1 2"), (r"( n +=) 16 \*", r"\1")],
    **{name: [(r"(define [MNK]_TILES) \d+", r"\1 32")] for name in GEMMS},
}
SAMPLE_FLAGS = {
    **{name: ["-arch=compute_80"] for name in ("globalToShmemAsyncCopy", "simpleAWBarrier")},
    **{name: ["-arch=compute_80", "-DCPU_DEBUG=1"] for name in GEMMS},  # compare with the host
}
SAMPLE_SAYS_RIGHT = (r"(?i:test passed|passed|succe(ss|ed)|correct|PASS\b|Result = PASS|are equal|match)|\bOK\b|"
                     r"Test Results: 0 Failures")
SAMPLE_SAYS_WRONG = (r"(?i)test failed|\bFAILED\b|(?-i:\b(FAIL|FAILURE)\b)|mismatch(?!.* 0\b)|error at|"
                     r"\*\*\*corrupted|returned ERROR")
# Programs that compare with the host and tell what they found in words of their own.
SAMPLE_RIGHT = {
    "HSOpticalFlow": r"L1 error : 0\.0[0-4]",  # of 0.05 that it allows
    "MC_EstimatePi": r"Relative error: +\d\.\d+e-0[2-9]",
    "MersenneTwisterGP11213": r"L1 norm: 0\.0+E\+00",
    "SobolQRNG": r"L1-Error: (0|\d\.\d+e-0[5-9])$",
    "batchCUBLAS": r"^0 error\(s\)",
    "newdelete": r"Test Summary: (\d)/\1 succesfully run",
    "quasirandomGenerator": r"L1 norm: \d\.\d+E-0[6-9]",
    "shfl_scan": r"CheckSum: (\d+), \(expect 1920x1080=\1\)",
    "simpleMultiGPU": r"Relative difference: \d\.\d+E-0[5-9]",
    "stereoDisparity": r"GPU Checksum = (\d+),[\s\S]*CPU Checksum = \1,",
    "threadFenceReduction": r"GPU result = (0\.\d{6})\d*\s+CPU result = \1",
}
SAMPLE_WRONG = {"simpleAssert": "returned ERROR"}  # its assertion is to fail
# Those that say that they compare, and what they found by their exit status.
SAMPLE_COMPARES = {
    "FDTD3d": r"^CompareData \(tolerance",
    "interval": r"^Check against Host computation",
    "simpleCubemapTexture": r"^Comparing kernel output to expected data",
    "simpleLayeredTexture": r"^Comparing kernel output to expected data",
    "simpleZeroCopy": r"^> Checking the results from vectorAddGPU",
}

# How the samples' CMake files name the toolkit's libraries; those that nvcc links anyway are not here.
LIBRARIES = {name: [name] for name in ("cublas", "cublasLt", "cufft", "cufftw", "cusparse", "curand", "nvrtc")} | {
    "cuda_driver": ["cuda"], "cufft_static": ["cufft"], "cusolver": ["cusolver", "cusparse", "cublas"]}


def samples(suites):
    for group in SAMPLES_OF:
        for directory in sorted(glob.glob(os.path.join(suites, "cuda-samples/Samples", group, "*/"))):
            name = os.path.basename(directory.rstrip("/"))
            sources = sorted(os.path.basename(f) for e in ("cu", "cpp", "c") for f in glob.glob(f"{directory}*.{e}"))
            cmake = open(directory + "CMakeLists.txt").read() if os.path.exists(directory + "CMakeLists.txt") else ""
            listed = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", cmake)
            if listed:
                sources = [s for s in listed.group(1).split() if re.search(r"\.(cu|cpp|c)$", s) and "$" not in s]
            text = "".join(open(directory + s, errors="replace").read() for s in sources
                           if os.path.exists(directory + s))
            flags = [f"-I{os.path.join(suites, 'cuda-samples/Common')}", "-I.", "-std=c++17"]
            flags += [f"-I{name}" for name in ("inc",) if os.path.isdir(directory + name)]
            if "CUDA_SEPARABLE_COMPILATION ON" in cmake:
                flags.append("-rdc=true")
            if "OpenMP" in cmake:
                flags.append("-Xcompiler=-fopenmp")
            flags += SAMPLE_FLAGS.get(name, [])
            linked = [lib for name in re.findall(r"CUDA::(\w+)", cmake) for lib in LIBRARIES.get(name, [])]
            linked += ["nvJitLink"] if "NAME nvJitLink" in cmake else []
            copied = re.findall(r"\$\{CMAKE_CURRENT_SOURCE_DIR\}/([\w.]+\.\w+)", cmake)
            flags += [f"-l{lib}" for lib in dict.fromkeys(linked)]
            yield Program("cuda-samples", name, f"cuda-samples/Samples/{group}/{name}", sources, flags=flags,
                          arguments=SAMPLE_ARGUMENTS.get(name, []), edits=SAMPLE_EDITS.get(name, []),
                          preset="H200" if name in GEMMS else "",  # more shared memory than a P100 has
                          files=[file for file in copied if os.path.isfile(directory + file)],
                          right=next((own for start, own in SAMPLE_RIGHT.items() if name.startswith(start)),
                                     SAMPLE_SAYS_RIGHT),
                          wrong=SAMPLE_WRONG.get(name, SAMPLE_SAYS_WRONG), compares=SAMPLE_COMPARES.get(name, ""))


def graphical(program, suites):
    """Why a program is no compute program, or empty."""
    for source in program.sources:
        path = os.path.join(suites, program.directory, source)
        if os.path.exists(path):
            found = NOT_COMPUTE.search("\n".join(line for line in open(path, errors="replace") if "#include" in line))
            if found:
                return found.group(0)
    return ""
