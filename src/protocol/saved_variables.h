#pragma once

// What the variables of a program's modules held when its ring was quiet last: they lie in the worker's part of the
// device, which dies with it. The space lies behind the control page, in the same memfd: it outlives the worker, and no
// program sees it. Pages that nobody writes to cost nothing.
//
// Two areas in turns: a worker that dies while it saves leaves what was saved before. An area has the variables of the
// first `modules` modules that were loaded (ControlPage::module), one behind the other.
//
// Thread safety: one writer at a time.

#include <span>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::protocol {

class SavedVariables {
 public:
  // `fd` is a control page's memory.
  static Result<SavedVariables> attach(const Fd& fd);

  // The area that holds nothing that counts.
  std::span<std::byte> next() const { return area(number() + 1); }
  // It holds the variables of that many modules now.
  void publish(uint64_t modules);
  std::span<const std::byte> latest() const { return area(number()); }
  uint64_t modules() const;
  bool any() const { return number() != 0; }

 private:
  struct Head;
  Head& head() const;
  uint64_t number() const;
  std::span<std::byte> area(uint64_t number) const;

  Mapping mapping_;
};

}  // namespace heddle::protocol
