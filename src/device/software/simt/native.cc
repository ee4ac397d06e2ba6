#include "device/software/simt/native.h"

#include <bit>
#include <cstring>
#include <string>

#include "device/software/simt/block_state.h"
#include "device/software/simt/device_heap.h"
#include "device/software/simt/device_printf.h"

namespace heddle::software {
namespace {

// Reads what a device function was given: values in the caller's frame, bytes behind generic addresses.
class Arguments {
 public:
  Arguments(const Warp& warp, const Op& op, uint32_t lane) : warp_(warp), op_(op), lane_(lane) {}

  template <class T>
  T value(uint32_t argument) const {
    T result;
    std::memcpy(&result, local() + offset(argument), sizeof result);
    return result;
  }
  template <class T>
  void set_result(uint32_t argument_count, T result) const {
    if (offset(argument_count) != Op::kNone) std::memcpy(local() + offset(argument_count), &result, sizeof result);
  }
  MemoryReader reader() const { return MemoryReader(warp_, lane_); }

 private:
  std::byte* local() const { return warp_.local + size_t{lane_} * warp_.block->local_stride + warp_.frame->local_base; }
  uint32_t offset(uint32_t argument) const { return warp_.block->operands[op_.extra + argument]; }

  const Warp& warp_;
  const Op& op_;
  uint32_t lane_;
};

// int vprintf(const char* format, const void* arguments)
void print(Warp& warp, const Op& op) {
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    Arguments arguments(warp, op, lane);
    MemoryReader reader = arguments.reader();
    auto text = format_device_printf(reader, arguments.value<uint64_t>(0), arguments.value<uint64_t>(1));
    if (!text) return raise(warp, op, lane, kCudaIllegalAddress, "printf: " + text.error().text);
    if (warp.block->print) warp.block->print(text->text);
    arguments.set_result<int32_t>(2, text->argument_count);
  }
}

// void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t char_size)
void assert_fail(Warp& warp, const Op& op) {
  auto lane = static_cast<uint32_t>(std::countr_zero(warp.active));
  Arguments arguments(warp, op, lane);
  MemoryReader reader = arguments.reader();
  auto string = [&](uint32_t i) { return reader.string(arguments.value<uint64_t>(i)).value_or("?"); };
  raise(warp, op, lane, kCudaAssert,
        stringf("%s:%u: %s: Assertion `%s` failed", string(1).c_str(), arguments.value<uint32_t>(2), string(3).c_str(),
                string(0).c_str()));
}

// void* malloc(size_t bytes)
void allocate(Warp& warp, const Op& op) {
  DeviceHeap* heap = warp.block->launch.heap;
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    Arguments arguments(warp, op, static_cast<uint32_t>(std::countr_zero(rest)));
    arguments.set_result<uint64_t>(1, heap ? heap->allocate(arguments.value<uint64_t>(0)) : 0);
  }
}

// void free(void* pointer)
void release(Warp& warp, const Op& op) {
  DeviceHeap* heap = warp.block->launch.heap;
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    auto address = Arguments(warp, op, lane).value<uint64_t>(0);
    if (address == 0 || (heap && heap->free(address))) continue;
    return raise(warp, op, lane, kCudaLaunchFailure,
                 stringf("free of 0x%llx, which malloc did not return or which is free already",
                         static_cast<unsigned long long>(address)));
  }
}

constexpr NativeFunction kNative[] = {
    {"malloc", 1, allocate},
    {"free", 1, release},
    {"vprintf", 2, print},
    {"__assertfail", 5, assert_fail},
};

}  // namespace

std::span<const NativeFunction> native_functions() {
  return kNative;
}

const NativeFunction* find_native(std::string_view name) {
  for (const NativeFunction& native : kNative)
    if (native.name == name) return &native;
  return nullptr;
}

}  // namespace heddle::software
