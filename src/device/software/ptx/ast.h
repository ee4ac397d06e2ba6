#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A PTX module as plain data, the way it was written: names of registers, variables and labels are resolved within
// their scopes, nothing else is interpreted. What an instruction means is the business of simt/.
namespace heddle::ptx {

enum class TypeKind : uint8_t { kUnsigned, kSigned, kBits, kFloat, kPredicate, kOther };

// A fundamental type: "u32" is {kUnsigned, 32}. kOther stands for packed and alternative floats ("f16x2", "bf16"),
// textures and the like, whose size is known (0 for opaque ones) but which are refused where they are used.
struct Type {
  TypeKind kind = TypeKind::kOther;
  uint8_t bits = 0;
  uint32_t bytes() const { return kind == TypeKind::kPredicate ? 1 : bits / 8u; }
  bool is_float() const { return kind == TypeKind::kFloat; }
  bool is_signed() const { return kind == TypeKind::kSigned; }
  friend bool operator==(const Type&, const Type&) = default;
};

// The type of that name, written without its dot.
std::optional<Type> parse_type(std::string_view name);

enum class Space : uint8_t { kGlobal, kConst, kShared, kLocal, kParam };

// A number as written. Floats keep their bits ("0f3F800000" is {kFloat32, 0x3F800000}); a decimal float is kFloat64.
// Integers keep 64 bits in two's complement.
struct Literal {
  enum class Kind : uint8_t { kInteger, kFloat32, kFloat64 };
  Kind kind = Kind::kInteger;
  uint64_t bits = 0;
};

// A word of an initialiser that holds an address: `size` bytes at `offset` receive (address of symbol + addend) >>
// shift.
struct SymbolReference {
  uint64_t offset = 0;
  uint32_t size = 8;
  uint32_t shift = 0;
  std::string symbol;
  int64_t addend = 0;
};

// A variable of a module or function, or a parameter.
struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type;
  uint64_t size = 0;       // in bytes; 0 for an array without a bound (dynamic shared memory)
  uint32_t alignment = 1;  // in bytes, a power of two
  bool external = false;   // .extern: defined elsewhere, or dynamic shared memory
  bool weak = false;       // .weak or .common: other units may define it too
  bool pointer = false;    // a parameter marked .ptr
  uint32_t line = 0;
  std::vector<std::byte> initial;  // at most `size` bytes; the rest is zero
  std::vector<SymbolReference> references;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // index: into Function::registers
    kLiteral,   // literal
    kSpecial,   // name: "%tid.x"
    kVariable,  // index: into Function::variables
    kSymbol,    // name of something of the module, or not defined at all
    kLabel,     // index: into Function::labels
    kTable,     // index: into Function::branch_tables
    kAddress,   // [elements[0] + literal], or [literal] without elements
    kImage,     // [elements[0], coordinates...]: a texture or surface, and where in it
    kVector,    // {elements...}
    kPair,      // elements[0] | elements[1]
    kList,      // (elements...), of a call
    kDiscard,   // _
    kOther,     // a form that is known to exist but not modelled; name: its text
  };
  Kind kind = Kind::kOther;
  bool negated = false;  // !%p
  uint32_t index = 0;
  Literal literal;
  std::string name;
  std::vector<Operand> elements;
};

struct Guard {
  uint32_t predicate = 0;  // index into Function::registers
  bool negated = false;
};

// "@%p1 ld.global.v2.f32 ..." is opcode "ld", modifiers {"global", "v2", "f32"}.
struct Instruction {
  std::string opcode;
  std::vector<std::string> modifiers;
  std::optional<Guard> guard;
  std::vector<Operand> operands;
  uint32_t line = 0;

  bool has(std::string_view modifier) const;
  std::string name() const;  // opcode and modifiers joined by dots
};

// Where the instructions from a line of the PTX on come from, as .loc says in programs that were compiled with
// -lineinfo or -G.
struct SourceLine {
  uint32_t ptx_line = 0;
  uint32_t file = 0;  // index into Function::source_files
  uint32_t line = 0;
};

// A kernel (.entry) or a device function (.func). variables holds first the results, then the parameters, then what the
// body declares.
struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;  // has a body
  bool weak = false;     // other units may define it too
  uint32_t line = 0;
  uint32_t result_count = 0;
  uint32_t parameter_count = 0;
  std::vector<Variable> variables;
  std::vector<Type> registers;
  std::vector<uint32_t> labels;                      // index into code (code.size(): the end)
  std::vector<std::vector<uint32_t>> branch_tables;  // each a list of indices into labels
  std::vector<Instruction> code;
  std::vector<SourceLine> source_lines;  // in the order of the PTX
  std::vector<std::string> source_files;
  uint32_t max_threads = 0;  // .maxntid or .reqntid, multiplied out; 0 where absent
  // Why the body could not be parsed; empty where it could. The rest of the module is usable all the same.
  std::string error;

  const Variable& parameter(uint32_t i) const { return variables[result_count + i]; }
  const Variable& result(uint32_t i) const { return variables[i]; }
};

struct Module {
  std::string version;  // "9.0"
  std::string target;   // "sm_80"
  std::vector<Variable> variables;
  std::vector<Function> functions;

  // The definition of that name, else its declaration, else null.
  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
};

}  // namespace heddle::ptx
