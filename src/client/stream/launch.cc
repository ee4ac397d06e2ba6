// The launch path. Counted for one thread, everything warm, no worker asleep: about 120 instructions and four cache
// misses at most, next to two uncontended lock operations and one atomic addition (the worker's bell):
//   3 loads   session and device, through thread-local current device and context
//   2 loads   whether any stream captures, whether the device has side devices (submit.h)
//   2 loads   fault and binding words of the ring's header
//   1 load    whether the device has managed memory
//   1 load    whether the kernel's local memory is charged (on a GPU two more, of what its module needs; where that has
//             a heap or large variables, two uncontended lock operations and a look at five sums)
//   ~25       comparisons of the shape with the device's and the kernel's limits
//   1 lock    the device's
//   ~30       space in the ring, the record's header
//   ~10 + p   the record's fields, p parameters copied straight into the ring
//   1 add     publish() rings the bell; a system call only if the worker sleeps
// No allocation. bench/ measures it.

#include "client/stream/launch.h"

#include <vector>

#include "client/device/driver_needs.h"
#include "client/stream/stream_attributes.h"
#include "core/occupancy.h"

namespace heddle::client {

using protocol::LaunchRecord;
using protocol::RecordType;

namespace {

constexpr unsigned kMaxGridX = 0x7fffffff, kMaxGridY = 65535, kMaxGridZ = 65535;
constexpr unsigned kMaxBlockXY = 1024, kMaxBlockZ = 64;

bool is_possible(const LaunchShape& shape, const DeviceModel& model) {
  const auto& [gx, gy, gz] = shape.grid;
  const auto& [bx, by, bz] = shape.block;
  if (gx - 1 >= kMaxGridX || gy - 1 >= kMaxGridY || gz - 1 >= kMaxGridZ) return false;
  if (bx - 1 >= kMaxBlockXY || by - 1 >= kMaxBlockXY || bz - 1 >= kMaxBlockZ) return false;
  return uint64_t{bx} * by * bz <= model.max_threads_per_block;
}

Done check_shape(const Function& function, const image::KernelInfo& info, const LaunchShape& shape,
                 const DeviceModel& model) {
  if (!is_possible(shape, model)) return refuse(cudaErrorInvalidConfiguration);
  const uint32_t threads = shape.block.x * shape.block.y * shape.block.z;
  if (threads > info.max_threads) return refuse(cudaErrorInvalidValue);
  if (!registers_fit(info.registers, threads, model)) return refuse(cudaErrorLaunchOutOfResources);
  const uint32_t attribute = function.max_dynamic_shared.load(std::memory_order_relaxed);
  const uint64_t shared = info.static_shared + shape.shared_bytes;
  if (shared <= model.shared_bytes_per_block) return {};
  return shape.shared_bytes <= attribute && shared <= model.shared_bytes_per_block_optin
             ? Done{}
             : refuse(cudaErrorInvalidValue);
}

// All blocks of a cooperative launch must be resident at once.
Done check_cooperative(const image::KernelInfo& info, const LaunchShape& shape, const DeviceModel& model) {
  const BlockNeed need{shape.block.x * shape.block.y * shape.block.z, info.registers,
                       info.static_shared + shape.shared_bytes};
  const uint64_t resident = uint64_t{blocks_per_sm(need, model)} * model.sms;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  return blocks <= resident ? Done{} : refuse(cudaErrorCooperativeLaunchTooLarge);
}

void fill(LaunchRecord& record, const Function& function, const image::KernelInfo& info, const LaunchShape& shape,
          void** arguments) {
  record.module = function.module->id();
  record.kernel = function.index.load(std::memory_order_relaxed);
  const dim3 &grid = shape.grid, &block = shape.block;
  record.grid[0] = grid.x, record.grid[1] = grid.y, record.grid[2] = grid.z;
  record.block[0] = block.x, record.block[1] = block.y, record.block[2] = block.z;
  record.dynamic_shared_bytes = static_cast<uint32_t>(shape.shared_bytes);
  record.parameter_bytes = info.parameter_bytes;
  record.cooperative = shape.cooperative;
  record.reserved = 0;
  auto* const parameters = reinterpret_cast<char*>(&record + 1);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const auto [offset, size] = info.parameters[i];
    // Nearly all parameters are words: a copy of known size is one move.
    if (size == 8) {
      std::memcpy(parameters + offset, arguments[i], 8);
    } else if (size == 4) {
      std::memcpy(parameters + offset, arguments[i], 4);
    } else {
      std::memcpy(parameters + offset, arguments[i], size);
    }
  }
}

// Returns the record's sequence.
Answer<uint64_t> append_launch(const StreamRef& stream, Function& function, const LaunchShape& shape,
                               void** arguments) {
  VirtualDevice& device = *stream.device;
  const image::KernelInfo& info = *function.info.load(std::memory_order_acquire);
  const VirtualDevice::Lock lock = device.lock();
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  HEDDLE_ANSWER(device.task().launch(blocks, shape.block.x * shape.block.y * shape.block.z, info.registers,
                                     static_cast<uint32_t>(info.static_shared + shape.shared_bytes)));
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
  auto record = device.reserve<LaunchRecord>(RecordType::kLaunch, stream.slot, info.parameter_bytes);
  if (!record) [[unlikely]]
    return tl::unexpected(std::move(record).error());
  fill(**record, function, info, shape, arguments);
  const uint64_t sequence = device.publish(stream.slot);
  device.limits().uses(function.module->info().allocates, function.module->info().prints);
  // A task on a side device has nothing to do with variables, nor with what kernels allocate.
  const bool leaves_something =
      function.module->has_mutable_variables.load(std::memory_order_relaxed) || function.module->info().allocates;
  if (leaves_something && !device.is_side_device()) device.task().pin_worker();
  return sequence;
}

// Values that lie in managed memory are touched before the device has it, and without its lock.
void copy_managed(const image::KernelInfo& info, void** arguments, std::vector<char>& values) {
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    if (!runtime().in_window(reinterpret_cast<uint64_t>(arguments[i]))) continue;
    if (values.empty()) values.resize(info.parameter_bytes);
    const auto [offset, size] = info.parameters[i];
    arguments[i] = std::memcpy(values.data() + offset, arguments[i], size);
  }
}

