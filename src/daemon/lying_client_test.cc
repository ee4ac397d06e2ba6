// Clients that lie, one lie each: they are refused with a reason, and an honest neighbour notices nothing.

#include <poll.h>
#include <sys/socket.h>

#include <random>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using namespace protocol;

struct Lie {
  const char* name;
  void (*tell)(TestClient& client);
  const char* answer;  // part of the refusal
};

void segment(TestClient& client, uint64_t number, uint64_t address, uint64_t bytes, uint32_t device = 0,
             SegmentKind kind = SegmentKind::kDevice) {
  (void)client.socket().send(DeclareSegment{0, number, address, bytes, kind, device});
}

const Lie kLies[] = {
    {"SegmentOutsideTheWindow", [](TestClient& c) { segment(c, 1, 2 * kMiB, 2 * kMiB); }, "outside"},
    {"SegmentThatWraps", [](TestClient& c) { segment(c, 1, c.at(0), ~0ull / (2 * kMiB) * (2 * kMiB)); }, "outside"},
    {"DeviceSegmentInTheHostPart",
     [](TestClient& c) { segment(c, 1, c.window().base + c.window().device_bytes, 2 * kMiB); }, "outside"},
    {"SegmentOfOddSize", [](TestClient& c) { segment(c, 1, c.at(0), 2 * kMiB + 4096); }, "2 MiB"},
    {"EmptySegment", [](TestClient& c) { segment(c, 1, c.at(0), 0); }, "2 MiB"},
    {"SegmentAtAnOddAddress", [](TestClient& c) { segment(c, 1, c.at(0) + 4096, 2 * kMiB); }, "2 MiB"},
    {"SegmentOfNoKind", [](TestClient& c) { segment(c, 1, c.at(0), 2 * kMiB, 0, static_cast<SegmentKind>(9)); },
     "kind"},
    {"SegmentOnAClosedDevice", [](TestClient& c) { segment(c, 1, c.at(0), 2 * kMiB, 1); }, "not open"},
    {"SegmentOnNoDevice", [](TestClient& c) { segment(c, 1, c.at(0), 2 * kMiB, 4000000000u); }, "not open"},
    {"OverlappingSegments",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       segment(c, 2, c.at(1), 4 * kMiB);
     },
     "overlaps"},
    {"SegmentAroundAnother",
     [](TestClient& c) {
       segment(c, 1, c.at(4), 2 * kMiB);
       segment(c, 2, c.at(0), 32 * kMiB);
     },
     "overlaps"},
    {"ASegmentNumberTwice",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 2 * kMiB);
       segment(c, 1, c.at(0), 2 * kMiB);
     },
     "not new"},
    {"ReleaseOfDeviceMemory",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 2 * kMiB);
       (void)c.socket().send(DeclareSegment{0, 1, c.at(0), 2 * kMiB, SegmentKind::kDevice, 0, 1});
     },
     "give back"},
    {"TasksBackwards",
     [](TestClient& c) {
       (void)c.begin(5);
       (void)c.begin(3);
     },
     "after task"},
    {"TaskOnNoDevice",
     [](TestClient& c) {
       BeginTask task{1};
       task.need.virtual_device = 77;
       (void)c.socket().send(task);
     },
     "not open"},
    {"NeedOnNoDevice", [](TestClient& c) { (void)c.socket().send(ComputeNeed{77}); }, "not open"},
    {"TasksApartOnOneDevice",
     [](TestClient& c) {
       (void)c.ask(BeginApart{0, {1, {0}}, {1, {0}}});
     },
     "apart"},
    {"TaskApartOnAClosedDevice",
     [](TestClient& c) {
       (void)c.ask(BeginApart{0, {1, {0}}, {1, {1}}});
     },
     "not open"},
    {"MemoryOfNoDevice",
     [](TestClient& c) {
       (void)c.ask(MemoryInfo{0, 77});
     },
     "not open"},
    {"CopyOutsideOfItsMemory",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       (void)c.ask(CopyAcross{0, {c.at(0)}, {c.at(1) + 1}, 2 * kMiB, 1, 1});
     },
     "do not lie in one"},
    {"CopyToNoMemory",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       (void)c.ask(CopyAcross{0, {0x1000}, {c.at(0)}, 8, 1, 1});
     },
     "do not lie in one"},
    {"CopyThatWraps",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       (void)c.ask(CopyAcross{0, {c.at(0), 1ull << 63}, {c.at(0), 1ull << 63}, 8, 3, 1});
     },
     "is no copy"},
    {"CopyOfTheSameBytesForAges",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       (void)c.ask(CopyAcross{0, {c.at(0)}, {c.at(1)}, 8, 1ull << 60, 1});
     },
     "is no copy"},
    {"RequestWithoutANumber", [](TestClient& c) { (void)c.socket().send(MemoryInfo{}); }, "request number 0"},
    {"PinnedMemoryWithoutANumber",
     [](TestClient& c) { segment(c, 1, c.window().base + c.window().device_bytes, 2 * kMiB, 0, SegmentKind::kHost); },
     "request number 0"},
    {"ARequestNumberTwice", [](TestClient& c) { (void)c.socket().send(MemoryInfo{c.last_request()}); }, "not new"},
    {"RequestNumbersBackwards",
     [](TestClient& c) {
       segment(c, 1, c.at(0), 4 * kMiB);
       (void)c.socket().send(CopyAcross{~0ull, {c.at(0)}, {c.at(1)}, 8, 1, 1});
       (void)c.socket().expect<CopyAnswer>(TestClient::kPatience);
       (void)c.socket().send(MemoryInfo{5});
     },
     "not new: the highest was 18446744073709551615"},
    {"AnotherWindow",
     [](TestClient& c) {
       (void)c.ask(OpenDevice{0, 1, 0, {4096, 2 * kMiB, 0}});
     },
     "not offered"},
    {"DeviceOutOfRange",
     [](TestClient& c) {
       (void)c.ask(OpenDevice{0, 99, 0, c.window()});
     },
     "99"},
    {"ModuleWithoutMemory",
     [](TestClient& c) {
       (void)c.socket().send(DeclareModule{1, 0, 100});
     },
     "descriptor"},
    {"ModuleOutOfOrder",
     [](TestClient& c) {
       const Fd memory = *create_memfd("module", Bytes{4096});
       const int lent[] = {memory.get()};
       (void)c.socket().send(DeclareModule{7, 0, 100}, lent);
     },
     "is due"},
    {"ModuleSmallerThanItSays",
     [](TestClient& c) {
       const Fd memory = *create_memfd("module", Bytes{4096});
       const int lent[] = {memory.get()};
       (void)c.socket().send(DeclareModule{1, 0, 5000}, lent);
     },
     "says 5000"},
    {"ModuleThatIsASocket",
     [](TestClient& c) {
       const int lent[] = {c.socket().get()};
       (void)c.socket().send(DeclareModule{1, 0, 100}, lent);
     },
     "memfd"},
    {"AWorkersMessage", [](TestClient& c) { (void)c.socket().send(TaskEnded{1}); }, "none that a program sends"},
    {"TheVaultsMessage", [](TestClient& c) { (void)c.socket().send(Shutdown{}); }, "none that a program sends"},
    {"HelloTwice", [](TestClient& c) { (void)c.socket().send(Hello{}); }, "none that a program sends"},
    {"Garbage", [](TestClient& c) { ::send(c.socket().get(), "garbage", 7, 0); }, "too short"},
};

