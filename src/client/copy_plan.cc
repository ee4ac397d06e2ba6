#include "client/copy_plan.h"

namespace heddle::client {
namespace {

// CUDA takes the direction from the pointers too; a stated one must be possible.
Done check_kind(cudaMemcpyKind kind, const CopyPlace& to, const CopyPlace& from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to.on_device() || from.on_device() ? refuse(cudaErrorInvalidValue) : Done{};
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
  HEDDLE_ANSWER(check_kind(kind, *to, *from));
  return CopyPlan{*to, *from, shape};
}

const void* box_start(const cudaPitchedPtr& base, const cudaPos& at) {
  return static_cast<const char*>(base.ptr) + (at.z * base.ysize + at.y) * base.pitch + at.x;
}

// Without arrays, x and width count bytes.
template <class Parameters>
Answer<CopyPlan> plan_box_of(const Parameters& p, cudaMemcpyKind kind) {
  if (p.srcArray || p.dstArray) return refuse(cudaErrorNotSupported, "copies of CUDA arrays are not supported");
  const auto& [width, height, depth] = p.extent;
  const CopyShape shape{width, height, depth};
  if (shape.empty()) return CopyPlan{{}, {}, shape};
  if (!p.srcPtr.ptr || !p.dstPtr.ptr) return refuse(cudaErrorInvalidValue);
  if (width + p.srcPos.x > p.srcPtr.pitch || width + p.dstPos.x > p.dstPtr.pitch)
    return refuse(cudaErrorInvalidPitchValue);
  return plan({box_start(p.dstPtr, p.dstPos), p.dstPtr.pitch, p.dstPtr.pitch * p.dstPtr.ysize,
               box_start(p.srcPtr, p.srcPos), p.srcPtr.pitch, p.srcPtr.pitch * p.srcPtr.ysize},
              shape, kind);
}

// Bytes [offset, offset + bytes) of the variable, on the stream's device.
Answer<CopyPlace> part_of(const void* host, size_t offset, size_t bytes, VirtualDevice* device) {
  auto symbol = resolve_symbol(host);
  if (!symbol) return tl::unexpected(std::move(symbol).error());
  const size_t size = symbol->variable->size;
  if (offset > size || bytes > size - offset) return refuse(cudaErrorInvalidValue);
  CopyPlace place;
  place.kind = CopyPlace::kVariable;
  place.address = offset;
  place.pitch = place.slice = bytes;
  place.device = device;
  place.module = symbol->variable->module->id();
  place.variable = symbol->index;
  return place;
}

}  // namespace

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
  auto part = part_of(symbol, offset, bytes, device);
  if (!part) return tl::unexpected(std::move(part).error());
  auto place = place_of(other, bytes, bytes);
  if (!place) return tl::unexpected(std::move(place).error());
  {
    // What the program wrote into a variable lives in the worker.
    const VirtualDevice::Lock lock(device->mutex);
    device->pin_worker();
  }
  const CopyShape shape{bytes, 1, 1};
  return end == SymbolEnd::kTo ? CopyPlan{*part, *place, shape} : CopyPlan{*place, *part, shape};
}

}  // namespace heddle::client
