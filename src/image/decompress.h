#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "image/bytes.h"

namespace heddle::image {

enum class Compression : uint8_t { kNone, kLz4, kZstd };

// The `raw_size` bytes that `packed` stands for. kLimitExceeded before anything is allocated where they are more than
// `limit`, kCorrupt where the data yields another number of bytes. May throw std::bad_alloc.
Result<std::string> decompress(Compression compression, ByteSpan packed, uint64_t raw_size, uint64_t limit);

}  // namespace heddle::image
