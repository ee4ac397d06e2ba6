#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/fd.h"
#include "core/units.h"
#include "device/cuda/allocator.h"

namespace heddle::keeper {

// Memory that is mapped in this process to be copied. Swap space stays mapped from one copy to the next, since mapping
// it takes as long as copying some hundred MiB (HARDWARE.md, p8: 6 to 28 ms for 512 MiB). heddled gives it numbers: a
// driver's descriptors do not say of which memory they are.
class Mappings {
 public:
  // Shared with the copies that are under way: what heddled gives up meanwhile is unmapped when they are over.
  using Mapping = std::shared_ptr<const cuda::Allocator::Attached>;

  explicit Mappings(cuda::Allocator& allocator) : allocator_(allocator) {}

  // What is mapped under the number. Where nothing is, as in a keeper that was started after the memory was made, the
  // descriptor's memory is mapped, and stays; with number 0 for as long as the result lives.
  Result<Mapping> map(uint64_t number, const Fd& memory, Bytes size);
  void unmap(uint64_t number) { kept_.erase(number); }

 private:
  cuda::Allocator& allocator_;
  std::map<uint64_t, Mapping> kept_;
};

}  // namespace heddle::keeper
