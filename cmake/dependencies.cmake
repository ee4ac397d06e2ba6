# What heddle can be built without, found in one place: which part is left out where something is missing, and what to
# install for it. `make check` refuses to leave out anything (HEDDLE_REQUIRE_ALL); everybody else is told.
option(HEDDLE_REQUIRE_ALL "Fail where a part of heddle would be left out" OFF)

# heddle_part(NAME "what it is" INSTALL "what brings it" NEEDS VARIABLE ...)
# Sets HEDDLE_HAS_NAME. Each VARIABLE names a file that must be there: one that the cache remembers may be gone.
function(heddle_part name what)
  cmake_parse_arguments(PART "" "INSTALL" "NEEDS" ${ARGN})
  set(missing "")
  foreach(need ${PART_NEEDS})
    if(NOT ${need} OR NOT EXISTS "${${need}}")
      list(APPEND missing ${need})
    endif()
  endforeach()
  if(NOT missing)
    set(HEDDLE_HAS_${name} ON PARENT_SCOPE)
    return()
  endif()
  set(HEDDLE_HAS_${name} OFF PARENT_SCOPE)
  string(REPLACE ";" ", " missing "${missing}")
  set(text "Left out: ${what} (not found: ${missing}). Install ${PART_INSTALL} for it, and configure again.")
  if(HEDDLE_REQUIRE_ALL)
    message(SEND_ERROR "${text}")
  else()
    message(STATUS "${text}")
  endif()
endfunction()

find_program(CCACHE ccache)

find_library(HEDDLE_SECCOMP seccomp)
find_path(HEDDLE_SECCOMP_INCLUDE seccomp.h)
heddle_part(CONFINEMENT "the workers' system call filter" INSTALL "libseccomp-dev"
  NEEDS HEDDLE_SECCOMP HEDDLE_SECCOMP_INCLUDE)

find_program(HEDDLE_NVCC nvcc
             HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin
             PATHS /usr/local/cuda/bin /opt/cuda/bin
             DOC "NVIDIA's CUDA compiler, for the workloads and the end-to-end tests")
set(toolkit "the CUDA toolkit (https://developer.nvidia.com/cuda-downloads; no GPU or driver is needed) in \
/usr/local/cuda, or set CUDA_HOME,")
heddle_part(PROGRAMS "the workloads, the demo and the end-to-end tests" INSTALL "${toolkit}" NEEDS HEDDLE_NVCC)

find_path(HEDDLE_CUDA_INCLUDE cuda.h
          HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES include
          PATHS /usr/local/cuda/include /opt/cuda/include)
heddle_part(GPUS "CUDA devices" INSTALL "${toolkit}" NEEDS HEDDLE_CUDA_INCLUDE)

if(HEDDLE_TESTS AND HEDDLE_HAS_PROGRAMS)
  get_filename_component(root ${HEDDLE_NVCC}/../.. REALPATH)
  find_library(HEDDLE_TOOLKIT_CUBLAS cublas HINTS ${root} PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)
  find_library(HEDDLE_TOOLKIT_CURAND curand HINTS ${root} PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)
  # It is large, and may be left out of a toolkit.
  find_library(HEDDLE_TOOLKIT_CUFFT cufft HINTS ${root} PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH)
  heddle_part(LIBRARY_PROGRAMS "the tests of programs that link cuBLAS and cuRAND"
    INSTALL "the toolkit's libcublas-dev and libcurand-dev" NEEDS HEDDLE_TOOLKIT_CUBLAS HEDDLE_TOOLKIT_CURAND)
endif()

if(HEDDLE_TESTS AND HEDDLE_HAS_PROGRAMS)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  heddle_part(PYTHON_TESTS "the tests of the mixes of workloads and of the experiments" INSTALL "python3" NEEDS Python3_EXECUTABLE)
endif()

find_program(HEDDLE_LLVM_CONFIG NAMES llvm-config-19)
find_program(HEDDLE_CLANG clang++-19 DOC "The host compiler of heddle cc: clang 19")
heddle_part(COMPILER "the compiler, heddle cc" INSTALL "llvm-19-dev and clang-19" NEEDS HEDDLE_LLVM_CONFIG HEDDLE_CLANG)

# A sanitizer sees nothing of a pass that clang runs.
if(HEDDLE_TESTS AND HEDDLE_HAS_COMPILER AND NOT HEDDLE_SANITIZE)
  find_program(HEDDLE_FILECHECK FileCheck-19 HINTS /usr/lib/llvm-19/bin)
  find_file(HEDDLE_LIT lit.py HINTS /usr/lib/llvm-19/build/utils/lit)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  heddle_part(SHAPE_TESTS "the tests of what the compiler's pass makes of programs" INSTALL "llvm-19-tools and python3"
    NEEDS HEDDLE_FILECHECK HEDDLE_LIT Python3_EXECUTABLE)
endif()
