#pragma once

#include "client/copy/places.h"
#include "client/stream_ref.h"

// Copies of every shape, from and to wherever the bytes are.
//
//   from \ to   pageable               pinned, device, variable
//   pageable    memcpy                 staged: returns when the payload lies in the bulk area
//   the others  staged: waits          one record; the worker sees both ends
//
// Large staged copies go in pieces, so that client and worker copy at the same time.
namespace heddle::client {

enum class CopyMode { kBlocking, kAsync };
// Copies in stream order, whatever is being captured. Blocking: the host may use both ends afterwards.
Done copy(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, CopyShape shape, CopyMode mode);

}  // namespace heddle::client
