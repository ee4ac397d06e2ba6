// What every workload shares: checked CUDA calls, reproducible data, verdicts; options.h has the command line.
// Plain CUDA runtime, C++17, nothing of heddle: these programs stand for what tenants bring.
//
// Exit codes: 0 right (or not checked), 1 a CUDA call or the host's memory failed, 2 a wrong result, 64 wrong usage.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace workload {

constexpr int kExitError = 1;
constexpr int kExitWrongResult = 2;
constexpr int kExitUsage = 64;

inline const char* program_name = "workload";

// --- CUDA calls --------------------------------------------------------------------------------------------------

inline void check_cuda(cudaError_t error, const char* call, const char* detail = "") {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %.*s: %s (%d)%s\n", program_name, static_cast<int>(std::strcspn(call, "(<")), call,
               cudaGetErrorString(error), static_cast<int>(error), detail);
  std::exit(kExitError);
}

// Ends the program with one line that names the function unless the call succeeds.
#define CUDA_CHECK(call) ::workload::check_cuda((call), #call)

// To be called right after a launch; `kernel` names it in the message.
inline void check_launch(const char* kernel) {
  check_cuda(cudaGetLastError(), "cudaLaunchKernel", (std::string(", kernel ") + kernel).c_str());
}

__host__ __device__ constexpr size_t ceil_div(size_t value, size_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Blocks of a grid-stride launch: what `items` need, or fewer where the user asked for it (`limit` 0: no limit).
inline unsigned grid_size(size_t items, size_t threads, long long limit) {
  constexpr size_t kMaxGrid = std::numeric_limits<int>::max();
  const size_t wanted = std::min(std::max<size_t>(ceil_div(items, threads), 1), kMaxGrid);
  return static_cast<unsigned>(limit > 0 ? std::min(wanted, static_cast<size_t>(limit)) : wanted);
}

// The same of a launch over a plane of tiles, whose blocks go from tile to tile (for_each_tile).
inline dim3 tile_grid(size_t tiles_x, size_t tiles_y, long long limit) {
  if (limit <= 0) return {static_cast<unsigned>(tiles_x), static_cast<unsigned>(tiles_y)};
  const size_t wide = std::min(tiles_x, static_cast<size_t>(limit));
  const size_t high = std::min(tiles_y, std::max<size_t>(static_cast<size_t>(limit) / wide, 1));
  return {static_cast<unsigned>(wide), static_cast<unsigned>(high)};
}

// Calls body(x, y) for the block's tiles. All of its threads must come back from that; shared memory is free behind it.
template <class Body>
__device__ void for_each_tile(int tiles_x, int tiles_y, Body body) {
  for (int y = blockIdx.y; y < tiles_y; y += gridDim.y) {
    for (int x = blockIdx.x; x < tiles_x; x += gridDim.x) {
      body(x, y);
      __syncthreads();
    }
  }
}

// --- Data --------------------------------------------------------------------------------------------------------

// Numbers that depend on (seed, index) only, so that any element can be made again on its own, on the device too.
// `unit` is in [0, 1), `symmetric` in [-1, 1).
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(scramble(seed + 1)) {}
  __host__ __device__ uint64_t bits(uint64_t index) const { return scramble(seed_ + index * 0x9e3779b97f4a7c15u); }
  uint64_t below(uint64_t limit, uint64_t index) const { return bits(index) % limit; }
  __host__ __device__ float unit(uint64_t index) const { return static_cast<float>(bits(index) >> 40) * 0x1p-24f; }
  float symmetric(uint64_t index) const { return 2.0f * unit(index) - 1.0f; }
  Random fork(uint64_t stream) const { return Random(bits(~stream)); }

 private:
  // The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
  __host__ __device__ static uint64_t scramble(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t seed_;
};

// --- Verdicts ----------------------------------------------------------------------------------------------------

enum class Check { kFull, kSample, kNone };

// Collects the largest error. An error is |got - expected| / max(scale, |expected|), so `scale` is the size below
// which errors count absolutely. A tolerance of 0 asks for equality. NaN is never right.
class Verdict {
 public:
  explicit Verdict(double tolerance, double scale = 1.0) : tolerance_(tolerance), scale_(scale) {}

  void compare(size_t index, double got, double expected) {
    ++compared_;
    const double error = std::fabs(got - expected) / std::max(scale_, std::fabs(expected));
    if (!(error <= tolerance_) && wrong_++ == 0) {
      std::fprintf(stderr, "%s: element %zu is %.9g, should be %.9g\n", program_name, index, got, expected);
    }
    if (!(error <= max_error_)) max_error_ = error;
  }

  // For values that doubles cannot hold, and for facts. `index` is what the message shows.
  void require(size_t index, bool right) {
    ++compared_;
    if (!right && wrong_++ == 0) std::fprintf(stderr, "%s: element %zu is wrong\n", program_name, index);
  }

  // Prints the program's one line and returns its exit code.
  int report(Check check, const std::string& what) const {
    if (check == Check::kNone) {
      std::printf("%s: %s: DONE (not checked)\n", program_name, what.c_str());
      return 0;
    }
    // A check that compared nothing proves nothing.
    const bool right = wrong_ == 0 && compared_ > 0;
    std::printf("%s: %s: %s (", program_name, what.c_str(), right ? "PASS" : "FAIL");
    if (!right) std::printf("%zu of %zu values wrong, ", wrong_, compared_);
    if (right && check == Check::kSample) std::printf("%zu values sampled, ", compared_);
    std::printf("max error %.2g)\n", max_error_);
    return right ? 0 : kExitWrongResult;
  }

 private:
  double tolerance_, scale_, max_error_ = 0;
  size_t compared_ = 0, wrong_ = 0;
};

}  // namespace workload
