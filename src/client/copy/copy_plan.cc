#include "client/copy/copy_plan.h"

#include "client/copy/arrays.h"
#include "client/device/driver_needs.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

// CUDA takes the direction from the pointers too; a stated one must be possible.
Done check_kind(cudaMemcpyKind kind, const CopyPlace& to, const CopyPlace& from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return (to.on_device() && !to.managed) || (from.on_device() && !from.managed) ? refuse(cudaErrorInvalidValue)
                                                                                    : Done{};
    case cudaMemcpyHostToDevice:
      return to.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDeviceToHost:
      return from.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDeviceToDevice:
      return to.in_window() && from.in_window() ? Done{} : refuse(cudaErrorInvalidValue);
    case cudaMemcpyDefault:
      return {};
  }
  return refuse(cudaErrorInvalidMemcpyDirection);
}

struct Ends {
  const void* to;
  uint64_t to_pitch, to_slice;
  const void* from;
  uint64_t from_pitch, from_slice;
};

Answer<CopyPlan> plan(const Ends& ends, const CopyShape& shape, cudaMemcpyKind kind) {
  if (shape.empty()) return CopyPlan{{}, {}, shape};
  if (!ends.to || !ends.from) return refuse(cudaErrorInvalidValue);
  auto to = place_of(ends.to, ends.to_pitch, ends.to_slice);
  if (!to) return tl::unexpected(std::move(to).error());
  auto from = place_of(ends.from, ends.from_pitch, ends.from_slice);
  if (!from) return tl::unexpected(std::move(from).error());
  return plan_places(*to, *from, shape, kind);
}

// One end of cudaMemcpy3D: an array, whose elements x and the width count, or memory, of which they count bytes.
struct BoxEnd {
  cudaArray_t array;
  cudaPos at;
  cudaPitchedPtr memory;
};

Answer<CopyPlace> place_of_box(const BoxEnd& end, const std::optional<Array>& array, const CopyShape& shape) {
  if (array) return place_in(*array, {end.at.x * array->layout.texel_bytes(), end.at.y, end.at.z}, shape);
  const auto& [pointer, pitch, row, rows] = end.memory;
  if (!pointer) return refuse(cudaErrorInvalidValue);
  if (shape.width + end.at.x > pitch) return refuse(cudaErrorInvalidPitchValue);
  return place_of(static_cast<const char*>(pointer) + (end.at.z * rows + end.at.y) * pitch + end.at.x, pitch,
                  pitch * rows);
}

Answer<std::optional<Array>> array_of(cudaArray_t handle) {
  if (!handle) return std::nullopt;
  auto array = arrays().find(handle);
  if (!array) return tl::unexpected(std::move(array).error());
  return std::optional(*array);
}

template <class Parameters>
Answer<CopyPlan> plan_box_of(const Parameters& p, cudaMemcpyKind kind) {
  const BoxEnd to{p.dstArray, p.dstPos, p.dstPtr}, from{p.srcArray, p.srcPos, p.srcPtr};
  auto to_array = array_of(to.array), from_array = array_of(from.array);
  if (!to_array) return tl::unexpected(std::move(to_array).error());
  if (!from_array) return tl::unexpected(std::move(from_array).error());
  const std::optional<Array>& counts = *to_array ? *to_array : *from_array;
  const uint64_t element = counts ? counts->layout.texel_bytes() : 1;
  if (*from_array && (*from_array)->layout.texel_bytes() != element) return refuse(cudaErrorInvalidValue);
  const CopyShape shape{p.extent.width * element, p.extent.height, p.extent.depth};
  if (shape.empty()) return CopyPlan{{}, {}, shape};
  auto target = place_of_box(to, *to_array, shape), source = place_of_box(from, *from_array, shape);
  if (!target) return tl::unexpected(std::move(target).error());
  if (!source) return tl::unexpected(std::move(source).error());
  return plan_places(*target, *source, shape, kind);
}

// Bytes [offset, offset + bytes) of the variable, on the stream's device.
Answer<CopyPlace> part_of(const Symbol& symbol, size_t offset, size_t bytes, VirtualDevice* device) {
  const size_t size = symbol.variable->size;
  if (offset > size || bytes > size - offset) return refuse(cudaErrorInvalidValue);
  CopyPlace place;
  place.kind = CopyPlace::kVariable;
  place.address = offset;
  place.pitch = place.slice = bytes;
  place.device = device;
  place.module = symbol.variable->module->id();
  place.variable = symbol.index;
  return place;
}

}  // namespace

Answer<CopyPlan> plan_places(const CopyPlace& to, const CopyPlace& from, const CopyShape& shape, cudaMemcpyKind kind) {
  if (!shape.empty()) HEDDLE_ANSWER(check_kind(kind, to, from));
  return CopyPlan{to, from, shape};
}

Answer<CopyPlan> plan_linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return plan({to, bytes, bytes, from, bytes, bytes}, {bytes, 1, 1}, kind);
}

Answer<CopyPlan> plan_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                           cudaMemcpyKind kind) {
  if (height > 1 && (width > to_pitch || width > from_pitch)) return refuse(cudaErrorInvalidPitchValue);
  return plan({to, to_pitch, to_pitch * height, from, from_pitch, from_pitch * height}, {width, height, 1}, kind);
}

Answer<CopyPlan> plan_box(const cudaMemcpy3DParms& p) {
  return plan_box_of(p, p.kind);
}

Answer<CopyPlan> plan_box(const cudaMemcpy3DPeerParms& p) {
  return plan_box_of(p, cudaMemcpyDefault);
}

Answer<Symbol> resolve_symbol(const void* host) {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  Variable* variable = runtime().registry.variable(host);
  if (!variable) return refuse(cudaErrorInvalidSymbol);
  auto index = variable->prepare(**session);
  if (!index) return tl::unexpected(std::move(index).error());
  return Symbol{variable, *index};
}

Answer<CopyPlan> plan_symbol(const void* symbol, const void* other, size_t bytes, size_t offset, cudaMemcpyKind kind,
                             SymbolEnd end, VirtualDevice* device) {
  const auto wrong = end == SymbolEnd::kTo ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  if (kind == wrong || kind == cudaMemcpyHostToHost) return refuse(cudaErrorInvalidMemcpyDirection);
  auto known = resolve_symbol(symbol);
  if (!known) return tl::unexpected(std::move(known).error());
  HEDDLE_ANSWER(charge_module(*device, *known->variable->module));
  auto part = part_of(*known, offset, bytes, device);
  if (!part) return tl::unexpected(std::move(part).error());
  auto place = place_of(other, bytes, bytes);
  if (!place) return tl::unexpected(std::move(place).error());
  {
    // What the program wrote into a variable lives in the worker.
    const VirtualDevice::Lock lock = device->lock();
    device->task().pin_worker();
  }
  const CopyShape shape{bytes, 1, 1};
  return end == SymbolEnd::kTo ? CopyPlan{*part, *place, shape} : CopyPlan{*place, *part, shape};
}

}  // namespace heddle::client
