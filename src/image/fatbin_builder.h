#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "image/bytes.h"
#include "image/decompress.h"
#include "image/fatbin_format.h"

// For tests: fat binaries from known bytes.
namespace heddle::image {

inline std::string compressed(Compression compression, std::string_view raw) {
  std::string packed;
  if (compression == Compression::kLz4) {
    packed.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
    packed.resize(static_cast<size_t>(LZ4_compress_default(raw.data(), packed.data(), static_cast<int>(raw.size()),
                                                           static_cast<int>(packed.size()))));
  } else {
    packed.resize(ZSTD_compressBound(raw.size()));
    packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3));
  }
  return packed;
}

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline ByteSpan as_fatbin(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

class FatbinBuilder {
 public:
  // An image as nvcc writes it: padded to 8 bytes, compression in the flags. `options` is what stands between the
  // image's header and its payload.
  FatbinBuilder& add(uint16_t kind, uint32_t arch, std::string_view raw, Compression compression = Compression::kNone,
                     uint64_t flags = 0x11, std::string_view options = {}) {
    FatbinEntry entry{};
    entry.kind = kind;
    entry.version = 0x101;
    entry.header_size = static_cast<uint32_t>(sizeof(entry) + options.size());
    entry.arch = arch;
    entry.flags = flags;
    std::string payload(raw);
    if (compression != Compression::kNone) {
      payload = compressed(compression, raw);
      entry.compressed_size = static_cast<uint32_t>(payload.size());
      entry.raw_size = raw.size();
      entry.flags |= compression == Compression::kLz4 ? kFatbinLz4 : kFatbinZstd;
    }
    payload.resize(round_up(payload.size(), 8));
    entry.payload_size = payload.size();
    return add_raw(entry, std::string(options) + payload);
  }

  // An image whose header says whatever the test wants.
  FatbinBuilder& add_raw(const FatbinEntry& entry, std::string_view rest) {
    images_ += bytes_of(entry);
    images_ += rest;
    return *this;
  }

  std::string build() const {
    return bytes_of(FatbinHeader{kFatbinMagic, 1, sizeof(FatbinHeader), images_.size()}) + images_;
  }

 private:
  std::string images_;
};

}  // namespace heddle::image