class LyingClient : public HouseholdTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(LyingClient, IsRefusedAndHarmsNobody) {
  start();
  TestClient honest = running(Bytes{8 * kMiB});
  TestClient liar = opened();
  GetParam().tell(liar);
  const auto refused = liar.socket().expect<Refused>(TestClient::kPatience);
  ASSERT_TRUE(refused) << refused.error().text;
  EXPECT_THAT(get_text(refused->text), ::testing::HasSubstr(GetParam().answer));
  EXPECT_TRUE(liar.wait_binding(Binding::kFailed));
  honest.fill(honest.at(0), 1);
  EXPECT_TRUE(honest.wait_completed(1));
  house_->wait_for("devices", [](const Json& answer) {
    return answer["devices"][0]["used"].get<uint64_t>() + answer["devices"][1]["used"].get<uint64_t>() == 8 * kMiB;
  });
}

INSTANTIATE_TEST_SUITE_P(Lies, LyingClient, ::testing::ValuesIn(kLies),
                         [](const auto& lie) { return std::string(lie.param.name); });

class StrangerTest : public HouseholdTest {
 protected:
  std::string refusal_of(const Hello& hello) {
    auto socket = connect_to(house_->socket());
    if (!socket) return socket.error().text;
    (void)socket->send(hello);
    const auto refused = socket->expect<Refused>(TestClient::kPatience);
    return refused ? get_text(refused->text) : refused.error().text;
  }
};

