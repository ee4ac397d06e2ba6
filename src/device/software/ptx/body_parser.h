#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/software/ptx/cursor.h"
#include "device/software/ptx/declaration.h"

namespace heddle::ptx {

// Parses the body of a function, from behind its opening brace to behind its closing one. Registers, variables and
// labels live in nested scopes, one per pair of braces; operands come out resolved. Errors stick to the cursor.
class BodyParser {
 public:
  BodyParser(Cursor& cursor, Function& function);
  void parse();

 private:
  // ".reg .b32 %r<15>" declares %r0 to %r14 without spelling them out.
  struct RegisterRange {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct PendingLabel {  // a label named before it is known where it is
    std::string name;
    uint32_t index = 0;  // into Function::labels
    uint32_t line = 0;
  };
  struct Scope {
    std::unordered_map<std::string_view, uint32_t> registers;
    std::unordered_map<std::string_view, RegisterRange> ranges;
    std::unordered_map<std::string, uint32_t> variables;
    std::unordered_map<std::string_view, uint32_t> labels;  // index into Function::labels, placed
    std::unordered_map<std::string_view, uint32_t> tables;
    std::vector<PendingLabel> pending;
  };

  void statement();
  void directive();
  void source_line();
  void declare_registers();
  void declare_variables(Space space);
  void define_label();
  void label_table(std::string_view name);
  void instruction();
  void close_scope();
  void skip_statement();

  std::optional<uint32_t> find_register(std::string_view name) const;
  uint32_t expect_register();
  uint32_t label_reference(std::string_view name, uint32_t line);

  Operand operand(const Instruction& instruction);
  Operand named(const Instruction& instruction);
  Operand address();
  Operand group(Operand::Kind kind, char close, const Instruction& instruction);
  Operand literal();
  Operand pair_with(Operand first, const Instruction& instruction);
  Operand image(Operand result);

  Cursor& cursor_;
  Function& function_;
  std::vector<Scope> scopes_;
};

}  // namespace heddle::ptx
