#include "device/software/simt/access_fault.h"

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

uint32_t thread_of(const Warp& warp, uint32_t lane, int dimension) {
  return warp.tid[dimension][lane];
}

}  // namespace

void raise(Warp& warp, const Op& op, uint32_t lane, CudaError cuda_error, std::string_view what) {
  BlockState& block = *warp.block;
  stop_path(warp);
  if (block.fault.cuda_error) return;
  const auto pc = static_cast<uint32_t>(&op - warp.code);
  const CompiledFunction& function = block.kernel->function_at(pc);
  bool inlined = function.name == block.kernel->name;
  block.fault.cuda_error = cuda_error;
  block.fault.text =
      stringf("%.*s (kernel %s%s%s, %s, block %u,%u,%u, thread %u,%u,%u)", static_cast<int>(what.size()), what.data(),
              block.kernel->name.c_str(), inlined ? "" : ", function ", inlined ? "" : function.name.c_str(),
              block.kernel->line_name(pc).c_str(), block.index.x, block.index.y, block.index.z,
              thread_of(warp, lane, 0), thread_of(warp, lane, 1), thread_of(warp, lane, 2));
}

void raise_access_fault(Warp& warp, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes, bool write,
                        bool may_be_touched) {
  auto text =
      stringf("%s %s of %llu bytes at 0x%llx", may_be_touched ? "misaligned" : "illegal", write ? "write" : "read",
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  raise(warp, op, lane, may_be_touched ? kCudaMisalignedAddress : kCudaIllegalAddress, text);
}

}  // namespace heddle::software
