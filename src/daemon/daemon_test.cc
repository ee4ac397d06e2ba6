// Tasks from begin to end: placement, memory, workers, and what a program sees of them.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;

class TaskTest : public HouseholdTest {};

// The client's next task, of one segment.
void begin_again(TestClient& client, uint64_t serial) {
  ASSERT_TRUE(client.declare(serial, client.at(0), Bytes{2 * kMiB}));
  ASSERT_TRUE(client.begin(serial));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  EXPECT_EQ(client.header().task_serial.load(), serial);
  client.record(RecordType::kNeed, serial);
}

TEST_F(TaskTest, RunsFromItsBeginToItsEndAndTheNextGoesOnInTheSameWorker) {
  start();
  TestClient client = running(Bytes{4 * kMiB});
  EXPECT_EQ(client.header().task_serial.load(), 1u);
  const pid_t worker = worker_of(client);
  finish(client);
  begin_again(client, 2);
  EXPECT_EQ(worker_of(client), worker);
  ASSERT_TRUE(client.wait_completed(3));
}

TEST_F(TaskTest, NoWorkerIsKeptWhereTheConfigurationSaysSo) {
  start(kOneDevice, "kept_workers = 0\n");
  TestClient client = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(client);
  finish(client);
  begin_again(client, 2);
  EXPECT_NE(worker_of(client), worker);
  ASSERT_TRUE(client.wait_completed(3));
}

TEST_F(TaskTest, OfTooManyKeptWorkersTheOldestGoes) {
  start(kOneDevice, "kept_workers = 1\n");
  TestClient first = running(Bytes{4 * kMiB}), second = running(Bytes{4 * kMiB});
  const pid_t workers[] = {worker_of(first), worker_of(second)};
  finish(first);
  finish(second);
  const Json devices = *house_->ask({{"command", "devices"}});
  EXPECT_EQ(devices["devices"][0]["kept_workers"], 1);
  begin_again(first, 2);
  begin_again(second, 2);
  EXPECT_NE(worker_of(first), workers[0]);
  EXPECT_EQ(worker_of(second), workers[1]);
}

TEST_F(TaskTest, AWorkerIsNotKeptOnceItsProgramHasResetTheDevice) {
  start(kOneDevice);
  TestClient client = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(client);
  client.record(RecordType::kReset);
  finish(client);
  begin_again(client, 2);
  EXPECT_NE(worker_of(client), worker);
}

TEST_F(TaskTest, AKeptWorkerEndsWithItsProgram) {
  start(kOneDevice);
  {
    TestClient client = running(Bytes{4 * kMiB});
    finish(client);
  }
  EXPECT_EQ((*house_->ask({{"command", "devices"}}))["devices"][0]["kept_workers"], 1);
  const TestClient next = opened();  // the same process has become another program
  house_->wait_for("devices", [](const Json& devices) { return devices["devices"][0]["kept_workers"] == 0; });
}

TEST_F(TaskTest, AKeptWorkerThatDiesHarmsNobody) {
  start(kOneDevice, "warm_workers = 0\n");
  TestClient client = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(client);
  finish(client);
  house_->kill(worker);
  house_->wait_for("devices", [](const Json& devices) { return devices["devices"][0]["kept_workers"] == 0; });
  begin_again(client, 2);
  EXPECT_NE(worker_of(client), worker);
}

TEST_F(TaskTest, WithSharedFaultsAKeptWorkerIsNotUsedAgain) {
  start(std::string(kOneDevice) + "shared_faults = true\n");
  TestClient faulty = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(neighbour);
  finish(neighbour);
  faulty.record(RecordType::kPrefetchModule);
  house_->wait_for("devices", [](const Json& devices) { return devices["devices"][0]["kept_workers"] == 0; });
  begin_again(neighbour, 2);
  EXPECT_NE(worker_of(neighbour), worker);
}