Done launch_with_managed(const StreamRef& stream, Function& function, const LaunchShape& shape, void** arguments) {
  const image::KernelInfo& info = *function.info.load(std::memory_order_acquire);
  std::vector<void*> own(info.parameters.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = arguments[i];  // the list may lie there, too
  std::vector<char> values;
  copy_managed(info, own.data(), values);
  ManagedMemory& managed = runtime().managed_memory();
  const ManagedMemory::Stream in{*stream.device, stream.slot};
  const ManagedMemory::Submission submission(managed);
  HEDDLE_ANSWER(managed.before_kernel(in));
  const auto launched = append_launch(stream, function, shape, own.data());
  if (launched) stream.device->recent_launches().note(stream.slot, *launched, function.name.c_str());
  managed.after_kernel(in);
  return launched ? Done{} : Done(tl::unexpected(launched.error()));
}

}  // namespace

Answer<Function*> prepared_function(const void* key) {
  Function* function = runtime().registry.function(key);
  if (!function) [[unlikely]]
    return refuse(cudaErrorInvalidDeviceFunction);
  if (!function->info.load(std::memory_order_acquire)) [[unlikely]] {
    auto session = runtime().session();
    if (!session) return tl::unexpected(std::move(session).error());
    HEDDLE_ANSWER(function->prepare(**session));
  }
  return function;
}

Answer<char*> packed_parameters(void** extra, uint32_t bytes) {
  constexpr uintptr_t kBuffer = 1, kSize = 2;
  char* buffer = nullptr;
  size_t size = 0;
  for (; *extra; extra += 2) {
    const auto key = reinterpret_cast<uintptr_t>(extra[0]);
    if (key == kBuffer) {
      buffer = static_cast<char*>(extra[1]);
    } else if (key == kSize) {
      size = *static_cast<const size_t*>(extra[1]);
    } else {
      return refuse(cudaErrorInvalidValue);
    }
  }
  if ((!buffer && bytes > 0) || size < bytes) return refuse(cudaErrorInvalidValue);
  return buffer;
}

bool is_hint(int attribute) {
  constexpr int kAccessPolicyWindow = 1, kSynchronizationPolicy = 3, kMemSyncDomainMap = 9, kMemSyncDomain = 10;
  return attribute == kAccessPolicyWindow || attribute == kSynchronizationPolicy || attribute == kMemSyncDomainMap ||
         attribute == kMemSyncDomain;
}

Done apply_attribute(const cudaLaunchAttribute& attribute, LaunchShape& shape) {
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeProgrammaticStreamSerialization:  // leave to begin early, of which no use is made
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
      return {};
    case cudaLaunchAttributeCooperative:
      shape.cooperative = attribute.val.cooperative != 0;
      return {};
    case cudaLaunchAttributeClusterDimension: {
      const auto& [x, y, z] = attribute.val.clusterDim;
      if (x <= 1 && y <= 1 && z <= 1) return {};
      return refuse(cudaErrorNotSupported, "launches in thread block clusters are not supported");
    }
  }
  if (is_hint(attribute.id)) return {};
  return refuse(cudaErrorNotSupported, stringf("launch attribute %d is not supported", static_cast<int>(attribute.id)));
}

Done check_launch(const Function& function, const LaunchShape& shape, const VirtualDevice& device) {
  const image::KernelInfo& info = *function.info.load(std::memory_order_acquire);
  HEDDLE_ANSWER(device.failure());
  HEDDLE_ANSWER(check_shape(function, info, shape, device.model()));
  return shape.cooperative ? check_cooperative(info, shape, device.model()) : Done{};
}

Done launch_on(const StreamRef& stream, Function& function, const LaunchShape& shape, void** arguments) {
  HEDDLE_ANSWER(check_launch(function, shape, *stream.device));
  HEDDLE_ANSWER(charge_launch(*stream.device, function));
  if (runtime().managed_memory().any()) [[unlikely]]
    return launch_with_managed(stream, function, shape, arguments);
  auto launched = append_launch(stream, function, shape, arguments);
  return launched ? Done{} : Done(tl::unexpected(std::move(launched).error()));
}

}  // namespace heddle::client
