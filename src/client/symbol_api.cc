// __device__ and __constant__ variables by their host addresses.

#include "client/copy.h"
#include "client/registry.h"

namespace heddle::client {
namespace {

struct Symbol {
  Variable* variable;
  uint32_t index;
};

Answer<Symbol> resolve_symbol(const void* host) {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  Variable* variable = runtime().registry.variable(host);
  if (!variable) return refuse(cudaErrorInvalidSymbol);
  auto index = variable->prepare(**session);
  if (!index) return tl::unexpected(std::move(index).error());
  return Symbol{variable, *index};
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

enum class Direction { kIn, kOut };

Done copy_symbol(const void* host, const void* other, size_t bytes, size_t offset, cudaMemcpyKind kind,
                 cudaStream_t stream, CopyMode mode, Direction direction) {
  const auto wrong = direction == Direction::kIn ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  if (kind == wrong || kind == cudaMemcpyHostToHost) return refuse(cudaErrorInvalidMemcpyDirection);
  auto resolved = resolve_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  auto symbol = part_of(host, offset, bytes, resolved->device);
  if (!symbol) return tl::unexpected(std::move(symbol).error());
  auto place = place_of(other, bytes, bytes);
  if (!place) return tl::unexpected(std::move(place).error());
  {
    // What the program wrote into a variable lives in the worker.
    const VirtualDevice::Lock lock(resolved->device->mutex);
    resolved->device->pin_worker();
  }
  const CopyShape shape{bytes, 1, 1};
  return direction == Direction::kIn ? copy(*resolved, *symbol, *place, shape, mode)
                                     : copy(*resolved, *place, *symbol, shape, mode);
}

// The worker writes the answer into the bulk area.
Answer<std::pair<uint64_t, uint64_t>> ask_address(VirtualDevice& device, const Symbol& symbol) {
  uint64_t position, sequence;
  {
    VirtualDevice::Lock lock(device.mutex);
    auto reserved = device.reserve_bulk(lock, 2 * sizeof(uint64_t));
    if (!reserved) return tl::unexpected(std::move(reserved).error());
    position = *reserved;
    HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
    auto record = device.reserve<protocol::SymbolRecord>(protocol::RecordType::kSymbol, 0);
    if (!record) return tl::unexpected(std::move(record).error());
    (*record)->module = symbol.variable->module->id();
    (*record)->index = symbol.index;
    (*record)->position = position;
    sequence = device.publish(0);
    device.pin_worker();
  }
  const Done done = device.synchronize_stream(0, sequence);
  uint64_t words[2];
  std::memcpy(words, device.bulk_at(position), sizeof words);
  const VirtualDevice::Lock lock(device.mutex);
  device.release_bulk(position, sequence);
  if (!done) return tl::unexpected(done.error());
  return std::pair(words[0], words[1]);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
  return answer(
      [&] { return copy_symbol(symbol, from, bytes, offset, kind, nullptr, CopyMode::kBlocking, Direction::kIn); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(
      [&] { return copy_symbol(symbol, from, bytes, offset, kind, stream, CopyMode::kAsync, Direction::kIn); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                               cudaMemcpyKind kind) {
  return answer(
      [&] { return copy_symbol(symbol, to, bytes, offset, kind, nullptr, CopyMode::kBlocking, Direction::kOut); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(
      [&] { return copy_symbol(symbol, to, bytes, offset, kind, stream, CopyMode::kAsync, Direction::kOut); });
}

HEDDLE_EXPORT cudaError_t cudaGetSymbolAddress(void** pointer, const void* host) {
  return answer([&]() -> Done {
    if (!pointer) return refuse(cudaErrorInvalidValue);
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto symbol = resolve_symbol(host);
    if (!symbol) return tl::unexpected(std::move(symbol).error());
    auto found = ask_address(**device, *symbol);
    if (!found) return tl::unexpected(std::move(found).error());
    const auto [address, bytes] = *found;
    remember_variable_address(*device, address, bytes, symbol->variable->module->id(), symbol->index);
    *pointer = reinterpret_cast<void*>(address);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGetSymbolSize(size_t* size, const void* host) {
  return answer([&]() -> Done {
    const Variable* variable = runtime().registry.variable(host);
    if (!size) return refuse(cudaErrorInvalidValue);
    if (!variable) return refuse(cudaErrorInvalidSymbol);
    *size = variable->size;
    return {};
  });
}

}  // namespace heddle::client