TEST_F(StrangerTest, AWrongSecretJoinsNoJob) {
  start();
  auto opener = connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}});
  ASSERT_TRUE(job) << job.error().text;
  Hello hello;
  hello.job = (*job)["job"];
  hello.job_secret = (*job)["secret"].get<uint64_t>() + 1;
  EXPECT_THAT(refusal_of(hello), ::testing::HasSubstr("may join"));
}

TEST_F(StrangerTest, NobodyResumesAnothersSession) {
  start();
  TestClient client = opened();
  Hello hello;
  hello.resume_session = client.welcome().session;
  hello.resume_secret = client.welcome().secret + 1;
  EXPECT_THAT(refusal_of(hello), ::testing::HasSubstr("no session"));
  hello.resume_secret = client.welcome().secret;
  EXPECT_THAT(refusal_of(hello), ::testing::HasSubstr("connected already"));
}

TEST_F(StrangerTest, AnotherProtocolVersionIsNamed) {
  start();
  Hello hello;
  hello.version = 99;
  EXPECT_THAT(refusal_of(hello), ::testing::HasSubstr("version 99"));
}

// The worker is the first to look at it.
TEST_F(StrangerTest, ARingThatIsNoneIsNamed) {
  start();
  TestClient liar = opened();
  ASSERT_TRUE(liar.declare(1, liar.at(0), Bytes{2 * kMiB}));
  liar.header().version = 77;
  ASSERT_TRUE(liar.begin(1));
  EXPECT_TRUE(liar.wait_binding(Binding::kFailed));
  EXPECT_THAT(liar.error_text(), ::testing::HasSubstr("version 77"));
  EXPECT_EQ(running(Bytes{2 * kMiB}).header().error.load(), 0u);
}

TEST_F(StrangerTest, SessionsHaveALimit) {
  start(std::string(kOneDevice) + "[limits]\nsessions_per_user = 2\n");
  TestClient first = opened(), second = opened();
  EXPECT_THAT(refusal_of(Hello{}), ::testing::HasSubstr("sessions_per_user"));
}

TEST_F(StrangerTest, SegmentsHaveALimitThatOnlyTheirSessionFeels) {
  start(std::string(kOneDevice) + "[limits]\nsegments_per_session = 3\n");
  TestClient greedy = opened();
  // Twice as many: the program may have freed half of them, and heddled not heard of it yet.
  for (uint64_t i = 1; i <= 7; ++i) ASSERT_TRUE(greedy.declare(i, greedy.at(i), Bytes{2 * kMiB}));
  ASSERT_TRUE(greedy.wait_binding(Binding::kFailed));
  EXPECT_THAT(greedy.error_text(), ::testing::HasSubstr("segments_per_session"));
}

// While heddled has more to do for its user than fits into a turn.
TEST_F(StrangerTest, WhatWasSentBehindARefusedMessageIsNotHandled) {
  start();
  const pid_t heddled = house_->heddled();
  std::vector<TestClient> sessions;
  for (int i = 0; i < 40; ++i) sessions.push_back(opened());
  Command ps;
  const std::string text = R"({"command": "ps"})";
  ps.length = static_cast<uint32_t>(text.size());
  set_text(ps.text, text);
  std::vector<Socket> asking;
  for (int i = 0; i < 40; ++i) {
    asking.push_back(std::move(*connect_to(house_->socket())));
    ASSERT_TRUE(asking.back().send(ps));
  }
  auto liar = connect_to(house_->socket());
  ASSERT_TRUE(liar);
  ASSERT_TRUE(liar->send(BeginTask{1}));
  (void)liar->send(Hello{});
  const auto refused = liar->expect<Refused>(TestClient::kPatience);
  ASSERT_TRUE(refused) << refused.error().text;
  EXPECT_THAT(get_text(refused->text), ::testing::HasSubstr("before Hello"));
  EXPECT_FALSE(liar->expect<Welcome>(TestClient::kPatience)) << "the connection is over";
  TestClient honest = opened();
  EXPECT_EQ((*house_->ask({{"command", "status"}}))["sessions"], 41u);
  EXPECT_EQ(house_->heddled(), heddled);
}

