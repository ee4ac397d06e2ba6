#include "device/software/simt/decode/register_layout.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/units.h"
#include "device/software/simt/decode/liveness.h"

namespace heddle::software {
namespace {

// Places of one width, handed out along the code (linear scan). Widths never share places: a 64-bit register over two
// 32-bit ones would mix up lanes.
class Places {
 public:
  // `begin` never decreases from call to call.
  uint32_t take(LiveInterval life) {
    while (!busy_.empty() && busy_.top().first < life.begin) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    uint32_t place = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      place = free_.top();
      free_.pop();
    }
    busy_.emplace(life.end, place);
    return place;
  }
  uint32_t count() const { return count_; }

 private:
  using Busy = std::pair<uint32_t, uint32_t>;  // last instruction, place
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_;
  uint32_t count_ = 0;
};

std::vector<LiveInterval> lives_of(const ptx::Function& function) {
  if (auto lives = live_intervals(function)) return *lives;
  return std::vector<LiveInterval>(function.registers.size(), {0, ~0u});  // too large to tell: all live throughout
}

RegisterLayout place(const ptx::Function& function, const std::vector<LiveInterval>& lives) {
  std::vector<uint32_t> order;
  for (uint32_t r = 0; r < lives.size(); ++r)
    if (lives[r].begin <= lives[r].end) order.push_back(r);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(lives[a].begin, a) < std::pair(lives[b].begin, b); });
  RegisterLayout layout;
  layout.offsets.resize(lives.size());
  for (Width width : {Width::kPredicate, Width::k32, Width::k64}) {
    Places places;
    for (uint32_t r : order) {
      if (register_width(function.registers[r]) != width) continue;
      layout.offsets[r] = layout.bytes + places.take(lives[r]) * register_bytes(width);
    }
    layout.bytes += static_cast<uint32_t>(round_up(uint64_t{places.count()} * register_bytes(width), 64));
    if (width != Width::kPredicate) layout.words_per_thread += places.count() * (width == Width::k64 ? 2 : 1);
  }
  return layout;
}

}  // namespace

Width register_width(ptx::Type type) {
  if (type.kind == ptx::TypeKind::kPredicate) return Width::kPredicate;
  if (type.bits == 64) return Width::k64;
  return type.bits == 0 || type.bits > 64 ? Width::kNone : Width::k32;
}

uint32_t register_bytes(Width width) {
  return width == Width::kPredicate ? 4 : width == Width::k32 ? 4 * kLanes : width == Width::k64 ? 8 * kLanes : 0;
}

RegisterLayout lay_out_registers(const ptx::Function& function, const std::vector<bool>& kept) {
  std::vector<LiveInterval> lives = lives_of(function);
  RegisterLayout layout = place(function, lives);
  bool any = std::find(kept.begin(), kept.end(), true) != kept.end();
  if (!any) return layout;
  // What a device's compiler would need does not change with what the interpreter keeps.
  const uint32_t words_per_thread = layout.words_per_thread;
  for (uint32_t r = 0; r < lives.size(); ++r)
    if (kept[r]) lives[r] = {0, ~0u};
  layout = place(function, lives);
  layout.words_per_thread = words_per_thread;
  return layout;
}

}  // namespace heddle::software
