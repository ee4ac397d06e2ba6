#pragma once

#include "core/address_map.h"
#include "device/software/program.h"
#include "device/software/simt/check/declared_access.h"

namespace heddle::software {

// What is mapped, each range as it was mapped.
struct MappedRange {};
using MappedRanges = AddressMap<MappedRange>;

// The read and write set that heddle would assume of a launch to run it again after a revocation: the mapped ranges
// that the kernel's parameters lead to, as far as its code reads or writes through them, and its module's variables.
// Everything where the kernel's effects are not known.
DeclaredAccess declared_access(const Program& program, const ProgramKernel& kernel,
                               std::span<const std::byte> parameters, const MappedRanges& mapped);

}  // namespace heddle::software