TEST_F(TaskTest, BegunBehindTheEndOfItsForerunnerTakesTheSegmentsDeclaredMeanwhile) {
  start(kOneDevice);
  TestClient client = running(Bytes{4 * kMiB});
  // All of this reaches heddled before it hears of the first task's end.
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{2 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  client.record(RecordType::kFree, 1);
  client.record(RecordType::kTaskEnd, 1);
  client.record(RecordType::kNeed, 2);
  client.fill(client.at(8), 5);
  ASSERT_TRUE(client.wait_completed(4));
  EXPECT_EQ(client.header().task_serial.load(), 2u);
  const Json devices = *house_->ask({{"command", "devices"}});
  EXPECT_EQ(devices["devices"][0]["used"], 2 * kMiB);
}

TEST_F(TaskTest, RoomCountsAsItsMemoryDoes) {
  start(kOneDevice);
  TestClient client = opened();
  ASSERT_TRUE(
      client.socket().send(protocol::DeclareSegment{0, 1, client.at(0), 6 * kMiB, protocol::SegmentKind::kRoom}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  client.record(RecordType::kNeed, 1);
  ASSERT_TRUE(client.wait_completed(1));
  EXPECT_EQ((*house_->ask({{"command", "devices"}}))["devices"][0]["used"], 6 * kMiB);
  client.record(RecordType::kFree, 1);
  house_->wait_for("devices", [](const Json& devices) { return devices["devices"][0]["used"] == 0; });
}

TEST_F(TaskTest, WithoutALaunchYetCountsAsFillingItsDevice) {
  start(kTwoDevices, "policy = \"mgb-warps\"\n");
  TestClient copies = opened(), launches = opened();
  ASSERT_TRUE(copies.declare(1, copies.at(0), Bytes{2 * kMiB}));
  ASSERT_TRUE(copies.begin(1, 0));
  ASSERT_TRUE(copies.wait_binding(Binding::kBound));
  ASSERT_TRUE(launches.declare(1, launches.at(0), Bytes{2 * kMiB}));
  ASSERT_TRUE(launches.begin(1));
  ASSERT_TRUE(launches.wait_binding(Binding::kBound));
  const Json devices = *house_->ask({{"command", "devices"}});
  EXPECT_EQ(devices["devices"][0]["warps"], devices["devices"][0]["max_warps"]);
  EXPECT_EQ(devices["devices"][1]["tasks"], 1);
}

// A client whose second task would be on a side device: the virtual device behind those that programs see.
class ApartTest : public HouseholdTest {
 protected:
  static constexpr uint32_t kSideDevice = 2;

  TestClient declared(Bytes first, Bytes second) {
    TestClient client = opened();
    EXPECT_EQ(client.welcome().device_count, 2u);
    EXPECT_EQ(client.welcome().side_device_count, 1u);
    EXPECT_TRUE(client.open_device(kSideDevice));
    EXPECT_TRUE(client.declare(1, client.at(0), first));
    const protocol::DeclareSegment segment{0,          2, client.at(100), second.value, protocol::SegmentKind::kDevice,
                                           kSideDevice};
    EXPECT_TRUE(client.socket().send(segment));
    return client;
  }
  static bool granted(TestClient& client, uint64_t first, uint64_t second) {
    EXPECT_TRUE(client.ask(protocol::BeginApart{0, {first, {0, 256, 56}}, {second, {kSideDevice, 256, 56}}}));
    const auto answer = client.socket().expect<protocol::ApartAnswer>(TestClient::kPatience);
    EXPECT_TRUE(answer) << answer.error().text;
    return answer && answer->granted == 1;
  }
};

TEST_F(ApartTest, TwoTasksOfOneSessionGoToTwoDevicesAtOnce) {
  start();
  TestClient client = declared(Bytes{40 * kMiB}, Bytes{20 * kMiB});
  ASSERT_TRUE(granted(client, 1, 1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound)) << "the side device's ring";
  const Json tasks = (*house_->ask({{"command", "ps"}}))["sessions"][0]["tasks"];
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_NE(tasks[0]["device"], tasks[1]["device"]);
}

TEST_F(ApartTest, BesideATaskThatRunsAlready) {
  start();
  TestClient client = declared(Bytes{40 * kMiB}, Bytes{20 * kMiB});
  ASSERT_TRUE(client.begin(1));
  EXPECT_TRUE(granted(client, 0, 1));
}

TEST_F(ApartTest, WhatIsDeclinedIsForgotten) {
  start();
  const TestClient other = running(Bytes{60 * kMiB});
  TestClient client = declared(Bytes{40 * kMiB}, Bytes{20 * kMiB});
  EXPECT_FALSE(granted(client, 1, 1)) << "one device has no room";
  EXPECT_TRUE((*house_->ask({{"command", "ps"}}))["sessions"][1]["tasks"].empty());
  // As if nothing had been said: the same addresses, in one task.
  ASSERT_TRUE(client.declare(3, client.at(0), Bytes{40 * kMiB}));
  ASSERT_TRUE(client.declare(4, client.at(100), Bytes{20 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  house_->wait_for("ps", [](const Json& answer) {
    const Json& tasks = answer["sessions"][1]["tasks"];
    return tasks.size() == 1 && tasks[0]["state"] == "running" && tasks[0]["memory"] == 60 * kMiB;
  });
}

TEST_F(ApartTest, ThereIsNoSideDeviceWhereThereIsOneDevice) {
  start(kOneDevice);
  EXPECT_EQ(opened().welcome().side_device_count, 0u);
}

TEST_F(TaskTest, WaitsUntilAnotherEnds) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  TestClient second = begun(Bytes{40 * kMiB});
  ASSERT_TRUE(second.wait_binding(Binding::kWaiting));
  const Json ps = house_->wait_for("ps", [](const Json& answer) { return answer["sessions"].size() == 2; });
  EXPECT_EQ(ps["sessions"][1]["tasks"][0]["state"], "waiting");
  EXPECT_THAT(ps["sessions"][1]["tasks"][0]["reason"], ::testing::HasSubstr("40"));
  finish(first);
  EXPECT_TRUE(second.wait_binding(Binding::kBound));
}

TEST_F(TaskTest, GrowsWhenMemoryIsThere) {
  start(kOneDevice);
  TestClient first = running(Bytes{32 * kMiB});
  TestClient second = running(Bytes{16 * kMiB});
  ASSERT_TRUE(second.declare(2, second.at(16), Bytes{32 * kMiB}));
  second.record(RecordType::kNeed, 2);
  house_->wait_for(
      "ps", [](const Json& answer) { return answer["sessions"][1]["tasks"][0]["state"] == "waiting for memory"; });
  EXPECT_EQ(second.header().completed.load(), 0u);
  finish(first);
  EXPECT_TRUE(second.wait_completed(1));
}

TEST_F(TaskTest, LargerThanAnyDeviceFailsWithItsText) {
  start();
  TestClient client = begun(Bytes{128 * kMiB});
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 2u);
  EXPECT_THAT(client.error_text(), ::testing::HasSubstr("128"));
  EXPECT_TRUE(running(Bytes{2 * kMiB}).header().error.load() == 0);
}

TEST_F(TaskTest, AUserHoldsNoMoreThanTheLimitAllows) {
  start(std::string(kOneDevice) + "[limits]\ndevice_memory_per_user = \"8M\"\n");
  TestClient first = running(Bytes{6 * kMiB}), second = begun(Bytes{4 * kMiB});
  house_->wait_for("ps", [](const Json& ps) {
    const Json& task = ps["sessions"][1]["tasks"][0];
    return task["reason"].get<std::string>().find("device_memory_per_user") != std::string::npos;
  });
  finish(first);
  EXPECT_TRUE(second.wait_binding(Binding::kBound)) << second.error_text();
  TestClient third = begun(Bytes{10 * kMiB});
  EXPECT_TRUE(third.wait_binding(Binding::kFailed));
  EXPECT_THAT(third.error_text(), ::testing::HasSubstr("device_memory_per_user"));
}

// It would keep what it has of the device, and its neighbours waiting.
TEST_F(TaskTest, AStoppedWorkerGoesOn) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const Json ps = *house_->ask({{"command", "ps"}});
  for (uint64_t round = 1; round <= 2; ++round) {
    ASSERT_EQ(::kill(ps["sessions"][0]["tasks"][0]["worker_pid"], SIGSTOP), 0);
    client.fill(client.at(0), 1);
    EXPECT_TRUE(client.wait_completed(round));
  }
}

TEST_F(TaskTest, AWorkerThatDiesAtWorkFailsItsProgramAndNobodyElse) {
  start(kOneDevice);
  TestClient victim = running(Bytes{8 * kMiB});
  TestClient neighbour = running(Bytes{8 * kMiB});
  compute(victim);
  house_->kill(worker_of(victim));
  ASSERT_TRUE(victim.wait_binding(Binding::kFailed));
  EXPECT_EQ(victim.header().error.load(), 719u);
  EXPECT_THAT(victim.error_text(), ::testing::HasSubstr("signal 9"));
  EXPECT_THAT(victim.error_text(), ::testing::HasSubstr("work of the program's was under way"));
  neighbour.fill(neighbour.at(0), 1);
  EXPECT_TRUE(neighbour.wait_completed(1));
  EXPECT_EQ(neighbour.header().fault.load(), 0u);
  house_->wait_for("devices", [](const Json& answer) {
    return answer["devices"][0]["tasks"] == 1 && answer["devices"][0]["used"] == 8 * kMiB;
  });
}

// The program is a child, so that it has a process of its own to lose.
TEST_F(TaskTest, AKilledProgramGivesEverythingBack) {
  start(kOneDevice);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    TestClient client = running(Bytes{40 * kMiB});
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  TestClient second = begun(Bytes{40 * kMiB});
  ASSERT_TRUE(second.wait_binding(Binding::kWaiting));
  ::kill(program, SIGKILL);
  EXPECT_TRUE(second.wait_binding(Binding::kBound));
  ::waitpid(program, nullptr, 0);
  finish(second);
  second.socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
}

TEST_F(TaskTest, UnderCgMemoryIsAnsweredAtOnce) {
  start(kOneDevice, "policy = \"cg:2\"\n");
  TestClient client = opened();
  EXPECT_EQ(client.welcome().grants_at_malloc, 1u);
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{32 * kMiB}, true));
  EXPECT_EQ(client.answer()->cuda_error, 0u);
  ASSERT_TRUE(client.declare(2, client.at(32), Bytes{32 * kMiB}, true));
  EXPECT_EQ(client.answer()->cuda_error, 0u);
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{4 * kMiB}, true));
  const auto refused = second.answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->cuda_error, 2u);
  EXPECT_STRNE(refused->text, "");
  // Refused memory is cudaMalloc's error; the session goes on.
  ASSERT_TRUE(second.begin(1));
  EXPECT_TRUE(second.wait_binding(Binding::kBound));
  ASSERT_TRUE(client.begin(1));
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
}

