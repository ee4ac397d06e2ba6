// Instructions of a whole warp, and barriers. Those that wait for other lanes are control instructions: a guard becomes
// a jump over them, so that the waiting lanes are a path of their own.

#include <utility>

#include "device/software/simt/barrier.h"
#include "device/software/simt/decode/decoders.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

struct Destinations {
  uint32_t d = Op::kNone, predicate = Op::kNone;
};

// "d", or "d|p" where p is a predicate.
Destinations destinations(FunctionCompiler& f, const ptx::Operand& operand, Width width) {
  if (operand.kind != Kind::kPair) return {f.destination(operand, width), Op::kNone};
  return {f.destination(operand.elements[0], width), f.destination(operand.elements[1], Width::kPredicate)};
}

}  // namespace

void decode_shuffle(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const Row* row = f.row(instruction.name());
  if (!row) return;
  if (instruction.operands.size() != 5) return f.refuse("its number of operands");
  uint32_t sources[4];
  for (size_t i = 0; i < 4; ++i) sources[i] = f.source(instruction.operands[i + 1], Width::k32);
  Destinations to = destinations(f, instruction.operands[0], Width::k32);
  if (f.refused()) return;
  Op& op = f.emit_control(row->handler);
  op.d = to.d, op.target = to.predicate;
  op.a = sources[0], op.b = sources[1], op.c = sources[2], op.extra = sources[3];
}

namespace {

// As PTX documents it. NVIDIA's assembler takes "vote.ballot.sync.b32" for "vote.sync.ballot.b32", and CUB writes it.
std::string documented_name(const ptx::Instruction& instruction) {
  ptx::Instruction ordered = instruction;
  auto& words = ordered.modifiers;
  if (instruction.opcode == "vote" && words.size() > 1 && words[1] == "sync") std::swap(words[0], words[1]);
  return ordered.name();
}

}  // namespace

// vote, match, redux: d, a, mask. elect: d|p, mask.
void decode_warp(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const Row* row = f.row(documented_name(instruction));
  if (!row) return;
  bool vote = instruction.opcode == "vote", elect = instruction.opcode == "elect";
  if (instruction.operands.size() != (elect ? 2u : 3u)) return f.refuse("its number of operands");
  ptx::Operand source = elect ? ptx::Operand{} : instruction.operands[1];
  bool negated = vote && source.negated;
  source.negated = false;
  uint32_t a = elect ? 0 : f.source(source, vote ? Width::kPredicate : row->a);
  uint32_t mask = f.source(instruction.operands.back(), Width::k32);
  Destinations to = destinations(f, instruction.operands[0], elect ? Width::k32 : row->d);
  if (f.refused()) return;
  if (to.d == Op::kNone && !elect) return f.refuse("a discarded result");
  Op& op = f.emit_control(row->handler);
  op.d = to.d, op.target = to.predicate, op.a = a, op.b = mask, op.flags = negated ? kNegateC : 0;
}

namespace {

void decode_warp_barrier(FunctionCompiler& f, const ptx::Instruction& instruction) {
  if (instruction.operands.size() != 1) return f.refuse("its number of operands");
  uint32_t mask = f.source(instruction.operands[0], Width::k32);
  if (f.refused()) return;
  f.emit_control(warp_barrier).a = mask;
}

bool has_literal_index(const ptx::Operand& operand) {
  return operand.kind == Kind::kLiteral && operand.literal.bits < kBarriers;
}

// The index, where it stands in the instruction; else a register has it, lane by lane.
void set_index(Op& op, const ptx::Operand& operand, uint32_t source) {
  op.a = source;
  if (!has_literal_index(operand)) return;
  op.imm = static_cast<int64_t>(operand.literal.bits);
  op.flags = kIndexGiven;
}

// bar.red.popc.u32 d, a {, b}, {!}c; bar.red.and.pred p, a {, b}, {!}c
void decode_barrier_reduction(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& operands = instruction.operands;
  if (operands.size() != 3 && operands.size() != 4) return f.refuse("its number of operands");
  BarrierKind kind = instruction.has("popc")  ? BarrierKind::kReducePopc
                     : instruction.has("and") ? BarrierKind::kReduceAnd
                                              : BarrierKind::kReduceOr;
  if (kind == BarrierKind::kReduceOr && !instruction.has("or")) return f.refuse();
  uint32_t index = f.source(operands[1], Width::k32);
  uint32_t threads = operands.size() == 4 ? f.source(operands[2], Width::k32) : Op::kNone;
  uint32_t predicate = f.source(operands.back(), Width::kPredicate);
  uint32_t d = f.destination(operands[0], kind == BarrierKind::kReducePopc ? Width::k32 : Width::kPredicate);
  if (f.refused()) return;
  if (d == Op::kNone) return f.refuse("a discarded result");
  Op& op = f.emit_control(block_barrier);
  op.count = static_cast<uint8_t>(kind);
  op.d = d, op.b = threads, op.c = predicate;
  set_index(op, operands[1], index);
}

}  // namespace

void decode_barrier(FunctionCompiler& f, const ptx::Instruction& instruction) {
  if (instruction.has("cluster")) return f.refuse("clusters");
  if (instruction.has("warp")) return decode_warp_barrier(f, instruction);
  if (instruction.has("red")) return decode_barrier_reduction(f, instruction);
  bool arrives = instruction.has("arrive");
  const auto& operands = instruction.operands;
  if ((!arrives && !instruction.has("sync")) || operands.empty() || operands.size() > 2) return f.refuse();
  uint32_t index = f.source(operands[0], Width::k32);
  uint32_t threads = operands.size() == 2 ? f.source(operands[1], Width::k32) : Op::kNone;
  if (f.refused()) return;
  bool plain = !arrives && threads == Op::kNone && has_literal_index(operands[0]);
  Op& op = f.emit_control(plain ? block_sync : block_barrier);
  op.count = static_cast<uint8_t>(arrives ? BarrierKind::kArrive : BarrierKind::kSync);
  op.b = threads, op.c = Op::kNone;
  set_index(op, operands[0], index);
}

}  // namespace heddle::software
