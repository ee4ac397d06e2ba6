// FunctionCompiler: operands, as offsets in the registers of a frame.

#include <bit>
#include <cstring>

#include "device/software/simt/decode/function_compiler.h"
#include "device/software/simt/special.h"

namespace heddle::software {

using Kind = ptx::Operand::Kind;

Width FunctionCompiler::width_of(const ptx::Operand& operand) const {
  return operand.kind == Kind::kRegister ? register_width(function_.registers[operand.index]) : Width::kNone;
}

uint32_t FunctionCompiler::allocate(uint32_t bytes) {
  image_.resize(round_up(image_.size(), 64));
  auto offset = register_end_ + static_cast<uint32_t>(image_.size());
  image_.resize(image_.size() + bytes);
  return offset;
}

uint32_t FunctionCompiler::temporary(Width width) {
  return allocate(register_bytes(width));
}

uint32_t FunctionCompiler::carry_flags() {
  if (!carry_) carry_ = allocate(register_bytes(Width::kPredicate));
  return *carry_;
}

uint32_t FunctionCompiler::constant(uint64_t bits, Width width) {
  if (width == Width::k32) bits = static_cast<uint32_t>(bits);
  auto [place, added] = constants_.emplace(std::pair(width, bits), 0);
  if (!added) return place->second;
  place->second = allocate(register_bytes(width));
  std::byte* at = image_.data() + (place->second - register_end_);
  size_t size = width == Width::k64 ? 8 : 4;
  uint32_t copies = width == Width::kPredicate ? 1 : kLanes;
  for (uint32_t i = 0; i < copies; ++i) std::memcpy(at + i * size, &bits, size);
  return place->second;
}

uint32_t FunctionCompiler::source(const ptx::Operand& operand, Width width) {
  if (operand.negated && width != Width::kPredicate) {
    refuse("'!' before what is no predicate");
    return 0;
  }
  switch (operand.kind) {
    case Kind::kRegister:
      if (width_of(operand) != width) break;
      return operand.negated ? negated(registers_[operand.index]) : registers_[operand.index];
    case Kind::kLiteral:
      return literal_value(operand.literal, width);
    case Kind::kSpecial:
      return special_value(operand.name, width);
    case Kind::kVariable:
    case Kind::kSymbol:
      return address_value(operand, width);
    default:
      break;
  }
  refuse("an operand of another kind or width than the instruction's");
  return 0;
}

uint32_t FunctionCompiler::destination(const ptx::Operand& operand, Width width) {
  if (operand.kind == Kind::kDiscard) return Op::kNone;
  if (operand.kind == Kind::kRegister && width_of(operand) == width) return registers_[operand.index];
  refuse("a destination of another width than the instruction's");
  return 0;
}

uint32_t FunctionCompiler::negated(uint32_t predicate) {
  uint32_t result = temporary(Width::kPredicate);
  if (const Row* inversion = row("not.pred")) {
    Op& op = emit_extra(inversion->handler);
    op.d = result, op.a = predicate;
  }
  return result;
}

uint32_t FunctionCompiler::literal_value(const ptx::Literal& literal, Width width) {
  using LiteralKind = ptx::Literal::Kind;
  if (width == Width::k32 && literal.kind == LiteralKind::kFloat64)
    return constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits))), width);
  if (width == Width::k64 && literal.kind == LiteralKind::kFloat32)
    return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(literal.bits))}), width);
  if (width == Width::kPredicate) return constant(literal.bits ? kAllLanes : 0, width);
  return constant(literal.bits, width);
}

