#include "device/software/simt/decode/liveness.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

constexpr uint64_t kMaxBits = 1ull << 28;  // of all sets together: 32 MiB

// A set of registers.
using Bits = std::vector<uint64_t>;
void insert(Bits& set, uint32_t i) {
  set[i / 64] |= 1ull << (i % 64);
}
bool contains(const Bits& set, uint32_t i) {
  return set[i / 64] >> (i % 64) & 1;
}

// Whether the first operand is what the instruction writes. In doubt it is not: then it counts as read.
bool writes_first_operand(const ptx::Instruction& instruction) {
  static constexpr std::string_view kReaders[] = {"st",        "red",  "bar",  "barrier",     "bra",
                                                  "brx",       "call", "ret",  "prefetch",    "prefetchu",
                                                  "nanosleep", "cp",   "sust", "stackrestore"};
  return std::find(std::begin(kReaders), std::end(kReaders), instruction.opcode) == std::end(kReaders);
}

template <class Visit>
void visit_operand(const ptx::Operand& operand, bool written, Visit visit) {
  if (operand.kind == Kind::kRegister) visit(operand.index, written);
  for (const ptx::Operand& element : operand.elements)
    visit_operand(element, written && operand.kind != Kind::kAddress && operand.kind != Kind::kImage, visit);
}

// Calls visit(register, written) for every register of the instruction. What a guarded instruction writes, it may as
// well leave alone, so that it counts as read too.
template <class Visit>
void visit_registers(const ptx::Instruction& instruction, Visit visit) {
  bool writes = writes_first_operand(instruction) && !instruction.guard;
  if (instruction.guard) visit(instruction.guard->predicate, false);
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    visit_operand(instruction.operands[i], i == 0 && writes, visit);
}

struct BasicBlock {
  uint32_t begin = 0, end = 0;  // instructions [begin, end)
  std::vector<uint32_t> successors;
  Bits read_first, written_first, live_in, live_out;
};

class Analysis {
 public:
  explicit Analysis(const ptx::Function& function)
      : function_(function), count_(static_cast<uint32_t>(function.code.size())) {}

  std::optional<std::vector<LiveInterval>> run() {
    find_blocks();
    if (uint64_t{blocks_.size()} * function_.registers.size() * 4 > kMaxBits) return std::nullopt;
    for (BasicBlock& block : blocks_) summarise(block);
    while (propagate()) {
    }
    return intervals();
  }

 private:
  bool ends_path(const ptx::Instruction& instruction) const {
    return !instruction.guard && (instruction.opcode == "bra" || instruction.opcode == "brx" ||
                                  instruction.opcode == "ret" || instruction.opcode == "exit");
  }

  // Instructions to which this one may jump.
  std::vector<uint32_t> targets(const ptx::Instruction& instruction) const {
    std::vector<uint32_t> result;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind == Kind::kLabel) result.push_back(function_.labels[operand.index]);
      if (operand.kind == Kind::kTable)
        for (uint32_t label : function_.branch_tables[operand.index]) result.push_back(function_.labels[label]);
    }
    return result;
  }

  void find_blocks() {
    std::vector<bool> leader(count_ + 1, false);
    leader[0] = true;
    for (uint32_t i = 0; i < count_; ++i) {
      auto to = targets(function_.code[i]);
      for (uint32_t target : to) leader[target] = true;
      if (!to.empty() || ends_path(function_.code[i])) leader[i + 1] = true;
    }
    block_of_.resize(count_ + 1);
    for (uint32_t i = 0; i < count_; ++i) {
      if (leader[i]) blocks_.push_back({.begin = i});
      blocks_.back().end = i + 1;
      block_of_[i] = static_cast<uint32_t>(blocks_.size()) - 1;
    }
    for (BasicBlock& block : blocks_) link(block);
  }

  void link(BasicBlock& block) {
    const ptx::Instruction& last = function_.code[block.end - 1];
    for (uint32_t target : targets(last))
      if (target < count_) block.successors.push_back(block_of_[target]);
    if (!ends_path(last) && block.end < count_) block.successors.push_back(block_of_[block.end]);
  }

  void summarise(BasicBlock& block) {
    size_t words = (function_.registers.size() + 63) / 64;
    for (Bits* set : {&block.read_first, &block.written_first, &block.live_in, &block.live_out}) set->resize(words);
    for (uint32_t i = block.begin; i < block.end; ++i) {
      // Reads come before the writes of the same instruction.
      visit_registers(function_.code[i], [&](uint32_t r, bool written) {
        if (!written && !contains(block.written_first, r)) insert(block.read_first, r);
      });
      visit_registers(function_.code[i], [&](uint32_t r, bool written) {
        if (written && !contains(block.read_first, r)) insert(block.written_first, r);
      });
    }
  }

  // One round of: live out is what is live into any successor; live in is what is read first, and what is live out and
  // not written first. True if anything changed.
  bool propagate() {
    bool changed = false;
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      for (size_t w = 0; w < block->live_in.size(); ++w) {
        for (uint32_t successor : block->successors) block->live_out[w] |= blocks_[successor].live_in[w];
        uint64_t in = block->read_first[w] | (block->live_out[w] & ~block->written_first[w]);
        changed |= in != block->live_in[w];
        block->live_in[w] = in;
      }
    }
    return changed;
  }

  std::vector<LiveInterval> intervals() const {
    std::vector<LiveInterval> result(function_.registers.size());
    auto extend = [&](uint32_t r, uint32_t at) {
      result[r].begin = std::min(result[r].begin, at);
      result[r].end = std::max(result[r].end, at);
    };
    auto extend_all = [&](const Bits& set, uint32_t at) {
      for (size_t w = 0; w < set.size(); ++w)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1)
          extend(static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(rest))), at);
    };
    for (const BasicBlock& block : blocks_) {
      extend_all(block.live_in, block.begin);
      extend_all(block.live_out, block.end - 1);
      for (uint32_t i = block.begin; i < block.end; ++i)
        visit_registers(function_.code[i], [&](uint32_t r, bool) { extend(r, i); });
    }
    return result;
  }

  const ptx::Function& function_;
  const uint32_t count_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_of_;
};

}  // namespace

std::optional<std::vector<LiveInterval>> live_intervals(const ptx::Function& function) {
  return Analysis(function).run();
}

}  // namespace heddle::software
