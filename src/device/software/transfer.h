#pragma once

#include <functional>
#include <optional>
#include <string>

#include "device/device.h"

namespace heddle::software {

// Says whether all of [address, address + bytes) may be touched. Host addresses may: whoever issues a copy vouches for
// those.
using AddressCheck = std::function<bool(uint64_t address, uint64_t bytes)>;

// Bytes that the shape moves or writes.
uint64_t payload(const device::CopyShape& shape);
uint64_t payload(const device::FillShape& shape);

// Calls visit(address, bytes) for every row of what is written.
void visit_rows(const device::CopyEnd& to, uint64_t width, uint64_t height, uint64_t depth,
                const std::function<void(uint64_t, uint64_t)>& visit);

// Moves the bytes. Every row is checked before the first is written; returns what is wrong with the first bad one, and
// then nothing has been written. Overlapping ends give one of the two contents at the overlap.
std::optional<std::string> run_copy(const device::CopyShape& shape, device::CopyDirection direction,
                                    const AddressCheck& accessible);

// Writes the value over every row. A width that is no multiple of the element is rounded down to one.
std::optional<std::string> run_fill(const device::FillShape& shape, const AddressCheck& accessible);

}  // namespace heddle::software
