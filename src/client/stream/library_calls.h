#pragma once

#include "client/stream_ref.h"
#include "library/call.h"

// Calls of libraries that the worker makes for the program.
namespace heddle::client {

// In stream order, as GPU work: it begins the task like a launch, and needs of the device what library::demand() says.
// cudaErrorInvalidValue and cudaErrorNotSupported for arguments that make no sense or are not served. `open`: waits
// until the worker has made the library ready; cudaErrorInitializationError where it is not installed there, and the
// text says what is missing.
Done call_library(const StreamRef& stream, const library::Call& call, bool open);

// The part of call_library() that comes before the record: the arguments are checked, the task begins, the library is
// opened. A stream that captures does no more; each launch of its graph makes the call.
Done prepare_library_call(VirtualDevice& device, const library::Call& call, bool open);

// Charges what the driver takes for the library's code and its context. call_library() does it, too.
Done charge_library(VirtualDevice& device, library::Library library);

}  // namespace heddle::client
