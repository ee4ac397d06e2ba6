#include "keeper/mappings.h"

#include <utility>

namespace heddle::keeper {

Result<Mappings::Mapping> Mappings::map(uint64_t number, const Fd& memory, Bytes size) {
  if (const auto found = kept_.find(number); found != kept_.end()) {
    if (found->second->bytes() == size.value) return found->second;
    return fail(ErrorCode::kInvalidArgument, "mapping %llu has %llu bytes, not %llu",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(found->second->bytes()),
                static_cast<unsigned long long>(size.value));
  }
  auto attached = allocator_.attach(memory, size);
  if (!attached) return tl::unexpected(std::move(attached).error());
  auto mapping = std::make_shared<const cuda::Allocator::Attached>(std::move(*attached));
  if (number != 0) kept_.emplace(number, mapping);
  return mapping;
}

}  // namespace heddle::keeper
