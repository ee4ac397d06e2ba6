#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "image/effects.h"
#include "image/module_info.h"
#include "worker/refusal.h"
#include "worker/write_set.h"

namespace heddle::worker {

// Tells what a fat binary declares for devices of compute capability `arch` (90 for 9.0), in the order that the client,
// which knows the same model, counts in too.
using ModuleDescriber = std::function<Result<image::ModuleInfo>(std::span<const std::byte> fatbin, uint32_t arch)>;
// Tells what its kernels may do with memory; an error where nothing is known of them.
using EffectsReader =
    std::function<Result<std::vector<image::KernelEffects>>(std::span<const std::byte> fatbin, uint32_t arch)>;
struct ModuleReader {
  ModuleDescriber describe;
  EffectsReader effects;  // may be empty: then nothing is known
};

// What of a kernel's effects concerns the variables of the session's modules, and device malloc.
struct KernelTraits {
  bool allocates = false;                  // may call device malloc
  bool writes_variables = false;           // by their names, or through addresses from anywhere
  bool writes_through_parameters = false;  // only then what its parameters lead to
  bool tells_addresses = false;            // may leave a variable's or a function's where the program finds it
};

// The session's program modules: known when heddled has sent them, loaded on the device at first use. Issuer's thread
// only; entries stay where they are.
//
// What kernels may do with memory is read once for each module, when it first matters: with the first launch of one of
// its kernels once a loaded module has variables that are not constant, where its own declares device malloc, or where
// its addresses matter and it has variables or functions. A program without any pays nothing; the others 20 to 35 ms a
// MiB of PTX, and a fat binary of more than 16 MiB is not read.
class Modules {
 public:
  class Entry;
  struct LaunchTarget {
    device::Kernel* kernel;
    const image::KernelInfo* info;
    KernelTraits traits = {};
    const KernelUse* use = nullptr;  // where that is kept
  };

  // `keeps_uses`: what kernels may do with memory is read of every module that has one launched, and kept (KernelUse).
  // `addresses_matter`: of those, too, whose kernels may leave an address of the module's where the program finds it.
  Modules(device::Context& context, ModuleReader read, uint32_t arch, bool keeps_uses, bool addresses_matter);
  ~Modules();

  // From now on, as the constructor has it. Of modules whose code was read before nothing is known.
  void keep_uses() { keeps_uses_ = true; }

  // The next module of the session; ids count from 1. Copies what `memory` holds, because the tenant can write to it.
  Status add(uint32_t id, const Fd& memory, Bytes size);
  bool known(uint32_t id) const { return id - 1 < entries_.size(); }

  // All three load the module if that has not been done yet; `id` must be known. An index past the end is malformed.
  Checked<void> load(uint32_t id);
  Checked<LaunchTarget> kernel(uint32_t id, uint32_t index);
  Checked<device::Variable> variable(uint32_t id, uint32_t index);

  // What was loaded, in that order.
  struct Loaded {
    uint32_t id = 0;
    std::vector<device::Variable> variables;  // those that the device has
    std::vector<uint32_t> indices;            // of these among the module's
    uint64_t addresses = 0;                   // a digest of where they are; 0: there are none
    bool holds_addresses = false;             // some begin with one of the module's in them
  };
  uint64_t loaded_count() const { return loaded_.size(); }
  const Loaded& loaded_at(uint64_t index) const { return loaded_[index]; }
  // Of all that were loaded, each variable at a multiple of 16; and those that kernels may write.
  uint64_t variable_bytes() const { return variable_bytes_; }
  uint64_t writable_bytes() const { return writable_bytes_; }

 private:
  Checked<Entry*> loaded(uint32_t id);
  bool traits_matter(const Entry& entry) const;
  void find_traits(uint32_t id, Entry& entry) const;
  static void keep_uses(uint32_t id, Entry& entry, std::vector<image::KernelEffects> effects);
  void note_loaded(uint32_t id, const Entry& entry);

  device::Context& context_;
  ModuleReader read_;
  const uint32_t arch_;
  bool keeps_uses_;
  const bool addresses_matter_;
  std::vector<std::unique_ptr<Entry>> entries_;  // by id - 1
  std::vector<Loaded> loaded_;
  uint64_t variable_bytes_ = 0, writable_bytes_ = 0;
};

}  // namespace heddle::worker
