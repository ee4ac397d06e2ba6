#include "image/ptx_declarations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/units.h"
#include "image/ptx_cursor.h"
#include "image/ptx_type.h"

namespace heddle::image {
namespace {

// PTX ISA 5.1.6.1: the most that a kernel's parameters may take, from PTX 8.1 on.
constexpr uint64_t kMaxParameterBytes = 32764;

std::optional<StateSpace> space_of(std::string_view token) {
  if (token == ".global") return StateSpace::kGlobal;
  if (token == ".const") return StateSpace::kConstant;
  if (token == ".shared") return StateSpace::kShared;
  if (token == ".local") return StateSpace::kLocal;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), cursor_(text) {}

  Result<PtxDeclarations> parse() {
    if (!cursor_.take(".version")) return unexpected(cursor_.peek(), "'.version', with which PTX begins");
    for (std::string_view token = cursor_.next(); !token.empty(); token = cursor_.next()) {
      HEDDLE_TRY(statement(token));
    }
    return std::move(declarations_);
  }

 private:
  // One statement at module level, of which `token` is the first word.
  Status statement(std::string_view token) {
    if (token == ".extern") {
      external_ = true;
      return {};
    }
    const bool external = std::exchange(external_, false);
    if (token == ".entry") return entry();
    if (token == ".func") return function();
    if (const auto space = space_of(token)) return variables(cursor_, *space, external, declarations_.variables);
    if (token == "{") return block();  // of a .section
    if (token == ".alias") cursor_.skip_past(';');
    // Other directives (.version, .target, .visible, .file, .section) and their operands need no notice.
    return {};
  }

  Status block() {
    std::string_view text;
    std::vector<size_t> memory;
    if (!cursor_.skip_block(text, memory)) return unexpected({}, "'}'");
    return {};
  }

  // ".global .align 4 .u32 a = 1, b;" after its state space.
  static Status variables(PtxCursor& cursor, StateSpace space, bool external, std::vector<PtxVariable>& into) {
    const auto type = parse_type(cursor);
    if (!type) return tl::unexpected(type.error());
    do {
      const auto declared = parse_declarator(cursor, *type);
      if (!declared) return tl::unexpected(declared.error());
      if (external || type->opaque) continue;
      into.push_back(
          {declared->name, space, declared->bytes, type->alignment, type->managed, declared->holds_addresses});
    } while (cursor.take(","));
    cursor.take(";");
    return {};
  }

  // ".entry name (parameters) directives { body }"
  Status entry() {
    PtxFunction kernel;
    kernel.entry = true;
    kernel.name = cursor_.next();
    if (!is_identifier(kernel.name)) return unexpected(kernel.name, "a kernel's name");
    if (cursor_.take("(")) HEDDLE_TRY(parameters(kernel));
    return rest_of_function(std::move(kernel));
  }

  // ".func (result) name (parameters) directives { body }": where their parameters lie is no concern of a launch.
  Status function() {
    PtxFunction function;
    if (cursor_.take("(")) names(function.result_names);
    function.name = cursor_.next();
    if (!is_identifier(function.name)) return unexpected(function.name, "a function's name");
    if (cursor_.take("(")) names(function.parameter_names);
    return rest_of_function(std::move(function));
  }

  // ".param .b64 a, .param .align 8 .b8 b[16])": the last word of each, before its extents.
  void names(std::vector<std::string_view>& into) {
    std::string_view last;
    for (std::string_view token = cursor_.next(); !token.empty() && token != ")"; token = cursor_.next()) {
      if (token == "[") {
        cursor_.skip_past(']');
      } else if (is_identifier(token)) {
        last = token;
      } else if (token == ",") {
        into.push_back(last);
        last = {};
      }
    }
    if (!last.empty()) into.push_back(last);
  }

