#include "device/software/libraries/libraries.h"

#include <algorithm>

#include "core/cuda_error.h"
#include "device/software/libraries/blas_call.h"
#include "device/software/libraries/fourier.h"
#include "device/software/simt/check/written_memory.h"
#include "library/curand.h"

namespace heddle::software {
namespace {

constexpr uint32_t kCurandVersion = 10400;  // whose interface this is
constexpr uint32_t kCublasVersion = 130000;
constexpr uint32_t kCufftVersion = 12000;

std::optional<Problem> unreachable(const library::Call& call, uint64_t address, uint64_t bytes) {
  return Problem{kCudaIllegalAddress,
                 stringf("%s: %llu bytes at %#llx are not all memory of this program on this device", name_of(call),
                         static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address))};
}

// The addresses are copied before they are looked at.
std::optional<Problem> check_array(const library::Call& call, const library::Operand& operand, const MemoryMap& map,
                                   CheckedArrays& arrays) {
  if (operand.address % sizeof(uint64_t) != 0 || !map.contains(operand.address, operand.pointers * sizeof(uint64_t)))
    return unreachable(call, operand.address, operand.pointers * sizeof(uint64_t));
  const auto* const from = reinterpret_cast<const uint64_t*>(operand.address);  // NOLINT(performance-no-int-to-ptr)
  std::vector<uint64_t> array(from, from + operand.pointers);
  for (const uint64_t address : array) {
    if (!map.contains(address, operand.bytes)) return unreachable(call, address, operand.bytes);
  }
  arrays[operand.address] = std::move(array);
  return std::nullopt;
}

// For the check of what kernels read.
void note_written(const library::Demand& demand, const CheckedArrays& arrays, WrittenMemory& written) {
  for (const library::Operand& operand : demand.operands) {
    if (!operand.written) continue;
    if (operand.pointers == 0) written.mark(operand.address, operand.bytes);
    if (operand.pointers > 0) {
      for (const uint64_t address : arrays.at(operand.address)) written.mark(address, operand.bytes);
    }
  }
}

}  // namespace

Result<uint32_t> Libraries::open(library::Library library) {
  if (library == library::Library::kCurand) return kCurandVersion;
  if (library == library::Library::kCufft) return kCufftVersion;
  if (blas_) return kCublasVersion;
  auto loaded = Openblas::load(threads_);
  if (!loaded) return tl::unexpected(loaded.error());
  blas_ = std::move(*loaded);
  return kCublasVersion;
}

std::optional<Problem> Libraries::run(const library::Call& call, const library::Demand& demand,
                                      const DeviceMemory& memory) const {
  CheckedArrays arrays;
  for (const library::Operand& operand : demand.operands) {
    if (operand.pointers > 0) {
      if (auto problem = check_array(call, operand, memory.map(), arrays)) return problem;
    } else if (!memory.map().contains(operand.address, operand.bytes)) {
      return unreachable(call, operand.address, operand.bytes);
    }
  }
  if (WrittenMemory* written = memory.written()) note_written(demand, arrays, *written);
  if (call.library == library::Library::kCurand) {
    const auto draw = library::curand::Draw::unpack(call.words);
    auto* const to = reinterpret_cast<void*>(draw->output);  // NOLINT(performance-no-int-to-ptr)
    library::curand::generate(static_cast<library::curand::Function>(call.function), *draw, to);
    return std::nullopt;
  }
  if (call.library == library::Library::kCufft) {
    run_cufft(call);
    return std::nullopt;
  }
  if (auto refused = run_cublas(call, arrays, *blas_)) return Problem{kCudaNotSupported, std::move(*refused)};
  return std::nullopt;
}

}  // namespace heddle::software
