// __device__ and __constant__ variables by their host addresses.

#include "client/api/submit.h"
#include "client/device/driver_needs.h"
#include "client/registry.h"

namespace heddle::client {
namespace {

Done copy_symbol(const void* host, const void* other, size_t bytes, size_t offset, cudaMemcpyKind kind,
                 cudaStream_t stream, CopyMode mode, SymbolEnd end) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  HEDDLE_ANSWER(resolved->device->failure());
  auto plan = plan_symbol(host, other, bytes, offset, kind, end, resolved->device);
  if (!plan) return tl::unexpected(std::move(plan).error());
  return submit_copy(*resolved, *plan, mode);
}

// The worker writes the answer into the bulk area.
Answer<std::pair<uint64_t, uint64_t>> ask_address(VirtualDevice& device, const Symbol& symbol) {
  uint64_t position, sequence;
  {
    VirtualDevice::Lock lock = device.lock();
    auto reserved = device.task().reserve_bulk(lock, 2 * sizeof(uint64_t));
    if (!reserved) return tl::unexpected(std::move(reserved).error());
    position = *reserved;
    HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
    auto record = device.reserve<protocol::SymbolRecord>(protocol::RecordType::kSymbol, 0);
    if (!record) return tl::unexpected(std::move(record).error());
    (*record)->module = symbol.variable->module->id();
    (*record)->index = symbol.index;
    (*record)->position = position;
    sequence = device.publish(0);
    device.task().pin_worker();
  }
  const Done done = device.synchronize_stream(0, sequence);
  uint64_t words[2];
  std::memcpy(words, device.ring().bulk_at(position), sizeof words);
  const VirtualDevice::Lock lock = device.lock();
  device.ring().release_bulk(position, sequence);
  if (!done) return tl::unexpected(done.error());
  return std::pair(words[0], words[1]);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
  return answer(
      [&] { return copy_symbol(symbol, from, bytes, offset, kind, nullptr, CopyMode::kBlocking, SymbolEnd::kTo); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(
      [&] { return copy_symbol(symbol, from, bytes, offset, kind, stream, CopyMode::kAsync, SymbolEnd::kTo); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                               cudaMemcpyKind kind) {
  return answer(
      [&] { return copy_symbol(symbol, to, bytes, offset, kind, nullptr, CopyMode::kBlocking, SymbolEnd::kFrom); });
}

HEDDLE_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return answer(
      [&] { return copy_symbol(symbol, to, bytes, offset, kind, stream, CopyMode::kAsync, SymbolEnd::kFrom); });
}

HEDDLE_EXPORT cudaError_t cudaGetSymbolAddress(void** pointer, const void* host) {
  return answer([&]() -> Done {
    if (!pointer) return refuse(cudaErrorInvalidValue);
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto symbol = resolve_symbol(host);
    if (!symbol) return tl::unexpected(std::move(symbol).error());
    HEDDLE_ANSWER(charge_module(**device, *symbol->variable->module));
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