TEST_F(TaskTest, UnderSaAJobHasItsDeviceForItself) {
  start(kOneDevice, "policy = \"sa\"\n");
  TestClient first = opened();
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{2 * kMiB}, true));
  EXPECT_EQ(first.answer()->cuda_error, 0u);
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{2 * kMiB}, true));
  const Json ps = house_->wait_for("ps", [](const Json& answer) {
    return answer["sessions"].size() == 2 && answer["sessions"][1]["tasks"].size() == 1 &&
           answer["sessions"][1]["tasks"][0].contains("position");  // it stands in the line: it was decided
  });
  EXPECT_EQ(ps["sessions"][1]["tasks"][0]["state"], "waiting");
  EXPECT_EQ(ps["sessions"][0]["tasks"][0]["state"], "starting") << "memory was asked for, no task begun";
}

TEST_F(TaskTest, OtherRequestsAreAnsweredWhileMemoryIsWaitedFor) {
  start(kOneDevice, "policy = \"sa\"\n");
  TestClient first = opened();
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{2 * kMiB}, true));
  const auto granted = first.answer();
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->request, first.last_request());
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{2 * kMiB}, true));
  const uint64_t waits = second.last_request();
  ASSERT_TRUE(second.ask(protocol::MemoryInfo{}));
  const auto info = second.socket().expect<protocol::MemoryAnswer>(TestClient::kPatience);
  ASSERT_TRUE(info) << info.error().text;
  EXPECT_EQ(info->request, waits + 1);
  first.socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends what it left
  const auto answer = second.answer();
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->request, waits);
  EXPECT_EQ(answer->cuda_error, 0u);
}

