#include "image/fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "image/bytes.h"
#include "image/decompress.h"
#include "image/fatbin_format.h"
#include "image/no_throw.h"

namespace heddle::image {
namespace {

ArchScope scope_of(uint64_t flags) {
  if (flags & kFatbinExactArch) return ArchScope::kExact;
  if (flags & kFatbinFamilyArch) return ArchScope::kFamily;
  return ArchScope::kPortable;
}

Result<Compression> compression_of(const FatbinEntry& entry) {
  if (entry.flags & kFatbinZstd) return Compression::kZstd;
  if (entry.flags & kFatbinLz4) return Compression::kLz4;
  if (entry.compressed_size == 0) return Compression::kNone;
  return fail(ErrorCode::kNotSupported, "a fat binary's image is compressed in an unknown way (flags 0x%llx)",
              static_cast<unsigned long long>(entry.flags));
}

bool is_relocatable(const Image& image) {
  const auto header = read_at<Elf64_Ehdr>(std::as_bytes(std::span(image.bytes)), 0);
  return image.kind == ImageKind::kCubin && header && header->e_type == ET_REL;
}

Result<std::string> unpack(const FatbinEntry& entry, ByteSpan payload, uint64_t limit) {
  const auto compression = compression_of(entry);
  if (!compression) return tl::unexpected(compression.error());
  if (*compression == Compression::kNone) return decompress(Compression::kNone, payload, payload.size(), limit);
  // The payload is padded; the compressed bytes are its beginning.
  const auto packed = slice(payload, 0, entry.compressed_size);
  if (!packed) {
    return fail(ErrorCode::kCorrupt, "a fat binary's image of %zu bytes says that %u of them are compressed data",
                payload.size(), entry.compressed_size);
  }
  return decompress(*compression, *packed, entry.raw_size, limit);
}

Result<Image> read_image(const FatbinEntry& entry, ByteSpan payload, uint64_t limit) {
  auto bytes = unpack(entry, payload, limit);
  if (!bytes) return tl::unexpected(std::move(bytes).error());
  Image image;
  image.kind = entry.kind == kFatbinPtx ? ImageKind::kPtx : ImageKind::kCubin;
  image.arch = entry.arch;
  image.scope = scope_of(entry.flags);
  image.bytes = std::move(*bytes);
  if (image.kind == ImageKind::kPtx) image.bytes.resize(image.bytes.find_last_not_of('\0') + 1);
  image.relocatable = is_relocatable(image);
  return image;
}

// What follows the header of a fat binary.
Result<ByteSpan> images_of(ByteSpan fatbin) {
  const auto header = read_at<FatbinHeader>(fatbin, 0);
  if (!header) return fail(ErrorCode::kCorrupt, "a fat binary of %zu bytes is shorter than its header", fatbin.size());
  if (header->magic != kFatbinMagic) {
    return fail(ErrorCode::kCorrupt, "a fat binary begins with 0x%08x instead of 0x%08x", header->magic, kFatbinMagic);
  }
  const auto images = slice(fatbin, header->header_size, header->size);
  if (header->header_size < sizeof(FatbinHeader) || !images) {
    return fail(ErrorCode::kCorrupt, "a fat binary of %zu bytes announces a header of %u and images of %llu bytes",
                fatbin.size(), header->header_size, static_cast<unsigned long long>(header->size));
  }
  return *images;
}

Status append_images(ByteSpan fatbin, uint32_t unit, const ReadLimits& limits, uint64_t& total,
                     std::vector<Image>& images) {
  auto rest = images_of(fatbin);
  if (!rest) return tl::unexpected(std::move(rest).error());
  // Fewer bytes than an image's header are padding.
  while (const auto entry = read_at<FatbinEntry>(*rest, 0)) {
    const auto payload = slice(*rest, entry->header_size, entry->payload_size);
    if (entry->header_size < sizeof(FatbinEntry) || !payload) {
      return fail(ErrorCode::kCorrupt, "image %zu of a fat binary (header %u, payload %llu bytes) passes its end",
                  images.size(), entry->header_size, static_cast<unsigned long long>(entry->payload_size));
    }
    if (entry->kind == kFatbinPtx || entry->kind == kFatbinCubin) {
      const uint64_t limit = std::min(limits.image.value, limits.total.value - total);
      auto image = read_image(*entry, *payload, limit);
      if (!image) return tl::unexpected(std::move(image).error());
      image->unit = unit;
      total += image->bytes.size();
      images.push_back(std::move(*image));
    }
    rest = rest->subspan(entry->header_size + entry->payload_size);
  }
  return {};
}

Result<ByteSpan> whole_fatbin(const void* address) {
  FatbinHeader header;
  std::memcpy(&header, address, sizeof(header));
  if (header.magic != kFatbinMagic) {
    return fail(ErrorCode::kCorrupt, "the fat binary at %p begins with 0x%08x instead of 0x%08x", address, header.magic,
                kFatbinMagic);
  }
  uint64_t size;
  if (__builtin_add_overflow(header.size, header.header_size, &size) || size > kMaxFatbinBytes) {
    return fail(ErrorCode::kCorrupt, "the fat binary at %p announces %llu bytes; the most that is read is %llu",
                address, static_cast<unsigned long long>(header.size),
                static_cast<unsigned long long>(kMaxFatbinBytes));
  }
  return ByteSpan(static_cast<const std::byte*>(address), size);
}

}  // namespace

Result<std::vector<ByteSpan>> fatbins_of_wrapper(const void* wrapper) {
  return no_throw([&]() -> Result<std::vector<ByteSpan>> {
    if (!wrapper) return fail(ErrorCode::kInvalidArgument, "no fat binary wrapper (null)");
    FatbinWrapper fields;
    std::memcpy(&fields, wrapper, sizeof(fields));
    if (fields.magic != kWrapperMagic || fields.version < 1 || fields.version > 2) {
      return fail(ErrorCode::kNotSupported,
                  "the fat binary wrapper has magic 0x%08x and version %u; known are 0x%08x, 1 and 2", fields.magic,
                  fields.version, kWrapperMagic);
    }
    std::vector<const void*> addresses;
    if (fields.data) addresses.push_back(fields.data);
    if (fields.version == 2 && fields.units) {
      for (const void* const* unit = fields.units; *unit; ++unit) addresses.push_back(*unit);
    }
    std::vector<ByteSpan> fatbins;
    for (const void* address : addresses) {
      const auto fatbin = whole_fatbin(address);
      if (!fatbin) return tl::unexpected(fatbin.error());
      fatbins.push_back(*fatbin);
    }
    return fatbins;
  });
}

Result<std::vector<ByteSpan>> split_fatbins(ByteSpan bytes) {
  return no_throw([&]() -> Result<std::vector<ByteSpan>> {
    std::vector<ByteSpan> fatbins;
    while (!bytes.empty() || fatbins.empty()) {
      const auto header = read_at<FatbinHeader>(bytes, 0);
      uint64_t size = 0;
      bool whole = header && header->magic == kFatbinMagic &&
                   !__builtin_add_overflow(header->size, header->header_size, &size) && size <= bytes.size() &&
                   size >= sizeof(FatbinHeader);
      if (!whole)
        return fail(ErrorCode::kCorrupt,
                    "fat binary %zu of a program does not begin or end where it should (%zu bytes are left)",
                    fatbins.size(), bytes.size());
      fatbins.push_back(bytes.first(size));
      bytes = bytes.subspan(size);
    }
    return fatbins;
  });
}

Result<std::vector<Image>> read_fatbins(std::span<const ByteSpan> fatbins, const ReadLimits& limits) {
  return no_throw([&]() -> Result<std::vector<Image>> {
    std::vector<Image> images;
    uint64_t total = 0;
    for (size_t unit = 0; unit < fatbins.size(); ++unit) {
      HEDDLE_TRY(append_images(fatbins[unit], static_cast<uint32_t>(unit), limits, total, images));
    }
    return images;
  });
}

Result<std::vector<Image>> read_fatbin(ByteSpan fatbin, const ReadLimits& limits) {
  return read_fatbins({&fatbin, 1}, limits);
}

}  // namespace heddle::image
