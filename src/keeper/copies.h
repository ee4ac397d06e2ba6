#pragma once

#include <list>
#include <optional>
#include <vector>

#include "device/cuda/allocator.h"
#include "keeper/mappings.h"
#include "keeper/parts.h"
#include "protocol/own_messages.h"

namespace heddle::keeper {

// The copies between devices that heddled asked for: all that are under way take turns, a part each, in the keeper's
// one thread. Between two parts it looks at what else it is asked, so that a long copy delays nobody's memory by more
// than a part. A second thread would let memory be made in the middle of a part too, but share the driver's context,
// the socket and its stream with the first; a part of 5 ms is not worth that.
class Copies {
 public:
  Copies(cuda::Allocator& allocator, Mappings& mappings) : allocator_(allocator), mappings_(mappings) {}

  bool empty() const { return copies_.empty(); }
  // The answer, where it can be given at once.
  std::optional<protocol::MemoryCopied> begin(const protocol::CopyMemory& wanted, const std::vector<Fd>& descriptors);
  std::optional<protocol::MemoryCopied> cancel(uint64_t copy);
  // Does a part, and answers where it was a copy's last. An error: the GPU is lost for this process.
  Result<std::optional<protocol::MemoryCopied>> step();

 private:
  struct Copy {
    uint64_t number;
    Mappings::Mapping to, from;
    Parts parts;
  };

  Result<Copy> attach(const protocol::CopyMemory& wanted, const std::vector<Fd>& descriptors);

  cuda::Allocator& allocator_;
  Mappings& mappings_;
  std::list<Copy> copies_;
};

}  // namespace heddle::keeper
