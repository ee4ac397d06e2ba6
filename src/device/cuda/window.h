#pragma once

#include <map>
#include <memory>
#include <set>

#include "core/fd.h"
#include "core/units.h"
#include "device/cuda/driver.h"

namespace heddle::cuda {

// Lifts the caller's hold on the addresses [base, base + bytes), a mapping without access, so that the driver can take
// them; puts it back when destroyed, unless the driver has taken them.
//
// To be lifted before the driver is initialised and a context is made: what is mapped at that time, the driver never
// gives out, although it is unmapped later (driver 580.159: a hint there yields the addresses behind it).
class LiftedHold {
 public:
  LiftedHold(uint64_t base, uint64_t bytes);
  ~LiftedHold();
  LiftedHold(const LiftedHold&) = delete;
  LiftedHold& operator=(const LiftedHold&) = delete;

 private:
  friend class AddressRange;
  const uint64_t base_, bytes_;
  bool lifted_ = false;
};

// The addresses [base, base + bytes), reserved with the driver, so that memory can be mapped there for kernels. What
// the driver gives is verified: a hint is only a hint (HARDWARE.md, p5).
class AddressRange {
 public:
  // A context must be current. kLimitExceeded where the driver gives other addresses. Contexts of one process share a
  // range, as they share its addresses: hence shared_ptr. The last owner gives the hold back to the caller.
  static Result<std::shared_ptr<AddressRange>> reserve(const Driver& driver, LiftedHold& hold);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

 private:
  AddressRange(const Driver& driver, uint64_t base, uint64_t bytes) : driver_(driver), base_(base), bytes_(bytes) {}

  const Driver driver_;
  const uint64_t base_, bytes_;
};

// What one context has mapped in its window: device memory in its first part, pinned host memory in the rest; and the
// host memory that is registered with the driver, wherever it is.
//
// Thread safety: the owner's lock.
class Window {
 public:
  struct Shape {
    uint64_t base = 0, bytes = 0;  // all of it
    uint64_t device_bytes = 0;     // the first part
  };

  Window(const Driver& driver, const Shape& shape, CUdevice device, std::shared_ptr<AddressRange> range)
      : driver_(driver), shape_(shape), device_(device), range_(std::move(range)) {}
  // Unmaps what is still mapped; nothing may be in flight.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // As device::Context::map() and unmap(). A context must be current.
  Status map(uint64_t address, Bytes size, const Fd& memory, bool host);
  Status unmap(uint64_t address, Bytes size);
  // Before work that may touch host memory: registers with the driver what was mapped since. Registering takes the
  // driver longer than all else (0.3 ms a MiB), and what is freed before it is used need not be.
  CUresult register_mapped();
  bool has_unregistered() const { return !unregistered_.empty(); }
  bool on_host(uint64_t address) const {
    const uint64_t offset = address - shape_.base;
    return offset >= shape_.device_bytes && offset < shape_.bytes;
  }
  // Whether a copy may touch [address, address + bytes): addresses in the window must be mapped, others pass.
  bool accessible(uint64_t address, uint64_t bytes) const;

  // Host memory outside of the window that copies will touch: registered with the driver at the first of them.
  void pin_later(uint64_t address, Bytes size) { pinnable_[address] = {size.value, Pin::kNotYet}; }
  // What pin_later() named is not registered any more, until the next of them.
  void unpin(uint64_t address);
  // Whether the driver can copy from and to there asynchronously. Registers what pin_later() named. What the driver
  // refuses to register is not an error: such copies are staged.
  bool pinned(uint64_t address, uint64_t bytes);

  // Leaves everything as it is, for a process that is about to end with work in flight.
  void abandon();

 private:
  enum class Pin { kNotYet, kPinned, kRefused };
  struct Range {
    uint64_t bytes;
    bool host;
    bool registered = false;  // with the driver
  };
  struct Pinnable {
    uint64_t bytes;
    Pin pin;
  };

  Status check_range(uint64_t address, uint64_t bytes) const;
  Status map_device(uint64_t address, uint64_t bytes, const Fd& memory);
  Status map_host(uint64_t address, uint64_t bytes, const Fd& memory);
  Status unmap_one(uint64_t address, const Range& range);
  bool covered(uint64_t address, uint64_t bytes) const;

  const Driver& driver_;
  const Shape shape_;
  const CUdevice device_;
  std::shared_ptr<AddressRange> range_;
  std::map<uint64_t, Range> mapped_;       // by address
  std::map<uint64_t, Pinnable> pinnable_;  // likewise
  std::set<uint64_t> unregistered_;        // of mapped_, host memory
};

}  // namespace heddle::cuda
