// What programs compiled by `heddle cc` call (include/heddle/task.h): declared tasks and early frees. None of it fails
// and none sets CUDA's last error: without a declaration the program runs as one that was not compiled by heddle.

#include <heddle/task.h>

#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "client/graph/graph.h"
#include "client/stream/apart.h"
#include "client/stream/launch.h"

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
  const VirtualDevice::Lock lock = device.lock();
  (void)device.task().launch(blocks, static_cast<uint32_t>(threads), info.registers,
                             static_cast<uint32_t>(info.static_shared + said.shared_bytes));
}

// What tells a launch's kernel from one that could meet others' work: its code touches nothing but what the compiler
// has seen parameters for. Device malloc and printf are the device's.
bool keeps_to_its_buffers(const heddle_launch& said, uint64_t pointers, uint32_t arch) {
  auto function = prepared_function(said.kernel);
  if (!function || pointers == 0) return false;
  ProgramModule& module = *(*function)->module;
  const image::KernelEffects* effects = module.effects((*function)->name, arch);
  const size_t parameters = (*function)->info.load(std::memory_order_acquire)->parameters.size();
  return effects && effects->unknown.empty() && !effects->follows_memory && !effects->writes_anything &&
         !effects->touches_variables && (effects->accessed & ~pointers) == 0 &&
         static_cast<size_t>(std::bit_width(pointers)) == parameters + 1 && !module.info().allocates &&
         !module.info().prints;
}

// Graphs and limits are the device's; neither is carried over to a side device.
bool may_run_apart(const heddle_task& task, VirtualDevice& device) {
  if (task.size < sizeof(heddle_task) || !(task.flags & HEDDLE_TASK_APART) || !task.pointers) return false;
  if (device.session().welcome().side_device_count == 0 || Graph::any_made() || !device.limits().are_default())
    return false;
  const uint32_t arch = 10 * device.model().capability_major + device.model().capability_minor;
  for (uint64_t i = 0; i < task.launch_count; ++i) {
    if (!keeps_to_its_buffers(task.launches[i], task.pointers[i], arch)) return false;
  }
  return true;
}

void announce(const heddle_task& task, uint64_t number, VirtualDevice& device) {
  device.memory().open_promises(number);
  for (uint64_t i = 0; i < task.buffer_count; ++i) {
    const heddle_buffer& buffer = task.buffers[i];
    for (uint64_t k = 0; k < std::min(buffer.count, kMostBuffers); ++k) device.memory().promise(number, buffer.bytes);
  }
  for (uint64_t i = 0; i < task.launch_count; ++i) need_launch(device, task.launches[i]);
}

// On a side device, if there is one and heddled gives it a device at once; else false, and nothing has happened.
bool announce_apart(const heddle_task& task, uint64_t number, VirtualDevice& device) {
  if (!may_run_apart(task, device)) return false;
  VirtualDevice* const side = apart_tasks().open(number, device);
  if (!side) return false;
  announce(task, number, *side);
  const auto begun = device.begin_apart(*side);
  if (begun && *begun) return true;
  side->memory().take_back_promises(number);
  apart_tasks().stay_home(number, device);
  return false;
}

uint64_t begin(const heddle_task* task) {
  uint64_t number = 0;
  quietly([&] {
    if (!task || task->size < offsetof(heddle_task, pointers)) return;
    auto device = runtime().current_device();
    if (!device || !(*device)->failure()) return;
    number = next_number();
    if (!announce_apart(*task, number, **device)) announce(*task, number, **device);
  });
  return number;
}

void enter(uint64_t task) {
  quietly([&] { apart_tasks().enter(task); });
}

void leave() {
  quietly([&] { ApartTasks::leave(); });
}

void end(uint64_t task) {
  quietly([&] {
    apart_tasks().close(task);
    for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
      VirtualDevice* device = runtime().opened(i);
      const auto account = device ? device->memory().close_promises(task) : std::nullopt;
      if (!account) continue;
      if (speaks())
        std::fprintf(stderr, "heddle: task %lu: declared %lu bytes, of which %lu were allocated, and %lu beside them\n",
                     static_cast<unsigned long>(task), static_cast<unsigned long>(account->declared),
                     static_cast<unsigned long>(account->taken), static_cast<unsigned long>(account->undeclared));
      return;
    }
  });
}

void allocated(uint64_t task) {
  quietly([&] {
    for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
      if (VirtualDevice* device = runtime().opened(i)) device->memory().give_back_promises(task);
    }
  });
}

void free_early(void* buffer) {
  quietly([&] {
    const auto address = reinterpret_cast<uint64_t>(buffer);
    VirtualDevice* device = runtime().device_of(address);
    if (device && frees_early(*device)) device->memory().release_early(address);
  });
}

constexpr heddle_task_functions kFunctions{
    HEDDLE_TASK_ABI, sizeof(heddle_task_functions), begin, end, free_early, enter, leave, allocated};

}  // namespace

HEDDLE_EXPORT const heddle_task_functions* heddle_task_api() {
  return &kFunctions;
}

}  // namespace heddle::client
