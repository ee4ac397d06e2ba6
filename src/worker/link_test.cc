#include "worker/link.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "protocol/ring_writer.h"
#include "worker/testing/fake_context.h"

namespace heddle::worker {
namespace {

using ::testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr protocol::Window kOffered{0x7e8000000000, 64 * kMiB, 16 * kMiB};
constexpr protocol::Window kOther{0x7e9000000000, 32 * kMiB, 16 * kMiB};

constexpr protocol::Window kTaken{0x7ea000000000, 32 * kMiB, 16 * kMiB};

// heddled's end of a worker's life.
struct LinkTest : ::testing::Test {
  void SetUp() override {
    auto pair = protocol::socket_pair();
    ASSERT_TRUE(pair);
    heddled = std::move(pair->first);
    worker_end = std::move(pair->second);
    auto reserved = reserve_addresses(kTaken.base, Bytes{4096});
    ASSERT_TRUE(reserved) << reserved.error().text;
    taken = std::move(*reserved);
    auto made = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
    ASSERT_TRUE(made);
    ring_fd = std::move(made->first);
    ring = std::move(made->second);
    auto control = protocol::ControlPage::create();
    ASSERT_TRUE(control);
    control_fd = std::move(control->first);
    control_page = std::move(control->second);
  }
  void TearDown() override {
    heddled.close();
    ::close(listener.release());
    if (thread.joinable()) thread.join();
    if (!options.daemon_path.empty()) ::unlink(options.daemon_path.c_str());
  }
  void listen() {
    options.daemon_path = testing::TempDir() + "heddle-link-test-" + std::to_string(::getpid());
    listener = std::move(*protocol::listen_at(options.daemon_path, 0600));
  }
  protocol::Socket accept() {
    pollfd ready{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 60000), 1);
    return protocol::Socket(Fd(::accept(listener.get(), nullptr, nullptr)));
  }
  void run() {
    thread = std::thread([this] {
      auto outbox = std::move(*Outbox::create());
      const auto open = [this](const device::ContextOptions& wanted,
                               const Fd&) -> Result<std::unique_ptr<device::Context>> {
        opened.push_back(wanted.window_base);
        auto context = std::make_unique<FakeContext>();
        context->kernels["k"] = [](auto) { return 0u; };
        return context;
      };
      const auto describe = [](std::span<const std::byte>, uint32_t) -> Result<image::ModuleInfo> {
        image::ModuleInfo info;
        info.kernels.resize(1);
        info.kernels[0].name = "k";
        return info;
      };
      Worker worker(*outbox, open, {describe, {}});
      Link link(std::move(worker_end), options, *outbox, worker);
      result = link.run_until_warm();
      if (result) result = link.run();
    });
  }
  void start() {
    protocol::StartWorker message;
    message.worker = 5;
    message.secret = 99;
    message.device = 1;
    message.model = *device_preset("P100");
    message.window_count = 2;
    message.windows[0] = kTaken;
    message.windows[1] = kOffered;
    ASSERT_TRUE(heddled.send(message));
  }
  protocol::WorkerReady warm() {
    run();
    start();
    auto ready = heddled.expect<protocol::WorkerReady>(kPatience);
    EXPECT_TRUE(ready) << ready.error().text;
    return ready.value_or(protocol::WorkerReady{});
  }
  void send_binding(const protocol::Window& window) {
    protocol::BindSession message;
    message.session = 12;
    message.task_serial = 3;
    message.virtual_device = 2;
    message.window = window;
    const int descriptors[] = {ring_fd.get(), control_fd.get()};
    ASSERT_TRUE(heddled.send(message, descriptors));
  }
  void bind(const protocol::Window& window) {
    send_binding(window);
    ASSERT_TRUE(heddled.send(protocol::Proceed{}));
  }
  void send_module() {
    const Fd memory = std::move(*create_memfd("module", Bytes{4096}));
    protocol::Module message;
    message.module = 1;
    message.bytes = 4096;
    const int descriptors[] = {memory.get()};
    ASSERT_TRUE(heddled.send(message, descriptors));
  }
  void launch() {
    protocol::RingWriter writer(ring);
    auto* record = writer.reserve<protocol::LaunchRecord>(protocol::RecordType::kLaunch, 0);
    record->module = 1;
    for (int i = 0; i < 3; ++i) record->grid[i] = record->block[i] = 1;
    writer.publish();
    auto* end = writer.reserve<protocol::RecordHeader>(protocol::RecordType::kTaskEnd, 0);
    end->a = 3;
    writer.publish();
  }
  void quit() {
    ASSERT_TRUE(heddled.send(protocol::Quit{}));
    thread.join();
  }

  protocol::Socket heddled, worker_end;
  Mapping taken;  // somebody else is in that window
  Fd listener, ring_fd, control_fd;
  protocol::RingMemory ring;
  protocol::ControlPage control_page;
  Link::Options options;
  std::thread thread;
  std::vector<uint64_t> opened;
  Status result;
};

TEST_F(LinkTest, WarmMeansAWindowAndAnOpenDevice) {
  const auto ready = warm();
  EXPECT_EQ(ready.worker, 5u);
  EXPECT_EQ(ready.secret, 99u);
  EXPECT_EQ(ready.device, 1u);
  EXPECT_EQ(ready.session, 0u);
  EXPECT_EQ(ready.window.base, kOffered.base);
  quit();
  EXPECT_TRUE(result) << result.error().text;
}

TEST_F(LinkTest, ServesATaskAndReportsItsEnd) {
  warm();
  bind(kOffered);
  send_module();
  launch();
  std::vector<protocol::Packet> packets;
  for (bool ended = false; !ended;) {
    pollfd ready{heddled.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 60000), 1);
    auto packet = heddled.receive();
    ASSERT_TRUE(packet && *packet);
    ended = (*packet)->type == protocol::MessageType::kTaskEnded;
    if (ended) {
      EXPECT_EQ((*packet)->as<protocol::TaskEnded>().serial, 3u);
    }
  }
  protocol::Usage usage;
  ASSERT_TRUE(control_page.read(usage));
  EXPECT_EQ(usage.launches, 1u);
  quit();
  EXPECT_TRUE(result);
}

