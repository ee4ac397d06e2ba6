#include "device/software/ptx/body_parser.h"

#include <charconv>
#include <limits>

namespace heddle::ptx {
namespace {

// Far above what a compiler writes; keeps a hostile module from claiming memory by the gigabyte.
constexpr size_t kMaxRegisters = 1u << 20;
constexpr size_t kMaxNesting = 64;
constexpr uint32_t kUnplaced = std::numeric_limits<uint32_t>::max();

}  // namespace

BodyParser::BodyParser(Cursor& cursor, Function& function) : cursor_(cursor), function_(function), scopes_(1) {
  for (uint32_t i = 0; i < function.variables.size(); ++i) scopes_[0].variables[function.variables[i].name] = i;
}

void BodyParser::parse() {
  while (!cursor_.at_end() && !scopes_.empty()) statement();
  if (!scopes_.empty()) cursor_.fail_here("function '%s' has no end", function_.name.c_str());
}

void BodyParser::statement() {
  const Token& token = cursor_.peek();
  if (cursor_.take('{')) {
    scopes_.emplace_back();
    if (scopes_.size() > kMaxNesting) cursor_.fail_here("more than %zu nested braces", kMaxNesting);
  } else if (cursor_.take('}')) {
    close_scope();
  } else if (token.kind == TokenKind::kDotted) {
    directive();
  } else if (token.kind == TokenKind::kName && cursor_.at_symbol(':', 1)) {
    define_label();
  } else if (!cursor_.take(';')) {
    instruction();
  }
}

void BodyParser::directive() {
  if (cursor_.take_dotted("reg")) return declare_registers();
  if (auto space = take_space(cursor_)) return declare_variables(*space);
  if (cursor_.take_dotted("loc")) return source_line();
  if (cursor_.take_dotted("pragma")) return skip_statement();
  cursor_.fail_here("directive '.%.*s' is not supported in a function", static_cast<int>(cursor_.peek().text.size()),
                    cursor_.peek().text.data());
}

// ".loc 1 23 5", and more that does not matter. The number of the file stands until the module's .file lines are known.
void BodyParser::source_line() {
  const uint32_t at = cursor_.peek().line;
  if (cursor_.peek().kind == TokenKind::kNumber && cursor_.peek(1).kind == TokenKind::kNumber) {
    const auto file = static_cast<uint32_t>(cursor_.expect_count());
    function_.source_lines.push_back({at, file, static_cast<uint32_t>(cursor_.expect_count())});
  }
  cursor_.skip_line();
}

void BodyParser::declare_registers() {
  std::string_view word = cursor_.peek().kind == TokenKind::kDotted ? cursor_.next().text : std::string_view{};
  auto type = parse_type(word);
  if (!type) return cursor_.fail_here("registers of type '.%.*s'", static_cast<int>(word.size()), word.data());
  do {
    std::string_view name = cursor_.expect_name();
    auto first = static_cast<uint32_t>(function_.registers.size());
    uint64_t count = 1;
    if (cursor_.take('<')) {
      count = cursor_.expect_count();
      cursor_.expect('>');
      scopes_.back().ranges[name] = {first, static_cast<uint32_t>(count)};
    } else {
      scopes_.back().registers[name] = first;
    }
    if (count > kMaxRegisters - first) return cursor_.fail_here("more than %zu registers", kMaxRegisters);
    function_.registers.resize(first + count, *type);
  } while (cursor_.take(','));
  cursor_.expect(';');
}

void BodyParser::declare_variables(Space space) {
  Variable variable = parse_variable(cursor_, space);
  if (cursor_.failed()) return;
  scopes_.back().variables[variable.name] = static_cast<uint32_t>(function_.variables.size());
  function_.variables.push_back(std::move(variable));
  cursor_.expect(';');
}

void BodyParser::skip_statement() {
  while (!cursor_.at_end() && !cursor_.at_symbol(';')) cursor_.next();
  cursor_.expect(';');
}

void BodyParser::define_label() {
  std::string_view name = cursor_.next().text;
  cursor_.expect(':');
  if (cursor_.take_dotted("branchtargets")) return label_table(name);
  if (cursor_.take_dotted("callprototype") || cursor_.take_dotted("calltargets")) return skip_statement();
  auto index = static_cast<uint32_t>(function_.labels.size());
  if (!scopes_.back().labels.emplace(name, index).second)
    return cursor_.fail_here("label '%.*s' stands twice", static_cast<int>(name.size()), name.data());
  function_.labels.push_back(static_cast<uint32_t>(function_.code.size()));
}

void BodyParser::label_table(std::string_view name) {
  std::vector<uint32_t> targets;
  do {
    uint32_t line = cursor_.peek().line;
    targets.push_back(label_reference(cursor_.expect_name(), line));
  } while (cursor_.take(','));
  cursor_.expect(';');
  scopes_.back().tables[name] = static_cast<uint32_t>(function_.branch_tables.size());
  function_.branch_tables.push_back(std::move(targets));
}

// Every mention of a label gets an entry of Function::labels of its own, placed when its scope closes: a label may be
// used before it stands, and an inner scope may have one of the same name.
uint32_t BodyParser::label_reference(std::string_view name, uint32_t line) {
  auto index = static_cast<uint32_t>(function_.labels.size());
  function_.labels.push_back(kUnplaced);
  scopes_.back().pending.push_back({std::string(name), index, line});
  return index;
}

void BodyParser::close_scope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (PendingLabel& pending : scope.pending) {
    auto found = scope.labels.find(pending.name);
    if (found != scope.labels.end()) {
      function_.labels[pending.index] = function_.labels[found->second];
    } else if (!scopes_.empty()) {
      scopes_.back().pending.push_back(std::move(pending));
    } else {
      cursor_.fail_here("label '%s', used in line %u, is not defined", pending.name.c_str(), pending.line);
    }
  }
}

