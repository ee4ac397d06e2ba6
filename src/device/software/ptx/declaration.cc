#include "device/software/ptx/declaration.h"

#include <bit>
#include <cstring>

namespace heddle::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = 1ull << 40;
constexpr uint32_t kMaxAlignment = 1u << 20;

// Reads an initialiser into a variable, element by element.
class InitialiserParser {
 public:
  InitialiserParser(Cursor& cursor, Variable& variable)
      : cursor_(cursor), variable_(variable), element_bytes_(variable.type.bytes()), unbounded_(variable.size == 0) {}

  void parse() {
    if (element_bytes_ == 0 || element_bytes_ > 8) {
      cursor_.fail_here("variable '%s': a type that takes no initialiser", variable_.name.c_str());
      return;
    }
    for (int depth = 0; !cursor_.at_end();) {
      if (cursor_.take('{')) {
        ++depth;
      } else if (cursor_.take('}')) {
        --depth;
      } else if (!cursor_.take(',')) {
        element();
      }
      if (depth == 0 && !cursor_.at_symbol(',')) break;
    }
  }

 private:
  void element() {
    if (unbounded_) variable_.size += element_bytes_;
    if (offset_ + element_bytes_ > variable_.size) {
      cursor_.fail_here("variable '%s': more initialisers than its %llu bytes", variable_.name.c_str(),
                        static_cast<unsigned long long>(variable_.size));
      return;
    }
    bool masked = cursor_.peek().kind == TokenKind::kNumber && cursor_.at_symbol('(', 1);
    if (masked || cursor_.peek().kind == TokenKind::kName) {
      reference();
    } else {
      store(cursor_.expect_literal());
    }
    offset_ += element_bytes_;
  }

  // "name", "name+4", "generic(name)+4", "0xFF00(name)" (one byte of an address), and these nested.
  void reference() {
    SymbolReference reference;
    reference.offset = offset_;
    reference.size = element_bytes_;
    int parentheses = 0;
    if (cursor_.peek().kind == TokenKind::kNumber) {
      uint64_t mask = cursor_.expect_literal().bits;
      reference.shift = mask ? static_cast<uint32_t>(std::countr_zero(mask)) : 0;
      cursor_.expect('(');
      ++parentheses;
    }
    if (cursor_.peek().text == "generic" && cursor_.at_symbol('(', 1)) {
      cursor_.next(), cursor_.next();
      ++parentheses;
    }
    reference.symbol = cursor_.expect_name();
    addend(reference);
    while (parentheses-- > 0) {
      cursor_.expect(')');
      addend(reference);
    }
    variable_.references.push_back(std::move(reference));
  }

  void addend(SymbolReference& reference) {
    if (cursor_.at_symbol('+') || cursor_.at_symbol('-'))
      reference.addend += static_cast<int64_t>(cursor_.expect_literal().bits);
  }

  void store(Literal literal) {
    if (literal.kind == Literal::Kind::kFloat64 && variable_.type == Type{TypeKind::kFloat, 32})
      literal.bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits)));
    if (cursor_.failed()) return;
    variable_.initial.resize(offset_ + element_bytes_);
    std::memcpy(variable_.initial.data() + offset_, &literal.bits, element_bytes_);
  }

  Cursor& cursor_;
  Variable& variable_;
  uint32_t element_bytes_;
  bool unbounded_;  // "[]": as long as the initialiser
  uint64_t offset_ = 0;
};

void parse_bounds(Cursor& cursor, Variable& variable) {
  while (cursor.take('[')) {
    uint64_t count = cursor.at_symbol(']') ? 0 : cursor.expect_count();
    cursor.expect(']');
    if (count != 0 && variable.size > kMaxVariableBytes / count) {
      cursor.fail_here("variable '%s' is larger than %llu bytes", variable.name.c_str(),
                       static_cast<unsigned long long>(kMaxVariableBytes));
      return;
    }
    variable.size *= count;
  }
}

void parse_alignment(Cursor& cursor, uint32_t& alignment) {
  uint64_t value = cursor.expect_count();
  if (value == 0 || value > kMaxAlignment || !std::has_single_bit(value)) {
    cursor.fail_here("an alignment of %llu", static_cast<unsigned long long>(value));
    return;
  }
  alignment = static_cast<uint32_t>(value);
}

// ".ptr .global .align 4" of a parameter says what it points to; only that it is a pointer matters here.
void skip_pointer_attributes(Cursor& cursor) {
  while (cursor.peek().kind == TokenKind::kDotted) {
    bool alignment = cursor.next().text == "align";
    if (alignment) cursor.expect_count();
  }
}

}  // namespace

std::optional<Space> take_space(Cursor& cursor) {
  static constexpr std::pair<std::string_view, Space> kSpaces[] = {{"global", Space::kGlobal},
                                                                   {"const", Space::kConst},
                                                                   {"shared", Space::kShared},
                                                                   {"local", Space::kLocal},
                                                                   {"param", Space::kParam}};
  for (const auto& [name, space] : kSpaces)
    if (cursor.take_dotted(name)) return space;
  return std::nullopt;
}

Variable parse_variable(Cursor& cursor, Space space) {
  Variable variable;
  variable.space = space;
  variable.alignment = 0;
  std::optional<Type> type;
  uint32_t vector = 1;
  while (cursor.peek().kind == TokenKind::kDotted) {
    std::string_view word = cursor.next().text;
    if (word == "align") {
      parse_alignment(cursor, variable.alignment);
    } else if (word == "ptr") {
      variable.pointer = true;
      skip_pointer_attributes(cursor);
    } else if (word == "v2" || word == "v4") {
      vector = word == "v2" ? 2 : 4;
    } else if (word == "attribute") {
      cursor.expect('(');
      cursor.skip_to_closing('(', ')');
    } else if (!(type = parse_type(word))) {
      cursor.fail_here("'.%.*s' is not a type", static_cast<int>(word.size()), word.data());
    }
  }
  variable.line = cursor.peek().line;
  variable.name = cursor.expect_name();
  if (!type) cursor.fail_here("variable '%s' has no type", variable.name.c_str());
  variable.type = type.value_or(Type{});
  variable.size = static_cast<uint64_t>(variable.type.bytes()) * vector;
  if (variable.alignment == 0) variable.alignment = std::max<uint32_t>(1, static_cast<uint32_t>(variable.size));
  parse_bounds(cursor, variable);
  if (cursor.take('=')) InitialiserParser(cursor, variable).parse();
  return variable;
}

Status write_initial_value(const Variable& variable, const SymbolResolver& resolve, std::span<std::byte> out) {
  if (out.size() != variable.size || variable.initial.size() > out.size())
    return fail(ErrorCode::kInvalidArgument, "variable '%s' has %llu bytes, room was given for %zu",
                variable.name.c_str(), static_cast<unsigned long long>(variable.size), out.size());
  std::memset(out.data(), 0, out.size());
  if (!variable.initial.empty()) std::memcpy(out.data(), variable.initial.data(), variable.initial.size());
  for (const SymbolReference& reference : variable.references) {
    auto address = resolve(reference.symbol);
    if (!address)
      return fail(ErrorCode::kNotSupported, "PTX line %u: variable '%s' holds the address of '%s', which has none here",
                  variable.line, variable.name.c_str(), reference.symbol.c_str());
    uint64_t value = (*address + static_cast<uint64_t>(reference.addend)) >> reference.shift;
    std::memcpy(out.data() + reference.offset, &value, reference.size);
  }
  return {};
}

}  // namespace heddle::ptx
