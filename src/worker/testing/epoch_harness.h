#pragma once

// A program whose worker keeps epochs, and dies in the middle of its work.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "protocol/undo_log.h"
#include "worker/testing/session_harness.h"

namespace heddle::worker {

inline constexpr uint64_t kFirst = kTestBase, kSecond = kTestBase + kSegmentBytes;
inline constexpr uint32_t kHeldEvent = 100;
inline constexpr uint64_t kVariableAt = kTestBase + 4 * kSegmentBytes;  // where the worker has its variable
enum EpochKernel : uint32_t {
  kAdd,
  kMove,
  kWait,
  kTakeSlot,
  kCountUp,
  kUnknown,
  kPrint,
  kLongAdd,
  kLongWait,
  kVeryLong
};

// Device memory is two segments of numbers, which every worker has mapped. Streams 1 and 2 wait for nobody else's.
struct EpochHarness : SessionHarness {
  void SetUp() override {
    undo = Bytes{64 * kMiB};
    SessionHarness::SetUp();
    for (Fd& each : memory) each = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
    describe("add", {.read = 1, .written = 1});
    describe("move", {.read = 1, .written = 2});
    describe("wait", {});
    describe("take slot", {.read = 1, .written = 1, .atomics = true});
    describe("count up", {.variables = {{"counter", true, true}}});
    describe("unknown", {.writes_anything = true, .follows_memory = true, .unknown = "an instruction of tomorrow"});
    describe("print", {});
    describe("long add", {.read = 1, .written = 1});
    describe("long wait", {});
    describe("very long", {.read = 1, .written = 1});
    module_info.variables.push_back({"counter", 8, false, false});
    prepare_context = [this](FakeContext& device) { prepare(device); };
    start();
    send_module(1);
  }
  void describe(const char* name, image::KernelEffects effects) {
    image::KernelInfo& info = module_info.kernels.emplace_back();
    info.name = effects.name = name;
    info.parameters = {{0, 8}, {8, 8}};
    info.parameter_bytes = 16;
    kernel_effects.push_back(effects);
  }
  static uint64_t& number(uint64_t address) {
    return *reinterpret_cast<uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  static uint64_t word(std::span<const std::byte> parameters, size_t index) {
    uint64_t value = 0;
    std::memcpy(&value, parameters.data() + index * sizeof value, sizeof value);
    return value;
  }
  void prepare(FakeContext& device) {
    ASSERT_TRUE(device.map(kVariableAt, Bytes{kSegmentBytes}, *create_memfd("variable", Bytes{kSegmentBytes}), false));
    device.variables["counter"] = {kVariableAt, 8};
    number(kVariableAt) = 100;
    device.kernels["add"] = [this](auto parameters) {
      ++runs;
      committed_at_run = control_page.log().completed;
      number(word(parameters, 0)) += word(parameters, 1);
      return 0u;
    };
    device.kernels["move"] = [this](auto parameters) {
      ++runs;
      number(word(parameters, 1)) = number(word(parameters, 0)) + 1;
      return 0u;
    };
    device.kernels["long add"] = device.kernels["very long"] = device.kernels["add"];
    device.takes = {{"long add", std::chrono::milliseconds(50)},
                    {"long wait", std::chrono::milliseconds(50)},
                    {"very long", std::chrono::seconds(10)}};
    device.kernels["long wait"] = device.kernels["wait"] = [](auto) { return 0u; };
    device.kernels["unknown"] = [](auto parameters) {
      if (word(parameters, 0) != 0) ++number(word(parameters, 0));
      return 0u;
    };
    device.kernels["take slot"] = [](auto parameters) {
      uint64_t* const slots = &number(word(parameters, 0));
      slots[++slots[0]] = word(parameters, 1);
      return 0u;
    };
    device.kernels["count up"] = [](auto) {
      ++number(kVariableAt);
      return 0u;
    };
    device.kernels["print"] = [this](auto) {
      printer.print("a line\n");
      return 0u;
    };
    for (const uint32_t each : {1u, 2u}) live_stream(each, protocol::kStreamNonBlocking);
  }
  void start() {
    hold_back = true;
    start_worker();
    map_same_memory(1, kFirst, memory[0]);
    map_same_memory(2, kSecond, memory[1]);
    proceed();
  }
  // Copies that epochs have made, and stamps.
  size_t saves() {
    const auto tags = context->handed_over();
    return static_cast<size_t>(
        std::count_if(tags.begin(), tags.end(), [](device::Tag tag) { return (tag & OwnCopies::kTag) != 0; }));
  }
  // The worker's death would be the session's just now.
  bool is_unprotected() const { return control_page.log().computes(); }
  // A kernel on stream 2 is under way until the worker dies. Stream 1 is of its component, and so nothing is committed.
  void hold_open(EpochKernel kernel = kWait) {
    context->pause(2);
    run(kernel, 0, 0, 2);
    for (const uint32_t each : {2u, 1u}) simple(protocol::RecordType::kEventRecord, each, kHeldEvent);
  }
  uint64_t run(uint32_t kernel, uint64_t first = 0, uint64_t second = 0, uint32_t stream = 1) {
    return launch(stream, kernel, {first, second});
  }
  // All that the device has got of stream 1 is done.
  bool handed_over(uint64_t sequence) {
    return eventually([&] {
      const auto tags = context->handed_over();
      return std::find(tags.begin(), tags.end(), sequence) != tags.end();
    });
  }
  // As a program that wants space: everything in the ring is.
  bool commits() {
    return eventually([&] {
      header().wanted = header().committed.load() + 1;
      protocol::ring_bell(header().to_worker);
      return header().committed.load() == writer->last_sequence();
    });
  }
  protocol::BufferTable table() { return ring.buffers(window.base); }
  // In the open epoch.
  uint64_t saved_bytes() {
    auto log = protocol::UndoLog::attach(control_fd);
    return log ? log->bytes() : 0;
  }
  uint64_t at(uint64_t address) {
    uint64_t value = 0;
    std::memcpy(&value, device_text(address, sizeof value).data(), sizeof value);
    return value;
  }
  // The segment's first number, where no worker has it mapped.
  uint64_t at_rest(size_t segment) {
    uint64_t value = 0;
    EXPECT_EQ(::pread(memory[segment].get(), &value, sizeof value, 0), 8);
    return value;
  }
  void dies_and_next_finishes() {
    EXPECT_FALSE(control_page.log().computes()) << "it can go on";
    EXPECT_LT(header().completed.load(), writer->last_sequence()) << "it was in the middle";
    start();
    ASSERT_TRUE(completes(writer->last_sequence()));
    EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  }

  std::array<Fd, 2> memory;
  std::atomic<int> runs{0};
  std::atomic<uint64_t> committed_at_run{0};  // when the last kernel ran that adds
};

}  // namespace heddle::worker