std::optional<uint32_t> BodyParser::find_register(std::string_view name) const {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  uint32_t number = 0;
  bool numbered = std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto found = scope->registers.find(name); found != scope->registers.end()) return found->second;
    if (!numbered) continue;
    auto range = scope->ranges.find(name.substr(0, digits));
    if (range != scope->ranges.end() && number < range->second.count) return range->second.first + number;
  }
  return std::nullopt;
}

uint32_t BodyParser::expect_register() {
  std::string_view name = cursor_.expect_name();
  auto found = find_register(name);
  if (!found) cursor_.fail_here("register '%.*s' is not declared", static_cast<int>(name.size()), name.data());
  return found.value_or(0);
}

void BodyParser::instruction() {
  Instruction instruction;
  if (cursor_.take('@')) {
    bool negated = cursor_.take('!');
    instruction.guard = Guard{expect_register(), negated};
  }
  instruction.line = cursor_.peek().line;
  instruction.opcode = cursor_.expect_name();
  while (cursor_.peek().kind == TokenKind::kDotted && cursor_.peek().glued)
    instruction.modifiers.emplace_back(cursor_.next().text);
  while (!cursor_.at_end() && !cursor_.at_symbol(';')) {
    instruction.operands.push_back(operand(instruction));
    if (!cursor_.take(',')) break;
  }
  cursor_.expect(';');
  if (!cursor_.failed()) function_.code.push_back(std::move(instruction));
}

Operand BodyParser::operand(const Instruction& instruction) {
  if (cursor_.take('[')) return address();
  if (cursor_.take('{')) {
    Operand vector = group(Operand::Kind::kVector, '}', instruction);
    return cursor_.take('|') ? pair_with(std::move(vector), instruction) : vector;
  }
  if (cursor_.take('(')) return group(Operand::Kind::kList, ')', instruction);
  bool negated = cursor_.take('!');
  Operand result = cursor_.peek().kind == TokenKind::kName ? named(instruction) : literal();
  result.negated = negated;
  return cursor_.take('|') ? pair_with(std::move(result), instruction) : result;
}

Operand BodyParser::pair_with(Operand first, const Instruction& instruction) {
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(named(instruction));
  return pair;
}

Operand BodyParser::literal() {
  Operand result;
  result.kind = Operand::Kind::kLiteral;
  result.literal = cursor_.expect_literal();
  return result;
}

Operand BodyParser::named(const Instruction& instruction) {
  Operand result;
  uint32_t line = cursor_.peek().line;
  std::string_view name = cursor_.expect_name();
  result.name = name;
  if (name == "_") {
    result.kind = Operand::Kind::kDiscard;
    return result;
  }
  if (auto found = find_register(name)) {
    result.kind = Operand::Kind::kRegister;
    result.index = *found;
    return result;
  }
  if (!name.empty() && name[0] == '%') {
    result.kind = Operand::Kind::kSpecial;
    if (cursor_.peek().kind == TokenKind::kDotted && cursor_.peek().glued)
      result.name += "." + std::string(cursor_.next().text);
    return result;
  }
  if (instruction.opcode == "bra") {
    result.kind = Operand::Kind::kLabel;
    result.index = label_reference(name, line);
    return result;
  }
  result.kind = Operand::Kind::kSymbol;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto found = scope->variables.find(result.name); found != scope->variables.end()) {
      result.kind = Operand::Kind::kVariable;
      result.index = found->second;
      break;
    }
    if (auto found = scope->tables.find(name); found != scope->tables.end()) {
      result.kind = Operand::Kind::kTable;
      result.index = found->second;
      break;
    }
  }
  return result;
}

// "[%rd1+8]", "[symbol]", "[4096]"; "[%rd1, {%f1, %f2}]". Other forms come out as kOther.
Operand BodyParser::address() {
  Operand result;
  result.kind = Operand::Kind::kAddress;
  if (cursor_.peek().kind == TokenKind::kName) {
    result.elements.push_back(named(Instruction{}));
    if (cursor_.at_symbol(',')) return image(std::move(result));
    if (cursor_.at_symbol('+') || cursor_.at_symbol('-')) result.literal = cursor_.expect_literal();
  } else {
    result.literal = cursor_.expect_literal();
  }
  if (cursor_.take(']')) return result;
  cursor_.skip_to_closing('[', ']');
  Operand other;
  other.name = "[...]";
  return other;
}

Operand BodyParser::image(Operand result) {
  result.kind = Operand::Kind::kImage;
  while (cursor_.take(',')) {
    const bool vector = cursor_.take('{'), name = cursor_.peek().kind == TokenKind::kName;
    result.elements.push_back(vector ? group(Operand::Kind::kVector, '}', Instruction{})
                              : name ? named(Instruction{})
                                     : literal());
  }
  cursor_.expect(']');
  return result;
}

Operand BodyParser::group(Operand::Kind kind, char close, const Instruction& instruction) {
  Operand result;
  result.kind = kind;
  while (!cursor_.at_end() && !cursor_.at_symbol(close)) {
    result.elements.push_back(cursor_.peek().kind == TokenKind::kName ? named(instruction) : literal());
    if (!cursor_.take(',')) break;
  }
  cursor_.expect(close);
  return result;
}

}  // namespace heddle::ptx
