#pragma once

// What the variables of a program's modules held when its ring was quiet last: they lie in the worker's part of the
// device, which dies with it. The space lies behind the control page, in the same memfd: it outlives the worker, and no
// program sees it. Pages that nobody writes to cost nothing.
//
// Two areas in turns: a worker that dies while it saves leaves what was saved before. An area has the variables of the
// first `modules` modules that were loaded (ControlPage::module), one behind the other, as they were behind the record
// `sequence`. Which area counts says the control page's cut (LogState::variables_saved), so that it is the old one
// until the work that has written them is committed.
//
// Thread safety: one writer at a time.

#include <optional>
#include <span>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::protocol {

class SavedVariables {
 public:
  // `fd` is a control page's memory.
  static Result<SavedVariables> attach(const Fd& fd);

  // The area that does not hold what was saved at `counts`, as the page says. It holds nothing from now on.
  std::span<std::byte> begin(uint64_t counts) const;
  // That area holds the variables of that many modules now.
  void publish(uint64_t counts, uint64_t modules, uint64_t sequence) const;

  struct Saved {
    std::span<const std::byte> bytes;
    uint64_t modules = 0;
  };
  // What was saved behind that record; none: nothing was.
  std::optional<Saved> at(uint64_t sequence) const;

 private:
  struct Head;
  Head& head() const;
  size_t other_than(uint64_t counts) const;
  std::span<std::byte> area(size_t index) const;

  Mapping mapping_;
};

}  // namespace heddle::protocol