Op* FunctionCompiler::emit_special(const std::string& name, Width width) {
  auto special = find_special(name);
  if (!special || width == Width::kPredicate) {
    refuse("special register or undeclared register " + name);
    return nullptr;
  }
  bool thread = *special <= Special::kTidZ;
  bool lane = *special == Special::kLaneId || (*special >= Special::kLaneMaskEq && *special <= Special::kLaneMaskGe);
  const Row* reader = row(thread                ? "special.thread"
                          : lane                ? "special.lane"
                          : width == Width::k64 ? "special.uniform.64"
                                                : "special.uniform.32");
  if (!reader) return nullptr;
  if (reader->d != width) refuse("special register " + name + " has 32 bits");
  Op& op = emit(reader->handler);
  op.count = static_cast<uint8_t>(*special);
  return &op;
}

uint32_t FunctionCompiler::special_value(const std::string& name, Width width) {
  Op* op = emit_special(name, width);
  if (!op) return 0;
  op->weight = 0;
  return op->d = temporary(width);
}

// The address of a variable as a value, for mov, cvta and arithmetic.
uint32_t FunctionCompiler::address_value(const ptx::Operand& operand, Width width) {
  if (operand.kind == Kind::kSymbol && operand.name == "WARP_SZ") return constant(kLanes, width);
  ptx::Operand address;
  address.kind = Kind::kAddress;
  address.elements.push_back(operand);
  MemoryBase base = memory_base(address);
  if (refused()) return 0;
  if (base.launch_parameter) return constant(static_cast<uint64_t>(base.offset), width);
  if (!(base.flags & kFrameRelative)) return constant(base.address, width);
  const Row* reader = row(width == Width::k64 ? "local.address.64" : "local.address.32");
  if (!reader) return 0;
  uint32_t result = temporary(width);
  Op& op = emit_extra(reader->handler);
  op.d = result;
  op.imm = base.offset;
  return result;
}

MemoryBase FunctionCompiler::memory_base(const ptx::Operand& operand) {
  MemoryBase base;
  if (operand.kind != Kind::kAddress) {
    refuse("expected an address in brackets");
    return base;
  }
  base.offset = static_cast<int64_t>(operand.literal.bits);
  if (operand.elements.empty()) {
    base.a = constant(0, Width::k64);
    base.flags = kAddress64;
    return base;
  }
  const ptx::Operand& named = operand.elements[0];
  if (named.kind == Kind::kRegister) {
    Width width = width_of(named);
    if (width != Width::k32 && width != Width::k64) refuse("an address of this width");
    base.a = registers_[named.index];
    base.flags = width == Width::k64 ? kAddress64 : 0;
    return base;
  }
  base.named = true;
  std::optional<VariableAddress> address;
  if (named.kind == Kind::kVariable) {
    const ptx::Variable& variable = function_.variables[named.index];
    base.space = variable.space;
    base.launch_parameter = function_.entry && named.index < function_.parameter_count;
    if (base.launch_parameter) {
      base.offset += kernel_.kernel().parameters[named.index].offset;
      return base;
    }
    if (variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam) {
      base.offset += local_offset(named.index);
      base.flags = kFrameRelative;
      return base;
    }
    address = kernel_.address_of(variable);
  } else if (named.kind == Kind::kSymbol) {
    address = kernel_.address_of(named.name);
  }
  if (!address) {
    refuse("the address of '" + named.name + "'");
    return base;
  }
  base.space = address->space;
  base.address = address->value;
  base.a = constant(address->value, Width::k64);
  base.flags = kAddress64;
  return base;
}

bool FunctionCompiler::is_same_in_all_blocks(const ptx::Operand& address) const {
  if (!function_.entry || address.kind != Kind::kAddress || address.elements.size() != 1) return false;
  const ptx::Operand& named = address.elements[0];
  return named.kind == Kind::kVariable || named.kind == Kind::kSymbol || invariants_.holds(named);
}

uint32_t FunctionCompiler::operand_list(const std::vector<uint32_t>& offsets) {
  std::vector<uint32_t>& all = kernel_.kernel().operands;
  auto first = static_cast<uint32_t>(all.size());
  all.insert(all.end(), offsets.begin(), offsets.end());
  return first;
}

}  // namespace heddle::software
