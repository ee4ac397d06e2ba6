// The real heddle-worker, as heddled starts it, on the software device.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "core/clock.h"
#include "device/device.h"
#include "image/fatbin_builder.h"
#include "protocol/control_page.h"
#include "protocol/ring_writer.h"
#include "protocol/socket.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;
using ::testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr protocol::Window kWindow{0x7e8000000000, 64 * kMiB, 16 * kMiB};
constexpr uint64_t kSegmentBytes = 2 * kMiB;

// Adds its second parameter to the word at its first.
constexpr const char* kPtx = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry add(.param .u64 at, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  add.u32 %r3, %r2, %r1;
  st.global.u32 [%rd2], %r3;
  ret;
}
)";

struct WorkerProcess : ::testing::Test {
  void SetUp() override {
    model = *device_preset("P100");
    model.slowdown = model.copy_slowdown = 0;
    board = std::move(*create_memfd("board", device::software_board_bytes(model)));
    auto made = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
    ASSERT_TRUE(made);
    ring_fd = std::move(made->first);
    ring = std::move(made->second);
    auto control = protocol::ControlPage::create();
    ASSERT_TRUE(control);
    control_fd = std::move(control->first);
    control_page = std::move(control->second);
    auto pair = protocol::socket_pair();
    ASSERT_TRUE(pair);
    heddled = std::move(pair->first);
    spawn(pair->second.get());
  }
  void TearDown() override {
    if (pid > 0) ::kill(pid, SIGKILL);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }
  void spawn(int socket) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const int passed = ::fcntl(socket, F_DUPFD_CLOEXEC, 100);  // dup2 onto itself would leave it close-on-exec
    ::posix_spawn_file_actions_adddup2(&actions, passed, 3);
    char program[] = HEDDLE_WORKER_PROGRAM;
    char* arguments[] = {program, nullptr};
    ASSERT_EQ(::posix_spawn(&pid, program, &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(passed);
  }
  void start() {
    protocol::StartWorker message;
    message.worker = 1;
    message.model = model;
    message.window_count = 1;
    message.windows[0] = kWindow;
    send(message, &board);
    const auto ready = heddled.expect<protocol::WorkerReady>(kPatience);
    ASSERT_TRUE(ready) << ready.error().text;
  }
  template <class Message>
  void send(const Message& message, const Fd* descriptor = nullptr) {
    const int number = descriptor ? descriptor->get() : -1;
    ASSERT_TRUE(heddled.send(message, std::span(&number, descriptor ? 1 : 0)));
  }
  void bind() {
    protocol::BindSession session;
    session.session = session.task_serial = 1;
    session.window = kWindow;
    const int descriptors[] = {ring_fd.get(), control_fd.get()};
    ASSERT_TRUE(heddled.send(session, descriptors));
    const std::string fatbin = image::FatbinBuilder().add(1, 60, kPtx).build();
    const Fd file = std::move(*create_memfd("module", Bytes{fatbin.size()}));
    ASSERT_EQ(::pwrite(file.get(), fatbin.data(), fatbin.size(), 0), static_cast<ssize_t>(fatbin.size()));
    protocol::Module module;
    module.module = 1;
    module.bytes = fatbin.size();
    send(module, &file);
    memory = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
    send(protocol::MapSegment{1, kWindow.base, kSegmentBytes}, &memory);
    send(protocol::Proceed{});
  }
  void wait_for(uint64_t sequence) {
    protocol::RingHeader& header = ring.header();
    for (;;) {
      const uint32_t seen = protocol::read_bell(header.to_client);
      if (header.completed.load() >= sequence) return;
      ASSERT_TRUE(protocol::wait_bell(header.to_client, seen, kPatience));
    }
  }
  uint64_t append(RecordType type, uint64_t a = 0) {
    writer.reserve<protocol::RecordHeader>(type, 0)->a = a;
    return writer.publish();
  }
  uint64_t add(uint64_t address, uint32_t value) {
    auto* record = writer.reserve<protocol::LaunchRecord>(RecordType::kLaunch, 0, 12);
    record->module = 1;
    for (int i = 0; i < 3; ++i) record->grid[i] = record->block[i] = 1;
    record->parameter_bytes = 12;
    std::memcpy(record + 1, &address, sizeof address);
    std::memcpy(reinterpret_cast<char*>(record + 1) + sizeof address, &value, sizeof value);
    return writer.publish();
  }
  int exit_status() {
    int status = -1;
    ::waitpid(std::exchange(pid, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  uint32_t word() {
    uint32_t value = 0;
    EXPECT_EQ(::pread(memory.get(), &value, sizeof value, 0), static_cast<ssize_t>(sizeof value));
    return value;
  }

  DeviceModel model;
  Fd board, ring_fd, control_fd, memory;
  protocol::RingMemory ring;
  protocol::ControlPage control_page;
  protocol::RingWriter writer{ring};
  protocol::Socket heddled;
  pid_t pid = -1;
};

TEST_F(WorkerProcess, RunsAKernelAndEndsItsTask) {
  start();
  bind();
  append(RecordType::kNeed, 1);
  for (uint32_t value = 1; value <= 100; ++value) add(kWindow.base, value);
  wait_for(append(RecordType::kMarker));
  EXPECT_EQ(ring.header().fault.load(), 0u) << ring.header().fault_text;
  EXPECT_EQ(word(), 5050u);
  append(RecordType::kFree, 1);
  append(RecordType::kTaskEnd, 1);
  bool freed = false;
  for (bool ended = false; !ended;) {
    pollfd ready{heddled.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 60000), 1);
    auto packet = heddled.receive();
    ASSERT_TRUE(packet && *packet);
    freed |= (*packet)->type == protocol::MessageType::kSegmentFreed;
    ended = (*packet)->type == protocol::MessageType::kTaskEnded;
  }
  EXPECT_TRUE(freed);
  send(protocol::Quit{});
  EXPECT_EQ(exit_status(), 0);
}

TEST_F(WorkerProcess, MeasuresWhatItsDeviceDoes) {
  const TimePoint before = MonotonicClock().now();
  start();
  bind();
  append(RecordType::kNeed, 1);
  for (uint32_t value = 1; value <= 100; ++value) add(kWindow.base, value);
  wait_for(append(RecordType::kMarker));
  protocol::Usage usage;
  ASSERT_TRUE(control_page.read(usage));
  const auto wall = static_cast<uint64_t>((MonotonicClock().now() - before).count());
  EXPECT_EQ(usage.launches, 100u);
  EXPECT_GT(usage.busy_ns, 0u);
  EXPECT_LE(usage.busy_ns, wall);
  EXPECT_LE(usage.busy_ns, usage.kernel_ns);  // one stream: the launches follow each other
  EXPECT_EQ(usage.copy_ns, 0u);
  EXPECT_EQ(usage.busy_since_ns, 0u);
}

TEST_F(WorkerProcess, AnswersManySynchronisations) {
  start();
  bind();
  for (int round = 0; round < 5000; ++round) wait_for(append(RecordType::kMarker));
  EXPECT_EQ(ring.header().fault.load(), 0u);
}

TEST_F(WorkerProcess, AWildPointerIsAnIllegalAddressForItsSessionAlone) {
  start();
  bind();
  append(RecordType::kNeed, 1);
  wait_for(add(kWindow.base + 4 * kSegmentBytes, 1));
  EXPECT_EQ(ring.header().fault.load(), 700u);
  const auto fault = heddled.expect<protocol::WorkerFault>(kPatience);
  ASSERT_TRUE(fault) << fault.error().text;
  EXPECT_EQ(fault->cuda_error, 700u);
}

TEST_F(WorkerProcess, HasNoPrivilegesToGain) {
  start();
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  const std::string status(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
}

TEST_F(WorkerProcess, EndsWithHeddledWhereThereIsNowhereToCall) {
  start();
  heddled.close();
  EXPECT_EQ(exit_status(), 1);
}

}  // namespace
}  // namespace heddle::worker