TEST_F(TaskTest, WhoWaitsForMemoryHearsThatItsSessionIsOver) {
  start(kOneDevice, "policy = \"sa\"\n");
  TestClient first = opened();
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{2 * kMiB}, true));
  ASSERT_TRUE(first.answer());
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  TestClient second = opened((*job)["job"], (*job)["secret"]);
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{2 * kMiB}, true));
  ASSERT_TRUE(house_->ask({{"command", "cancel"}, {"job", (*job)["job"]}}));
  const auto refused = second.socket().expect<protocol::Refused>(TestClient::kPatience);
  ASSERT_TRUE(refused) << refused.error().text;
  EXPECT_EQ(refused->request, second.last_request());
  EXPECT_THAT(protocol::get_text(refused->text), ::testing::HasSubstr("cancelled"));
}

// A program takes a second answer for a heddled that has lost its mind, and tells that instead of what happened.
TEST_F(TaskTest, WhoHasPinnedMemoryIsNotAnsweredTwiceWhenItsSessionFails) {
  start(kOneDevice);
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  TestClient client = opened((*job)["job"], (*job)["secret"]);
  const uint64_t address = client.window().base + client.window().device_bytes;
  ASSERT_TRUE(client.ask(protocol::DeclareSegment{0, 1, address, 2 * kMiB, protocol::SegmentKind::kHost}));
  ASSERT_TRUE(client.answer());
  ASSERT_TRUE(house_->ask({{"command", "cancel"}, {"job", (*job)["job"]}}));
  ASSERT_TRUE(client.ask(protocol::MemoryInfo{}));
  const auto next = client.socket().expect<protocol::Refused>(TestClient::kPatience);
  ASSERT_TRUE(next) << next.error().text;
  EXPECT_EQ(next->request, client.last_request());
}

