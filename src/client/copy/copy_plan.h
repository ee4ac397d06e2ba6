#pragma once

#include "client/copy/places.h"
#include "client/registry.h"

// What the calls of cudaMemcpy's family mean: two places and a shape, checked as far as one can before anything runs.
namespace heddle::client {

struct CopyPlan {
  CopyPlace to, from;
  CopyShape shape;
};

// The direction that the program states must be possible.
Answer<CopyPlan> plan_places(const CopyPlace& to, const CopyPlace& from, const CopyShape& shape, cudaMemcpyKind kind);
Answer<CopyPlan> plan_linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
Answer<CopyPlan> plan_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                           cudaMemcpyKind kind);
Answer<CopyPlan> plan_box(const cudaMemcpy3DParms& p);
Answer<CopyPlan> plan_box(const cudaMemcpy3DPeerParms& p);

// Between bytes [offset, offset + bytes) of a variable, as it is on `device`, and other memory.
enum class SymbolEnd { kTo, kFrom };
Answer<CopyPlan> plan_symbol(const void* symbol, const void* other, size_t bytes, size_t offset, cudaMemcpyKind kind,
                             SymbolEnd end, VirtualDevice* device);

struct Symbol {
  Variable* variable;
  uint32_t index;
};
Answer<Symbol> resolve_symbol(const void* host);

}  // namespace heddle::client
