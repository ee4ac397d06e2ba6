#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

// Bounds-checked reads of file formats. Everything in this room goes through these two: the bytes may come from
// another process and lie about every offset and size.
namespace heddle::image {

static_assert(std::endian::native == std::endian::little, "fat binaries and cubins are little-endian");

using ByteSpan = std::span<const std::byte>;

// `size` bytes from `offset`; nothing where they do not all exist.
inline std::optional<ByteSpan> slice(ByteSpan bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// The plain value stored at `offset`, which need not be aligned.
template <class T>
std::optional<T> read_at(ByteSpan bytes, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto stored = slice(bytes, offset, sizeof(T));
  if (!stored) return std::nullopt;
  T value;
  std::memcpy(&value, stored->data(), sizeof(T));
  return value;
}

}  // namespace heddle::image
