#pragma once

#include "client/device/virtual_device.h"

// Where the bytes of copies and fills lie.
namespace heddle::client {

// One end of a copy.
struct CopyPlace {
  enum Kind { kPageable, kPinned, kDevice, kVariable };
  Kind kind = kPageable;
  uint64_t address = 0;  // kVariable: offset into it
  uint64_t pitch = 0, slice = 0;
  VirtualDevice* device = nullptr;    // kDevice: whose memory
  uint32_t module = 0, variable = 0;  // kVariable
  bool managed = false;               // kDevice: managed memory, which the host may use too
  bool in_array = false;              // kDevice: of a CUDA array, of which the worker may keep a copy

  bool on_device() const { return kind == kDevice || kind == kVariable; }
  bool in_window() const { return kind != kPageable; }
};

// Bytes a row, rows a slice, slices.
struct CopyShape {
  uint64_t width = 0, height = 1, depth = 1;
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

// What lies at `pointer`. cudaErrorInvalidValue where device memory is meant and there is none.
Answer<CopyPlace> place_of(const void* pointer, uint64_t pitch = 0, uint64_t slice = 0);

// The addresses that cudaGetSymbolAddress gave out lie outside the window: copies from and to them name the variable.
void remember_variable_address(VirtualDevice* device, uint64_t address, uint64_t bytes, uint32_t module,
                               uint32_t variable);
// The variable that such an address lies in.
struct VariableAddress {
  uint64_t address = 0, bytes = 0;
  VirtualDevice* device = nullptr;
};
std::optional<VariableAddress> variable_range_at(uint64_t address);

}  // namespace heddle::client
