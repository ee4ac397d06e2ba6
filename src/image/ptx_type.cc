#include "image/ptx_type.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

namespace heddle::image {
namespace {

// The largest alignment that PTX variables take is far below.
constexpr uint64_t kMaxAlignment = 1 << 16;

struct NamedType {
  std::string_view name;
  uint32_t bytes;
};

// PTX ISA 5.2, fundamental and packed types.
constexpr NamedType kTypes[] = {
    {".b8", 1},   {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2},   {".f16", 2},
    {".bf16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".f16x2", 4}, {".bf16x2", 4},
    {".tf32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16}, {".f32x2", 8},
};

// PTX ISA 5.3. As kernel parameters they are 64-bit handles.
constexpr uint32_t kOpaqueBytes = 8;
bool is_opaque(std::string_view token) {
  return token == ".texref" || token == ".samplerref" || token == ".surfref";
}

tl::unexpected<Error> not_ptx(const PtxCursor& cursor, std::string_view seen, const char* expected) {
  return fail(ErrorCode::kCorrupt, "PTX line %zu: '%.*s' where %s was expected", cursor.line(),
              static_cast<int>(std::min<size_t>(seen.size(), 60)), seen.data() ? seen.data() : "", expected);
}

Result<uint64_t> parse_alignment(PtxCursor& cursor) {
  auto alignment = parse_number(cursor);
  if (alignment && (*alignment > kMaxAlignment || !std::has_single_bit(*alignment))) {
    return fail(ErrorCode::kCorrupt, "PTX line %zu: alignment %llu is not a power of two up to %llu", cursor.line(),
                static_cast<unsigned long long>(*alignment), static_cast<unsigned long long>(kMaxAlignment));
  }
  return alignment;
}

// ".attribute(.managed)", with other attributes passed over.
bool parse_managed(PtxCursor& cursor) {
  bool managed = false;
  if (!cursor.take("(")) return false;
  for (std::string_view token = cursor.next(); !token.empty() && token != ")"; token = cursor.next()) {
    if (token == ".managed") managed = true;
    if (token == "(") cursor.skip_past(')');
  }
  return managed;
}

// The size of a type by name; 0 for what is no type.
uint32_t size_of_type(std::string_view token) {
  if (is_opaque(token)) return kOpaqueBytes;
  for (const NamedType& type : kTypes) {
    if (type.name == token) return type.bytes;
  }
  return 0;
}

struct Initializer {
  uint64_t values = 1;  // strings count as one, for nobody initializes an array of unknown size so
  bool names = false;   // variables or functions are among them
};

Result<Initializer> parse_initializer(PtxCursor& cursor) {
  Initializer initializer;
  size_t depth = 0;
  while (true) {
    PtxCursor ahead = cursor;
    const std::string_view token = ahead.next();
    if (token.empty()) return not_ptx(cursor, token, "the end of an initializer");
    if (depth == 0 && (token == "," || token == ";")) return initializer;
    if (token == "{" || token == "(") ++depth;
    if ((token == "}" || token == ")") && depth > 0) --depth;
    if (token == ",") ++initializer.values;
    initializer.names |= is_identifier(token);
    cursor = ahead;
  }
}

// "[4][8]": the number of elements; `unsized` for a first dimension without a number.
Result<uint64_t> parse_dimensions(PtxCursor& cursor, bool& unsized) {
  uint64_t count = 1;
  while (cursor.take("[")) {
    if (cursor.take("]")) {
      unsized = true;
      continue;
    }
    auto dimension = parse_number(cursor);
    if (!dimension) return dimension;
    if (__builtin_mul_overflow(count, *dimension, &count)) {
      return fail(ErrorCode::kCorrupt, "PTX line %zu: an array of more than 2^64 elements", cursor.line());
    }
    if (!cursor.take("]")) return not_ptx(cursor, cursor.peek(), "']'");
  }
  return count;
}

}  // namespace

Result<uint64_t> parse_number(PtxCursor& cursor) {
  const std::string_view token = cursor.next();
  const bool hexadecimal = token.starts_with("0x") || token.starts_with("0X");
  const std::string_view digits = token.substr(hexadecimal ? 2 : 0);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  const std::string_view rest = digits.substr(static_cast<size_t>(end - digits.data()));
  if (error != std::errc() || !(rest.empty() || rest == "U")) return not_ptx(cursor, token, "a number");
  return value;
}

Result<PtxType> parse_type(PtxCursor& cursor) {
  PtxType type;
  uint32_t element = 0, vector = 1;
  uint64_t alignment = 0;
  bool pointee = false;  // after .ptr, space and alignment are those of what the parameter points to
  while (is_directive(cursor.peek())) {
    const std::string_view token = cursor.next();
    if (token == ".align") {
      const auto stated = parse_alignment(cursor);
      if (!stated) return tl::unexpected(stated.error());
      if (!pointee) alignment = *stated;
    } else if (token == ".ptr") {
      pointee = true;
    } else if (token == ".attribute") {
      type.managed = parse_managed(cursor);
    } else if (token == ".v2" || token == ".v4" || token == ".v8") {
      vector = static_cast<uint32_t>(token[2] - '0');
    } else if (const uint32_t size = size_of_type(token)) {
      element = size;
      type.opaque = is_opaque(token);
    } else if (!pointee) {
      return fail(ErrorCode::kNotSupported, "PTX line %zu: a variable of type '%.*s', which heddle does not know",
                  cursor.line(), static_cast<int>(std::min<size_t>(token.size(), 60)), token.data());
    }
  }
  if (element == 0) return not_ptx(cursor, cursor.peek(), "a type");
  type.bytes = element * vector;
  type.alignment = alignment ? static_cast<uint32_t>(alignment) : type.bytes;
  return type;
}

Result<PtxDeclarator> parse_declarator(PtxCursor& cursor, const PtxType& type) {
  PtxDeclarator declared;
  declared.name = cursor.next();
  if (!is_identifier(declared.name)) return not_ptx(cursor, declared.name, "a name");

  bool unsized = false;
  auto count = parse_dimensions(cursor, unsized);
  if (!count) return tl::unexpected(std::move(count).error());
  if (unsized) *count = 0;
  if (cursor.take("=")) {
    const auto initializer = parse_initializer(cursor);
    if (!initializer) return tl::unexpected(initializer.error());
    if (unsized) *count = initializer->values;
    declared.holds_addresses = initializer->names;
  }

  if (__builtin_mul_overflow(*count, type.bytes, &declared.bytes)) {
    return fail(ErrorCode::kCorrupt, "PTX line %zu: a variable of more than 2^64 bytes", cursor.line());
  }
  return declared;
}

}  // namespace heddle::image
