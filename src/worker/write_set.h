#pragma once

// What one record of the ring may do to memory: which regions it reads and writes, and whether it would do the same
// again. From it the worker knows what must be saved before the record runs, so that the work since the last commit can
// be run again in another worker (epoch_memory.h).
//
// Pure functions over validated records. Kernels: by what image/effects.h reads from their code and the words of their
// parameters; copies, fills and library calls by exact ranges. What is not known counts as everything. Records of other
// kinds touch no memory: a free takes effect when it is committed, and textures read when a kernel runs.
//
// Assumptions: those of image/effects.h; that a pointer leads to the segment that it points into, or lies just before
// or behind it (AddressMap::each_meant_by); and that kernels without atomics have no races which decide what addresses
// they write. `heddle run --check` holds kernels against the first two.

#include <optional>
#include <span>
#include <vector>

#include "core/address_map.h"
#include "image/effects.h"
#include "image/module_info.h"
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

// Everything that is mapped in the worker.
class Regions {
 public:
  // False where it overlaps another: nothing has changed.
  bool add(uint64_t address, uint64_t bytes, Region region);
  // What begins there; false where nothing does.
  bool remove(uint64_t address);
  bool any_host() const { return hosts_ > 0; }
  const AddressMap<Region>& map() const { return map_; }

 private:
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

}  // namespace heddle::worker