// Asks until its own socket is full, which is soon, and reads then: every answer is there, in order.
TEST_F(StrangerTest, WhoDoesNotReadIsNotReadEither) {
  start();
  auto socket = connect_to(house_->socket());
  ASSERT_TRUE(socket);
  ASSERT_TRUE(set_nonblocking(*socket));
  Command command;
  set_text(command.text, R"({"command": "devices"})");
  command.length = static_cast<uint32_t>(get_text(command.text).size());
  constexpr int kTries = 4000;
  int asked = 0;
  for (int idle = 0;
       asked < kTries && idle < 20;) {  // heddled may be taking some of it: until nothing goes for a while
    if (socket->send(command)) {
      ++asked;
      idle = 0;
    } else {
      pollfd writable{socket->get(), POLLOUT, 0};
      if (::poll(&writable, 1, 50) == 0) ++idle;
    }
  }
  EXPECT_LT(asked, kTries) << "heddled takes questions without end";
  EXPECT_TRUE(house_->ask({{"command", "ping"}})) << "others are served all the while";
  for (int i = 0; i < asked; ++i) ASSERT_TRUE(socket->expect<Reply>(TestClient::kPatience)) << i << " of " << asked;
}

TEST_F(StrangerTest, ConnectionsHaveALimitThatLeavesTheEstablishedAlone) {
  start(std::string(kOneDevice) + "[limits]\nconnections_per_user = 4\n");
  auto first = connect_to(house_->socket());
  ASSERT_TRUE(Household::ask(*first, {{"command", "ping"}}));
  std::vector<Socket> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(*connect_to(house_->socket()));
    ASSERT_TRUE(Household::ask(others.back(), {{"command", "ping"}}));
  }
  for (int i = 0; i < 100; ++i) EXPECT_THAT(refusal_of(Hello{}), ::testing::HasSubstr("connections_per_user"));
  EXPECT_TRUE(Household::ask(*first, {{"command", "ping"}}));
  others.clear();
  EXPECT_TRUE(Household::ask(*first, {{"command", "ping"}}));
  auto next =
      connect_to(house_->socket());  // behind the ends of the others, which heddled has read by now or reads first
  Result<Household::Json> answer = fail(ErrorCode::kTimeout, "not asked");
  for (int i = 0; i < 100 && !answer; ++i) {
    next = connect_to(house_->socket());
    answer = Household::ask(*next, {{"command", "ping"}});
  }
  EXPECT_TRUE(answer) << answer.error().text;
}

TEST_F(StrangerTest, TheWorkerSocketBelievesOnlyWorkers) {
  start();
  auto socket = connect_to(house_->socket() + ".worker");
  ASSERT_TRUE(socket);
  ASSERT_TRUE(socket->send(WorkerReady{.worker = 1, .secret = 1}));
  EXPECT_TRUE(socket->expect<Quit>(TestClient::kPatience));  // a worker of a life of which nothing is left should end
  EXPECT_EQ(socket->expect<StartWorker>(TestClient::kPatience).error().code, ErrorCode::kPeerDied);
  EXPECT_EQ(running(Bytes{2 * kMiB}).header().error.load(), 0u);
}

TEST_F(StrangerTest, GarbageOfAllSizesLeavesHeddledAsItWas) {
  start();
  const pid_t heddled = house_->heddled();
  ASSERT_GT(heddled, 1);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    auto socket = connect_to(house_->socket() + (round % 3 == 0 ? ".worker" : ""));
    ASSERT_TRUE(socket);
    std::vector<uint32_t> garbage(2 + random() % 200);
    for (uint32_t& word : garbage) word = random() % 600;
    garbage[0] = random() % 2 ? 1 + random() % 10 : random() % 600;
    garbage[1] = static_cast<uint32_t>(garbage.size() * 4);
    ::send(socket->get(), garbage.data(), garbage.size() * 4, MSG_NOSIGNAL);
  }
  EXPECT_EQ(house_->heddled(), heddled);
}

}  // namespace
}  // namespace heddle::daemon::testing