TEST_F(LinkTest, ReservesTheSessionsWindowWhereItIsAnother) {
  warm();
  bind(kOther);
  send_module();
  launch();
  protocol::RingHeader& header = ring.header();
  while (header.completed.load() < 2) {
    const uint32_t seen = protocol::read_bell(header.to_client);
    if (header.completed.load() >= 2) break;
    protocol::wait_bell(header.to_client, seen, std::chrono::milliseconds(10));
  }
  quit();
  EXPECT_THAT(opened, ::testing::ElementsAre(kOffered.base, kOther.base));
}

TEST_F(LinkTest, ASessionsWindowThatIsTakenIsAFaultAndTheEnd) {
  warm();
  send_binding(kTaken);  // alone: the worker ends over it, and nothing could be sent any more
  const auto fault = heddled.expect<protocol::WorkerFault>(kPatience);
  ASSERT_TRUE(fault) << fault.error().text;
  EXPECT_THAT(protocol::get_text(fault->text), HasSubstr("cannot reserve"));
  thread.join();
  EXPECT_FALSE(result);
}

TEST_F(LinkTest, NoWindowAtAllIsTheEnd) {
  const auto second = reserve_addresses(kOffered.base, Bytes{4096});
  ASSERT_TRUE(second);
  run();
  start();
  thread.join();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().text, HasSubstr("none of 2 windows"));
}

TEST_F(LinkTest, GarbageFromHeddledIsTheEnd) {
  warm();
  ASSERT_GT(::send(heddled.get(), "garbage", 7, 0), 0);
  thread.join();
  EXPECT_EQ(result.error().code, ErrorCode::kProtocol);
}

TEST_F(LinkTest, WithoutAPlaceToCallTheEndOfTheConnectionIsTheEnd) {
  warm();
  heddled.close();
  thread.join();
  EXPECT_EQ(result.error().code, ErrorCode::kPeerDied);
}

TEST_F(LinkTest, GivesUpOnAHeddledThatDoesNotComeBack) {
  options.daemon_path = testing::TempDir() + "heddle-link-test-nobody";
  options.reconnect_for = std::chrono::milliseconds(1);
  warm();
  heddled.close();
  thread.join();
  EXPECT_EQ(result.error().code, ErrorCode::kPeerDied);
  EXPECT_THAT(result.error().text, HasSubstr("did not come back"));
}

// Whoever took heddled's place does not know this worker, and hangs up each time.
TEST_F(LinkTest, ACallThatIsRejectedIsNotRepeatedWithoutEnd) {
  options.reconnect_for = std::chrono::seconds(1);
  listen();
  warm();
  heddled.close();
  std::atomic<bool> ended{false};
  int calls = 0;
  std::thread rejecting([&] {
    while (!ended) {
      pollfd ready{listener.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) == 1) {
        const Fd socket(::accept(listener.get(), nullptr, nullptr));
        ++calls;
      }
    }
  });
  thread.join();
  ended = true;
  rejecting.join();
  EXPECT_EQ(result.error().code, ErrorCode::kPeerDied);
  EXPECT_THAT(result.error().text, HasSubstr("does not know this worker"));
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, 12);  // after 0.1, 0.2, 0.4 ... seconds; where it hangs up before the worker has spoken, each 0.1
}

TEST_F(LinkTest, WorksOnWhileHeddledIsGoneAndTellsItsSuccessor) {
  listen();
  warm();
  bind(kOffered);
  send_module();
  heddled.close();
  launch();  // runs without heddled
  heddled = accept();
  std::vector<Fd> none;
  const auto ready = heddled.expect<protocol::WorkerReady>(kPatience);
  ASSERT_TRUE(ready) << ready.error().text;
  EXPECT_EQ(ready->worker, 5u);
  EXPECT_EQ(ready->secret, 99u);
  EXPECT_EQ(ready->session, 12u);
  EXPECT_EQ(ready->task_serial, 3u);
  EXPECT_EQ(ready->virtual_device, 2u);
  for (;;) {
    pollfd waiting{heddled.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 60000), 1);
    auto packet = heddled.receive();
    ASSERT_TRUE(packet && *packet);
    if ((*packet)->type == protocol::MessageType::kTaskEnded) break;
  }
  quit();
  EXPECT_TRUE(result);
}

TEST_F(LinkTest, TellsTheSuccessorWhichTaskItGoesOnWith) {
  listen();
  warm();
  bind(kOffered);
  ASSERT_TRUE(heddled.send(protocol::NextTask{4}));
  heddled.close();
  heddled = accept();
  const auto ready = heddled.expect<protocol::WorkerReady>(kPatience);
  ASSERT_TRUE(ready) << ready.error().text;
  EXPECT_EQ(ready->task_serial, 4u);
  quit();
}

TEST_F(LinkTest, RepeatsWhatAHeddledThatDiedMayNotHaveActedOn) {
  listen();
  warm();
  bind(kOffered);
  send_module();
  launch();
  for (int life = 0; life < 2; ++life) {
    for (;;) {
      pollfd waiting{heddled.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 60000), 1);
      auto packet = heddled.receive();
      ASSERT_TRUE(packet && *packet);
      if ((*packet)->type == protocol::MessageType::kTaskEnded) break;
    }
    heddled.close();
    heddled = accept();
  }
  quit();
}

}  // namespace
}  // namespace heddle::worker
