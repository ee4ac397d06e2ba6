// What programs compiled by `heddle cc` call (include/heddle/task.h): declared tasks and early frees. None of it fails
// and none sets CUDA's last error: without a declaration the program runs as one that was not compiled by heddle.

#include <heddle/task.h>

#include <cstdio>
#include <cstdlib>

#include "client/graph/graph.h"
#include "client/launch.h"

namespace heddle::client {
namespace {

// More buffers than these of one size are left to the extensions: a count may come from a loop that breaks early.
constexpr uint64_t kMostBuffers = 4096;

// Tasks count over all devices and threads.
uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && *value != '0';
}

// HEDDLE_TASKS=1: a line for each declared task, at its end.
bool speaks() {
  static const bool wanted = is_set("HEDDLE_TASKS");
  return wanted;
}

// The compiler has seen every use of the buffer's pointer on the host. What it cannot see is a kernel that leaves the
// address in memory for another to follow: the code of all kernels says whether there may be one. And a CUDA graph
// may use the buffer at its every launch. HEDDLE_EAGER_FREE=1 frees early whatever they say, 0 never does.
bool frees_early(const VirtualDevice& device) {
  static const char* const wanted = std::getenv("HEDDLE_EAGER_FREE");
  if (wanted && *wanted) return *wanted != '0';
  if (Graph::any_made()) return false;
  const DeviceModel& model = device.model();
  return !runtime().registry.hides_addresses(10 * model.capability_major + model.capability_minor);
}

// Bodies of calls that have no answer: nothing they throw (allocation) gets out.
template <class Body>
void quietly(Body&& body) noexcept {
  try {
    body();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the program runs without what it said
  }
}

void need_launch(VirtualDevice& device, const heddle_launch& said) {
  auto function = prepared_function(said.kernel);
  if (!function) return;
  const image::KernelInfo& info = *(*function)->info.load(std::memory_order_acquire);
  const uint64_t blocks = uint64_t{said.grid[0]} * said.grid[1] * said.grid[2];
  const uint64_t threads = uint64_t{said.block[0]} * said.block[1] * said.block[2];
  // A shape that a guard would have kept from being launched says nothing.
  if (blocks == 0 || threads == 0 || threads > info.max_threads) return;
  const VirtualDevice::Lock lock(device.mutex);
  (void)device.task().launch(blocks, static_cast<uint32_t>(threads), info.registers,
                             static_cast<uint32_t>(info.static_shared + said.shared_bytes));
}

uint64_t begin(const heddle_task* task) {
  uint64_t number = 0;
  quietly([&] {
    if (!task || task->size < sizeof(heddle_task)) return;
    auto device = runtime().current_device();
    if (!device || !(*device)->failure()) return;
    number = next_number();
    (*device)->open_promises(number);
    for (uint64_t i = 0; i < task->buffer_count; ++i) {
      const heddle_buffer& buffer = task->buffers[i];
      for (uint64_t k = 0; k < std::min(buffer.count, kMostBuffers); ++k) (*device)->promise(number, buffer.bytes);
    }
    for (uint64_t i = 0; i < task->launch_count; ++i) need_launch(**device, task->launches[i]);
  });
  return number;
}

void end(uint64_t task) {
  quietly([&] {
    for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
      VirtualDevice* device = runtime().opened(i);
      const auto account = device ? device->close_promises(task) : std::nullopt;
      if (!account) continue;
      if (speaks())
        std::fprintf(stderr, "heddle: task %lu: declared %lu bytes, of which %lu were allocated, and %lu beside them\n",
                     static_cast<unsigned long>(task), static_cast<unsigned long>(account->declared),
                     static_cast<unsigned long>(account->taken), static_cast<unsigned long>(account->undeclared));
      return;
    }
  });
}

void free_early(void* buffer) {
  quietly([&] {
    const auto address = reinterpret_cast<uint64_t>(buffer);
    VirtualDevice* device = runtime().device_of(address);
    if (device && frees_early(*device)) device->release_early(address);
  });
}

constexpr heddle_task_functions kFunctions{HEDDLE_TASK_ABI, sizeof(heddle_task_functions), begin, end, free_early};

}  // namespace

HEDDLE_EXPORT const heddle_task_functions* heddle_task_api() {
  return &kFunctions;
}

}  // namespace heddle::client