  Status parameters(PtxFunction& kernel) {
    if (cursor_.take(")")) return {};
    uint64_t end = 0;
    do {
      if (!cursor_.take(".param")) return unexpected(cursor_.peek(), "'.param'");
      const auto type = parse_type(cursor_);
      if (!type) return tl::unexpected(type.error());
      const auto declared = parse_declarator(cursor_, *type);
      if (!declared) return tl::unexpected(declared.error());
      const uint64_t offset = round_up(end, type->alignment);
      if (declared->bytes > kMaxParameterBytes || offset + declared->bytes > kMaxParameterBytes) {
        return fail(ErrorCode::kLimitExceeded, "PTX line %zu: the parameters of kernel %.*s pass %llu bytes",
                    cursor_.line(), shown(kernel.name), kernel.name.data(),
                    static_cast<unsigned long long>(kMaxParameterBytes));
      }
      end = offset + declared->bytes;
      kernel.parameter_names.push_back(declared->name);
      kernel.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(declared->bytes)});
    } while (cursor_.take(","));
    kernel.parameter_bytes = static_cast<uint32_t>(end);
    if (!cursor_.take(")")) return unexpected(cursor_.peek(), "')'");
    return {};
  }

  // Directives up to the body, and the body. A declaration without one leaves nothing behind.
  Status rest_of_function(PtxFunction function) {
    while (true) {
      const std::string_view token = cursor_.next();
      if (token.empty()) return unexpected(token, "a function's body");
      if (token == ";") return declared(function);
      if (token == "{") break;
      if (token == ".pragma") cursor_.skip_past(';');
      if (token == ".maxntid" || token == ".reqntid") HEDDLE_TRY(threads(function));
    }
    std::vector<size_t> memory;
    if (!cursor_.skip_block(function.body, memory)) return unexpected({}, "the '}' of a function");
    for (size_t position : memory) HEDDLE_TRY(local_variables(function, position));
    declarations_.functions.push_back(std::move(function));
    return {};
  }

  Status declared(const PtxFunction& function) {
    declarations_.allocates |= function.name == "malloc";
    declarations_.prints |= function.name == "vprintf";
    return {};
  }

  // ".maxntid 16, 16, 1"
  Status threads(PtxFunction& function) {
    uint64_t product = 1;
    do {
      const auto extent = parse_number(cursor_);
      if (!extent) return tl::unexpected(extent.error());
      product *= std::min<uint64_t>(*extent, kMaxThreadsPerBlock);
    } while (product <= kMaxThreadsPerBlock && cursor_.take(","));
    function.max_threads = static_cast<uint32_t>(std::min<uint64_t>(product, kMaxThreadsPerBlock));
    return {};
  }

  // A declaration inside a body; ".extern .shared" names the launch's dynamic memory.
  Status local_variables(PtxFunction& function, size_t position) const {
    const std::string_view before = function.body.substr(0, position);
    const size_t last = before.find_last_not_of(" \t\r\n");
    const bool external = last != std::string_view::npos && before.substr(0, last + 1).ends_with(".extern");
    PtxCursor cursor(text_, static_cast<size_t>(function.body.data() - text_.data()) + position);
    const auto space = space_of(cursor.next());
    // A word that merely begins so (".local_use") is none of ours.
    if (!space) return {};
    return variables(cursor, *space, external, function.memory);
  }

  static int shown(std::string_view text) { return static_cast<int>(std::min<size_t>(text.size(), 200)); }

  tl::unexpected<Error> unexpected(std::string_view seen, const char* expected) const {
    if (seen.empty())
      return fail(ErrorCode::kCorrupt, "PTX line %zu: the text ends where %s was expected", cursor_.line(), expected);
    return fail(ErrorCode::kCorrupt, "PTX line %zu: '%.*s' where %s was expected", cursor_.line(), shown(seen),
                seen.data(), expected);
  }

  std::string_view text_;
  PtxCursor cursor_;
  PtxDeclarations declarations_;
  bool external_ = false;  // .extern stands before the statement to come
};

}  // namespace

Result<PtxDeclarations> parse_declarations(std::string_view ptx) {
  return Parser(ptx).parse();
}

}  // namespace heddle::image
