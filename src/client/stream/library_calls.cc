#include "client/stream/library_calls.h"

#include <cstring>

namespace heddle::client {
namespace {

// The worker writes the answer into the bulk area.
Answer<protocol::LibraryOpened> ask(VirtualDevice& device, library::Library library) {
  uint64_t position, sequence;
  {
    VirtualDevice::Lock lock = device.lock();
    auto reserved = device.task().reserve_bulk(lock, sizeof(protocol::LibraryOpened));
    if (!reserved) return tl::unexpected(std::move(reserved).error());
    position = *reserved;
    HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
    auto record = device.reserve<protocol::LibraryOpenRecord>(protocol::RecordType::kLibraryOpen, 0);
    if (!record) return tl::unexpected(std::move(record).error());
    (*record)->library = static_cast<uint32_t>(library);
    (*record)->position = position;
    sequence = device.publish(0);
  }
  const Done done = device.synchronize_stream(0, sequence);
  protocol::LibraryOpened opened;
  std::memcpy(&opened, device.ring().bulk_at(position), sizeof opened);
  const VirtualDevice::Lock lock = device.lock();
  device.ring().release_bulk(position, sequence);
  if (!done) return tl::unexpected(done.error());
  return opened;
}

Done open_library(VirtualDevice& device, library::Library library) {
  auto opened = ask(device, library);
  if (!opened) return tl::unexpected(std::move(opened).error());
  if (opened->cuda_error == 0) return {};
  opened->text[sizeof opened->text - 1] = 0;
  return refuse(cudaErrorInitializationError, opened->text);
}

// Returns the record's sequence.
Answer<uint64_t> append_call(const StreamRef& stream, const library::Call& call) {
  VirtualDevice& device = *stream.device;
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
  const size_t bytes = call.words.size_bytes();
  auto record = device.reserve<protocol::LibraryCallRecord>(protocol::RecordType::kLibraryCall, stream.slot, bytes);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->library = static_cast<uint32_t>(call.library);
  (*record)->function = call.function;
  (*record)->words = static_cast<uint32_t>(call.words.size());
  (*record)->reserved = 0;
  std::memcpy(*record + 1, call.words.data(), bytes);
  return device.publish(stream.slot);
}

}  // namespace

// That of cuRAND is not worth counting.
Done charge_library(VirtualDevice& device, library::Library library) {
  if (library != library::Library::kCublas) return {};
  return device.memory().charge_driver(DriverCharges::Part::kLibrary, static_cast<uint32_t>(library),
                                       DriverCharges::kCublasBytes, "cuBLAS");
}

Done prepare_library_call(VirtualDevice& device, const library::Call& call, bool open) {
  const auto demand = library::demand(call);
  if (!demand && demand.error().code == ErrorCode::kNotSupported)
    return refuse(cudaErrorNotSupported, demand.error().text);
  if (!demand) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(device.failure());
  {
    const VirtualDevice::Lock lock = device.lock();
    HEDDLE_ANSWER(device.task().launch(demand->blocks, library::Demand::kThreads, library::Demand::kRegisters, 0));
  }
  HEDDLE_ANSWER(charge_library(device, call.library));
  return open ? open_library(device, call.library) : Done{};
}

Done call_library(const StreamRef& stream, const library::Call& call, bool open) {
  VirtualDevice& device = *stream.device;
  HEDDLE_ANSWER(prepare_library_call(device, call, open));
  ManagedMemory& managed = runtime().managed_memory();
  const ManagedMemory::Stream in{device, stream.slot};
  const ManagedMemory::Submission submission(managed);
  HEDDLE_ANSWER(managed.before_kernel(in));
  const auto called = append_call(stream, call);
  if (called && managed.any()) device.recent_launches().note(stream.slot, *called, library::name_of(call));
  managed.after_kernel(in);
  return called ? Done{} : Done(tl::unexpected(called.error()));
}

}  // namespace heddle::client