TEST_F(TaskTest, PinnedMemoryIsSharedWithTheWorker) {
  start(kOneDevice);
  TestClient client = opened();
  const uint64_t address = client.window().base + client.window().device_bytes;
  ASSERT_TRUE(client.ask(protocol::DeclareSegment{0, 1, address, 2 * kMiB, protocol::SegmentKind::kHost}));
  std::vector<Fd> descriptors;
  const auto answer = client.socket().expect<protocol::SegmentAnswer>(TestClient::kPatience, &descriptors);
  ASSERT_TRUE(answer);
  ASSERT_EQ(descriptors.size(), 1u);
  const auto memory = map_shared(descriptors.front(), Bytes{2 * kMiB});
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  client.record(RecordType::kNeed, 1);
  client.fill(address + 17, 42);
  ASSERT_TRUE(client.wait_completed(2));
  EXPECT_EQ(static_cast<char*>(memory->data())[17], 42);
}

TEST_F(TaskTest, PinnedMemoryHasALimit) {
  start(std::string(kOneDevice) + "[limits]\nhost_of_session = \"4M\"\n");
  TestClient client = opened();
  const uint64_t address = client.window().base + client.window().device_bytes;
  ASSERT_TRUE(client.ask(protocol::DeclareSegment{0, 1, address, 6 * kMiB, protocol::SegmentKind::kHost}));
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cuda_error, 2u);
  EXPECT_THAT(protocol::get_text(answer->text), ::testing::HasSubstr("host_of_session"));
}

TEST_F(TaskTest, WorkersThatDoNotStartAreReportedAndTriedAgain) {
  start(kOneDevice, "warm_workers = 0\n");
  house_->fail_workers(true);
  TestClient client = begun(Bytes{2 * kMiB});
  const Json devices =
      house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["state"] != "ok"; });
  EXPECT_THAT(devices["devices"][0]["state"], ::testing::HasSubstr("exit status 9"));
  house_->fail_workers(false);
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
}

}  // namespace
}  // namespace heddle::daemon::testing
