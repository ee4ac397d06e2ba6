#pragma once

#include <functional>
#include <optional>
#include <string>

#include "device/cuda/driver.h"
#include "device/device.h"

namespace heddle::cuda {

// Bytes that a copy or fill moves. kInvalidArgument where the count overflows.
Result<uint64_t> payload(const char* what, uint64_t width, uint64_t height, uint64_t depth);

// Whether a copy may touch these bytes.
using AddressCheck = std::function<bool(uint64_t address, uint64_t bytes)>;
// Names the first row that is not accessible.
std::optional<std::string> check_rows(const char* what, const device::CopyEnd& end, uint64_t width, uint64_t height,
                                      uint64_t depth, const AddressCheck& accessible);

// From the first to behind the last byte of an end.
uint64_t extent(const device::CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth);

// Rows, and slices, that follow each other without gaps at both ends are one long row.
device::CopyShape merged(device::CopyShape shape);

// Put the operation on the stream and return. Host ends must be registered memory, or the driver waits.
CUresult enqueue_copy(const Driver& driver, CUstream stream, device::CopyDirection direction,
                      const device::CopyShape& shape);
CUresult enqueue_fill(const Driver& driver, CUstream stream, const device::FillShape& shape);

// The processor copies, row by row.
void copy_on_host(const device::CopyShape& shape);

}  // namespace heddle::cuda
