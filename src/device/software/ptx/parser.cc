#include "device/software/ptx/parser.h"

#include <algorithm>
#include <map>
#include <string>

#include "device/software/ptx/body_parser.h"
#include "device/software/ptx/cursor.h"
#include "device/software/ptx/declaration.h"

namespace heddle::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(const std::vector<Token>& tokens) : cursor_(tokens) {}

  Result<Module> run() {
    while (!cursor_.at_end()) directive();
    if (cursor_.failed()) return tl::unexpected(cursor_.take_error());
    for (Function& function : module_.functions) name_files(function);
    return std::move(module_);
  }

 private:
  void directive() {
    bool external = false, weak = false;
    for (;;) {
      if (cursor_.take_dotted("extern")) {
        external = true;
      } else if (cursor_.take_dotted("weak") || cursor_.take_dotted("common")) {
        weak = true;
      } else if (!cursor_.take_dotted("visible")) {
        break;
      }
    }
    if (auto space = take_space(cursor_)) return variables(*space, external, weak);
    if (cursor_.take_dotted("entry")) return function(true, weak);
    if (cursor_.take_dotted("func")) return function(false, weak);
    if (cursor_.take_dotted("version")) return word_list(module_.version);
    if (cursor_.take_dotted("target")) return word_list(module_.target);
    if (cursor_.take_dotted("address_size")) return address_size();
    if (cursor_.take_dotted("file")) return file();
    if (cursor_.take_dotted("loc")) return cursor_.skip_line();
    if (cursor_.take_dotted("section")) return section();
    if (cursor_.take_dotted("pragma") || cursor_.take_dotted("alias")) return skip_statement();
    if (cursor_.take(';')) return;
    cursor_.fail_here("'%.*s' begins no directive of a module", static_cast<int>(cursor_.peek().text.size()),
                      cursor_.peek().text.data());
  }

  // "9.0" or "sm_80, debug": the first word counts.
  void word_list(std::string& word) {
    word = cursor_.next().text;
    while (cursor_.take(',')) cursor_.next();
  }

  void address_size() {
    if (cursor_.expect_count() != 64) cursor_.fail_here("only .address_size 64 is supported");
  }

  // ".file 1 "vecadd.cu"", and more that does not matter. These lines stand behind the functions that mention them.
  void file() {
    if (cursor_.peek().kind == TokenKind::kNumber && cursor_.peek(1).kind == TokenKind::kString) {
      const uint64_t number = cursor_.expect_count();
      files_.emplace(number, cursor_.next().text);
    }
    cursor_.skip_line();
  }

  // Numbers of files become places in the function's own list of those that are known.
  void name_files(Function& function) const {
    std::map<uint64_t, uint32_t> places;
    std::erase_if(function.source_lines, [&](const SourceLine& line) { return !files_.contains(line.file); });
    for (SourceLine& line : function.source_lines) {
      const auto [place, added] = places.emplace(line.file, static_cast<uint32_t>(function.source_files.size()));
      if (added) function.source_files.emplace_back(files_.at(line.file));
      line.file = place->second;
    }
  }

  void section() {  // debug information
    while (!cursor_.at_end() && !cursor_.at_symbol('{')) cursor_.next();
    cursor_.expect('{');
    cursor_.skip_to_closing('{', '}');
  }

  void skip_statement() {
    while (!cursor_.at_end() && !cursor_.at_symbol(';')) cursor_.next();
    cursor_.expect(';');
  }

  void variables(Space space, bool external, bool weak) {
    Variable variable = parse_variable(cursor_, space);
    variable.external = external;
    variable.weak = weak;
    module_.variables.push_back(std::move(variable));
    cursor_.expect(';');
  }

  uint32_t parameter_list(Function& function) {
    uint32_t count = 0;
    while (!cursor_.at_end() && !cursor_.at_symbol(')')) {
      bool in_register = cursor_.at_dotted("reg");
      if (!in_register && !cursor_.at_dotted("param")) cursor_.fail_here("expected .param");
      cursor_.next();
      function.variables.push_back(parse_variable(cursor_, Space::kParam));
      if (in_register) function.error = stringf("PTX line %u: a parameter in a register", function.line);
      ++count;
      if (!cursor_.take(',')) break;
    }
    cursor_.expect(')');
    return count;
  }

  void function(bool entry, bool weak) {
    Function function;
    function.entry = entry;
    function.weak = weak;
    function.line = cursor_.peek().line;
    cursor_.take_dotted("attribute");
    if (!entry && cursor_.take('(')) function.result_count = parameter_list(function);
    function.name = cursor_.expect_name();
    if (cursor_.take('(')) function.parameter_count = parameter_list(function);
    attributes(function);
    if (!cursor_.take(';')) body(function);
    module_.functions.push_back(std::move(function));
  }

  // ".maxntid 256, 1, 1", ".minnctapersm 2", ".noreturn", ...: only the largest block matters.
  void attributes(Function& function) {
    while (cursor_.peek().kind == TokenKind::kDotted) {
      std::string_view word = cursor_.next().text;
      if (word == "pragma") {
        skip_statement();
        continue;
      }
      uint64_t product = 1;
      while (cursor_.peek().kind == TokenKind::kNumber) {
        product = std::min<uint64_t>(product * std::min<uint64_t>(cursor_.expect_count(), 1u << 16), 1u << 16);
        if (!cursor_.take(',')) break;
      }
      if (word == "maxntid" || word == "reqntid") function.max_threads = static_cast<uint32_t>(product);
    }
  }

  void body(Function& function) {
    cursor_.expect('{');
    size_t begin = cursor_.position();
    function.defined = true;
    BodyParser(cursor_, function).parse();
    if (!cursor_.failed()) return;
    function.error = cursor_.take_error().text;
    function.code.clear();
    cursor_.rewind(begin);
    cursor_.skip_to_closing('{', '}');
  }

  Cursor cursor_;
  Module module_;
  std::map<uint64_t, std::string> files_;  // by their numbers
};

}  // namespace

Result<Module> parse(std::string_view source) {
  auto tokens = tokenize(source.substr(0, source.find('\0')));  // PTX images end with a zero
  if (!tokens) return tl::unexpected(tokens.error());
  return ModuleParser(*tokens).run();
}

}  // namespace heddle::ptx
