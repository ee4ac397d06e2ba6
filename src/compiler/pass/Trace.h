#pragma once

// Which allocations a device pointer may come from.

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstrTypes.h"
#include <string>

namespace heddle::compiler {

// A heddle_malloc call.
using Allocation = llvm::CallBase;
using Allocations = llvm::SmallSetVector<Allocation *, 4>;

struct Traced {
  Allocations Roots;
  std::string Unknown; // why it is not all; empty: the roots are all there is
  bool Host = false;   // or an address of host memory

  bool complete() const { return Unknown.empty(); }
  void giveUp(const llvm::Twine &Why) {
    if (Unknown.empty())
      Unknown = Why.str();
  }
};

// Follows a pointer back through phis, selects, offsets and local variables that nobody else can write to.
void tracePointer(llvm::Value *Pointer, Traced &Result);

// Every pointer in the memory that `Address` points to, for a struct that a kernel takes by value.
void traceContents(llvm::Value *Address, Traced &Result);

// Whether every use of the allocation's pointer is known: an operation of the runtime, a kernel's parameter, or a local
// variable. Else something else may hold a copy of it.
bool isClosed(Allocation *Root);

// Whether the pointer is only ever used as it came: not merged with others, and never stored.
bool isUsedDirectly(Allocation *Root);

} // namespace heddle::compiler
