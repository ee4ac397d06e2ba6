// cp.async and mbarrier. An asynchronous copy is done where it stands: whoever waits for it finds it complete.

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/lanes/space.h"
#include "device/software/simt/mbarrier.h"
#include "device/software/simt/partial_load.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

void set_base(Op& op, const MemoryBase& base) {
  op.a = base.a;
  op.imm = base.offset;
  op.flags = base.flags;
}

// [shared], [global], bytes {, source bytes | predicate that says to ignore the source}
void decode_copy(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& operands = instruction.operands;
  bool sizes = operands.size() >= 3 && operands.size() <= 4 && operands[2].kind == Kind::kLiteral;
  uint64_t bytes = sizes ? operands[2].literal.bits : 0;
  if (!instruction.has("global") || (bytes != 4 && bytes != 8 && bytes != 16)) return f.refuse();
  if (instruction.has("L2::cache_hint")) return f.refuse("a cache policy");
  MemoryBase to = f.memory_base(operands[0]), from = f.memory_base(operands[1]);
  if (f.refused()) return;
  if ((to.flags | from.flags) & kFrameRelative) return f.refuse("its state spaces");
  uint32_t size = Op::kNone, ignored = Op::kNone;
  if (operands.size() == 4) {
    bool predicate = f.width_of(operands[3]) == Width::kPredicate;
    (predicate ? ignored : size) = f.source(operands[3], predicate ? Width::kPredicate : Width::k32);
  }
  std::vector<uint32_t> words;
  for (uint64_t i = 0; i < bytes / 4; ++i) words.push_back(f.temporary(Width::k32));
  uint32_t list = f.operand_list(words);
  const Row* store = f.row("st.shared.32");
  if (f.refused()) return;
  Op& load = f.emit(load_partially);
  set_base(load, from);
  load.b = ignored, load.c = size, load.extra = list, load.count = static_cast<uint8_t>(words.size()), load.weight = 0;
  Op& op = f.emit(store->handler);
  set_base(op, to);
  op.d = words[0], op.extra = list, op.count = static_cast<uint8_t>(words.size());
}

// The address of an mbarrier operand, put into an Op that `handler` will run.
Op* emit_at(FunctionCompiler& f, const ptx::Instruction& instruction, const ptx::Operand& address, Handler handler) {
  MemoryBase base = f.memory_base(address);
  bool shared =
      instruction.has("shared") || instruction.has("shared::cta") || (base.named && base.space == ptx::Space::kShared);
  if (instruction.has("shared::cluster") || instruction.has("cluster")) f.refuse("clusters");
  if (base.flags & kFrameRelative) f.refuse("its state space");
  if (f.refused()) return nullptr;
  Op& op = f.emit(handler);
  set_base(op, base);
  op.d = op.b = Op::kNone;
  op.count = static_cast<uint8_t>(shared ? At::kShared : At::kGeneric);
  return &op;
}

// state, [address] {, count}
void decode_arrive(FunctionCompiler& f, const ptx::Instruction& instruction, Handler handler) {
  const auto& operands = instruction.operands;
  if (instruction.has("expect_tx") || operands.size() < 2 || operands.size() > 3) return f.refuse();
  uint32_t state = f.destination(operands[0], Width::k64);
  uint32_t count = operands.size() == 3 ? f.source(operands[2], Width::k32) : Op::kNone;
  if (f.refused()) return;
  if (Op* op = emit_at(f, instruction, operands[1], handler)) op->d = state, op->b = count;
}

// predicate, [address], state or parity {, how long to try}
void decode_test(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& operands = instruction.operands;
  if (operands.size() < 3 || operands.size() > 4) return f.refuse("its number of operands");
  bool parity = instruction.has("parity");
  uint32_t d = f.destination(operands[0], Width::kPredicate);
  uint32_t b = f.source(operands[2], parity ? Width::k32 : Width::k64);
  if (f.refused()) return;
  if (d == Op::kNone) return f.refuse("a discarded result");
  Op* op = emit_at(f, instruction, operands[1], parity ? mbarrier_test_parity : mbarrier_test_state);
  if (op) op->d = d, op->b = b;
}

}  // namespace

void decode_async_copy(FunctionCompiler& f, const ptx::Instruction& instruction) {
  if (!instruction.has("async") || instruction.has("bulk")) return f.refuse("bulk and tensor copies");
  if (instruction.has("commit_group") || instruction.has("wait_group") || instruction.has("wait_all")) {
    f.emit(no_operation);
    return;
  }
  if (!instruction.has("mbarrier")) return decode_copy(f, instruction);
  // Without .noinc the copies' arrival is one more that the phase expects, so that nothing changes.
  if (instruction.operands.size() != 1) return f.refuse("its number of operands");
  if (instruction.has("noinc")) {
    emit_at(f, instruction, instruction.operands[0], mbarrier_arrive);
  } else {
    f.emit(no_operation);
  }
}

void decode_mbarrier(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& operands = instruction.operands;
  if (instruction.has("arrive")) return decode_arrive(f, instruction, mbarrier_arrive);
  if (instruction.has("arrive_drop")) return decode_arrive(f, instruction, mbarrier_arrive_drop);
  if (instruction.has("test_wait") || instruction.has("try_wait")) return decode_test(f, instruction);
  if (instruction.has("inval") && operands.size() == 1) {
    emit_at(f, instruction, operands[0], mbarrier_invalidate);
  } else if (instruction.has("init") && operands.size() == 2) {
    uint32_t count = f.source(operands[1], Width::k32);
    if (Op* op = emit_at(f, instruction, operands[0], mbarrier_init)) op->b = count;
  } else if (instruction.has("pending_count") && operands.size() == 2) {
    uint32_t state = f.source(operands[1], Width::k64), d = f.destination(operands[0], Width::k32);
    if (f.refused() || d == Op::kNone) return f.refuse("a discarded result");
    Op& op = f.emit(mbarrier_pending_count);
    op.d = d, op.a = state;
  } else {
    f.refuse();
  }
}

}  // namespace heddle::software
