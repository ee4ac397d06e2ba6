#pragma once

// What one record of the ring may do to memory: which regions it reads and writes, and whether it would do the same
// again. From it the worker knows what must be saved before the record runs, so that the work since the last commit can
// be run again in another worker (epoch_memory.h).
//
// Pure functions over validated records. Kernels: by what image/effects.h reads from their code and the words of their
// parameters; copies, fills and library calls by exact ranges. What is not known counts as everything. Records of other
// kinds touch no memory: a free takes effect when it is committed, and textures read when a kernel runs.
//
// Assumptions: those of image/effects.h; that a pointer leads to the buffer that it points into, or lies just before or
// behind it (Regions::each_meant_by); and that kernels without atomics have no races which decide what addresses they
// write. `heddle run --check` holds kernels against the first two.

#include <optional>
#include <span>
#include <vector>

#include "core/address_map.h"
#include "image/effects.h"
#include "image/module_info.h"
#include "protocol/buffer_table.h"
#include "worker/validation.h"

namespace heddle::worker {

// What may lie at an address: a segment, of the device or of pinned host memory, or a variable of a module.
struct Region {
  enum class Kind : uint8_t { kDevice, kHost, kVariable };
  Kind kind = Kind::kDevice;
  uint64_t number = 0;  // of the segment; of a variable its index
  uint32_t module = 0;  // of a variable
  bool operator==(const Region&) const = default;
};

// Everything that is mapped in the worker, and where the program's buffers lie in it.
class Regions {
 public:
  explicit Regions(protocol::BufferTable buffers = {}) : buffers_(buffers) {}
  // False where it overlaps another: nothing has changed.
  bool add(uint64_t address, uint64_t bytes, Region region);
  // What begins there; false where nothing does.
  bool remove(uint64_t address);
  bool any_host() const { return hosts_ > 0; }
  const AddressMap<Region>& map() const { return map_; }

  // Calls visit(region, begin, end), in bytes of the region, for each buffer or variable that a pointer may be meant to
  // lead to: the one that it points into, those that begin soon behind it (an array whose elements are counted from 1),
  // and one that ends there. A pointer to where a buffer begins means that one, and another only if that ends there.
  // One that explains itself by none of these means all of its segment.
  template <class Visit>
  void each_meant_by(uint64_t pointer, Visit visit) const;
  // Calls visit(begin, end), in order, for each buffer in a device segment at [address, address + bytes).
  template <class Visit>
  void each_buffer(uint64_t address, uint64_t bytes, Visit visit) const;

 private:
  using Range = AddressMap<Region>::Range;
  using Extent = protocol::BufferTable::Extent;
  static Extent extent_of(const Range& range) { return {range.address, range.end()}; }

  template <class Visit>
  bool begins_one(const Range& range, uint64_t pointer, Visit visit) const;
  template <class Visit>
  void each_meant_in(const Range& range, uint64_t pointer, Visit visit) const;

  protocol::BufferTable buffers_;
  AddressMap<Region> map_;
  size_t hosts_ = 0;
};

// Part of a region that a record may read or write. `overwritten`: it writes all of it, whatever lay there.
struct Touched {
  Region region;
  uint64_t begin = 0, end = 0;  // bytes of the region
  bool read = false, written = false, overwritten = false;
  bool operator==(const Touched&) const = default;
};

// Why work of a session cannot be run again in another worker.
enum class Unmovable : uint8_t {
  kHostMemory,     // a kernel may reach pinned memory, which the program sees meanwhile
  kDeviceMalloc,   // the heap ends with the worker
  kModuleAddress,  // the address of a variable or of code was stored, and the next worker may have it elsewhere
};
const char* text_of(Unmovable reason);

struct RecordEffects {
  std::vector<Touched> touched;
  bool reads_everything = false;   // every device segment
  bool writes_everything = false;  // and every variable of every module
  // From the same memory it writes the same bytes again: no atomics whose result it uses, no clocks, no waiting for
  // others. Kernels may choose by what they read which bytes these are.
  bool same_bytes = true, bytes_by_content = false;
  // From the same memory it leaves the same values there: no sums of floats in any order either.
  bool same_values = true;
  std::optional<Unmovable> unmovable;
};
// Run again, it does the same: it leaves the same, and reads nothing that the program may have changed since.
bool repeats_exactly(const RecordEffects& effects);

// What is known of a kernel ahead of its launches.
struct KernelUse {
  struct Variable {
    uint32_t index = 0;  // in the module
    bool read = false, written = false, managed = false;
  };
  const image::KernelEffects* effects = nullptr;  // null: nothing is known
  std::span<const image::Parameter> parameters;
  std::vector<Variable> variables;
  uint32_t module = 0;
};
// Borrows from both. `all`: the effects of the module's kernels, in any order.
KernelUse use_of(uint32_t module, const image::ModuleInfo& info, const image::KernelInfo& kernel,
                 std::span<const image::KernelEffects> all);

RecordEffects effects_of_launch(const KernelUse& kernel, std::span<const std::byte> parameters, const Regions& regions);
RecordEffects effects_of_copy(const CheckedCopy& copy, const Regions& regions);
RecordEffects effects_of_fill(const CheckedFill& fill, const Regions& regions);
RecordEffects effects_of_call(const library::Call& call, const Regions& regions);

template <class Visit>
void Regions::each_meant_by(uint64_t pointer, Visit visit) const {
  const auto tell = [&](const Range& range, Extent part) {
    visit(range.value, part.begin - range.address, part.end - range.address);
  };
  const Range* in = map_.find(pointer);
  if (in && in->value.kind == Region::Kind::kDevice && begins_one(*in, pointer, tell)) return;
  map_.each_meant_by(pointer, [&](const Range& range) {
    if (range.value.kind != Region::Kind::kDevice) return tell(range, extent_of(range));
    each_meant_in(range, pointer, tell);
  });
}

// Whether a buffer begins at exactly that address: visited, with one that ends there.
template <class Visit>
bool Regions::begins_one(const Range& range, uint64_t pointer, Visit visit) const {
  const Extent segment = extent_of(range);
  const auto buffer = buffers_.at_or_before(segment, pointer);
  if (!buffer || buffer->begin != pointer) return false;
  visit(range, *buffer);
  if (const auto before = buffers_.at_or_before(segment, pointer - 1); before && before->end == pointer)
    visit(range, *before);
  return true;
}

template <class Visit>
void Regions::each_meant_in(const Range& range, uint64_t pointer, Visit visit) const {
  const Extent segment = extent_of(range);
  bool found = false;
  auto next = buffers_.behind(segment, pointer);
  for (; next && next->begin - pointer < map_.kSoon; next = buffers_.behind(segment, next->begin)) {
    visit(range, *next);
    found = true;
  }
  const auto before = buffers_.at_or_before(segment, pointer);
  if (before && pointer <= before->end) {
    visit(range, *before);
  } else if (!found && pointer >= segment.begin) {
    visit(range, segment);
  }
}

template <class Visit>
void Regions::each_buffer(uint64_t address, uint64_t bytes, Visit visit) const {
  const Extent segment{address, address + bytes};
  for (auto next = buffers_.behind(segment, address - 1); next; next = buffers_.behind(segment, next->begin))
    visit(next->begin - address, next->end - address);
}

}  // namespace heddle::worker
