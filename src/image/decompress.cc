#include "image/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace heddle::image {
namespace {

using ull = unsigned long long;

// One byte of LZ4 stands for at most 255, so a larger claim need not be allocated to be refuted.
constexpr uint64_t kLz4MaxRatio = 255;

tl::unexpected<Error> corrupt(const char* method, ByteSpan packed, uint64_t raw_size, const char* why) {
  return fail(ErrorCode::kCorrupt, "%s data of %zu bytes in a fat binary does not unpack to the announced %llu: %s",
              method, packed.size(), static_cast<ull>(raw_size), why);
}

Result<std::string> unpack_lz4(ByteSpan packed, uint64_t raw_size) {
  if (packed.size() > INT_MAX || raw_size > INT_MAX || raw_size / kLz4MaxRatio > packed.size()) {
    return corrupt("LZ4", packed, raw_size, "impossible size");
  }
  std::string raw(raw_size, '\0');
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), raw.data(),
                                       static_cast<int>(packed.size()), static_cast<int>(raw_size));
  if (size < 0 || static_cast<uint64_t>(size) != raw_size) return corrupt("LZ4", packed, raw_size, "malformed");
  return raw;
}

Result<std::string> unpack_zstd(ByteSpan packed, uint64_t raw_size) {
  const ull announced = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (announced != raw_size && announced != ZSTD_CONTENTSIZE_UNKNOWN) {
    return corrupt("zstd", packed, raw_size, "its frame announces another size");
  }
  std::string raw(raw_size, '\0');
  const size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(size)) return corrupt("zstd", packed, raw_size, ZSTD_getErrorName(size));
  if (size != raw_size) return corrupt("zstd", packed, raw_size, "too short");
  return raw;
}

}  // namespace

Result<std::string> decompress(Compression compression, ByteSpan packed, uint64_t raw_size, uint64_t limit) {
  if (raw_size > limit) {
    return fail(ErrorCode::kLimitExceeded, "an image in a fat binary would unpack to %llu bytes; the limit is %llu",
                static_cast<ull>(raw_size), static_cast<ull>(limit));
  }
  switch (compression) {
    case Compression::kNone:
      return std::string(reinterpret_cast<const char*>(packed.data()), packed.size());
    case Compression::kLz4:
      return unpack_lz4(packed, raw_size);
    case Compression::kZstd:
      return unpack_zstd(packed, raw_size);
  }
  return fail(ErrorCode::kInternal, "compression %u has no reader", static_cast<unsigned>(compression));
}

}  // namespace heddle::image
