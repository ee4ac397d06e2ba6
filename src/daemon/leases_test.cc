// Leases without processes: real control pages, a policy that the test steers, a clock that stands still.

#include "daemon/leases.h"

#include <gmock/gmock.h>

#include "daemon/testing/books.h"

namespace heddle::daemon {
namespace {

using policy::Lend;
using policy::Lessee;
using policy::Withdraw;
using protocol::Lease;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = protocol::Lease::State;

// Writes down what it is told and orders what the test has put there.
struct ScriptedDispatch : policy::Dispatch {
  struct Script {
    bool exclusive = true;
    std::vector<std::string> told;
    std::vector<policy::LeaseOrder> orders;
    std::optional<TimePoint> next;
    Duration served{};
  };
  explicit ScriptedDispatch(Script& steered) : script(steered) {}
  bool exclusive() const override { return script.exclusive; }
  void joined(Lessee lessee, const policy::Tenant&, TimePoint) override { say("joined", lessee); }
  void left(Lessee lessee, TimePoint) override { say("left", lessee); }
  void pending(Lessee lessee, TimePoint) override { say("pending", lessee); }
  void drained(Lessee lessee, TimePoint) override { say("drained", lessee); }
  void served(Lessee, const policy::Service& service, TimePoint) override {
    script.served += service.busy + service.copies;
  }
  void returned(Lessee lessee, TimePoint) override { say("returned", lessee); }
  void decide(TimePoint, std::vector<policy::LeaseOrder>& out) override { out = std::exchange(script.orders, {}); }
  std::optional<TimePoint> next(TimePoint) const override { return script.next; }
  void say(const char* what, Lessee lessee) {
    script.told.push_back(std::string(what) + " " + std::to_string(lessee.session.value));
  }
  Script& script;
};

class LeasesTest : public ::testing::Test, protected testing::Books {
 protected:
  LeasesTest() : Books("leases_test") {
    registry_.devices.emplace_back();
    shared_.config.dispatch.return_limit = std::chrono::seconds(10);
    clock_.advance(std::chrono::seconds(100));
    open();
  }
  void open() {
    leases_.open([this] { return std::make_unique<ScriptedDispatch>(script_); });
  }
  // A session whose task runs on device 0, not yet told to the leases.
  Session& placed(uint64_t id) {
    Session session;
    session.id = SessionId{id};
    session.job = JobId{id + 100};
    session.devices.resize(1);
    VirtualDevice& device = session.devices[0];
    auto ring = protocol::RingMemory::create(shared_.config.ring);
    device.ring = std::move(ring->second);
    auto control = protocol::ControlPage::create();
    device.control = std::move(control->second);
    device.task = std::make_unique<Task>();
    device.task->state = TaskState::kRunning;
    device.task->granted = clock_.now();
    device.worker = &worker_;
    return registry_.sessions.emplace(session.id, std::move(session)).first->second;
  }
  Session& joined(uint64_t id) {
    Session& session = placed(id);
    leases_.joined(session, session.devices[0]);
    return session;
  }
  static Lease lease(Session& session) {
    Lease lease;
    EXPECT_TRUE(session.devices[0].control->read_lease(lease));
    return lease;
  }
  static Lessee lessee(const Session& session) { return {session.id, 0}; }
  void order(const policy::LeaseOrder& order) { script_.orders.push_back(order); }
  void lend(const Session& session, TimePoint until = TimePoint::max()) {
    order(Lend{lessee(session), until});
    leases_.backlog(session, session.devices[0]);
    leases_.decide();
  }
  void returned(Session& session, uint64_t generation) {
    leases_.returned(session, session.devices[0], generation);
    leases_.decide();
  }
  std::string view(Session& session) {
    const auto view = leases_.view(session, session.devices[0]);
    return view ? view->state : "none";
  }
  static void session_used(Session& session, uint64_t busy_ns) {
    session.devices[0].control->publish({.busy_ns = busy_ns});
  }
  std::vector<std::string> take_told() { return std::exchange(script_.told, {}); }
  // Lets time go by; what falls due is handled as Turn does.
  void pass(Duration time) {
    clock_.advance(time);
    EXPECT_TRUE(loop_->run_once(Duration{}));
    while (auto event = events_.next()) {
      if (const auto* due = std::get_if<LeasesDue>(&*event)) leases_.due(due->device);
      if (const auto* overdue = std::get_if<LeaseOverdue>(&*event)) overdue_.push_back(*overdue);
      leases_.decide();
    }
  }

  ScriptedDispatch::Script script_;
  Worker worker_;
  std::vector<LeaseOverdue> overdue_;
  Leases leases_{shared_};
};

TEST_F(LeasesTest, UnderAPolicyThatIsNotExclusiveNothingIsWrittenOrSaid) {
  script_.exclusive = false;
  Session& session = joined(1);
  leases_.backlog(session, session.devices[0]);
  leases_.decide();
  leases_.left(session, session.devices[0]);
  EXPECT_EQ(lease(session).word(), Lease{}.word());
  EXPECT_THAT(script_.told, IsEmpty());
  EXPECT_EQ(view(session), "none");
}

TEST_F(LeasesTest, LeasesThatAnotherPolicyLeftAreOpened) {
  script_.exclusive = false;
  Session& session = placed(1);
  session.devices[0].control->write_lease({.state = State::kWithdrawn, .generation = 3});
  leases_.joined(session, session.devices[0], true);
  EXPECT_EQ(lease(session).state, State::kOpen);
}

TEST_F(LeasesTest, WhoJoinsMayNotIssueBeforeHeIsLentTheDevice) {
  Session& session = joined(1);
  EXPECT_EQ(lease(session).state, State::kWithdrawn);
  EXPECT_EQ(view(session), "idle");
  leases_.backlog(session, session.devices[0]);
  EXPECT_EQ(view(session), "waits");
  const uint32_t bell = session.devices[0].ring->header().to_worker.word.load();
  lend(session, clock_.now() + Duration(5000));
  EXPECT_EQ(lease(session).state, State::kHeld);
  EXPECT_EQ(lease(session).generation, 1u);
  EXPECT_EQ(lease(session).until_ns, static_cast<uint64_t>((clock_.now() + Duration(5000)).time_since_epoch().count()));
  EXPECT_EQ(lease(session).window_ns, 2'000'000u);
  EXPECT_NE(session.devices[0].ring->header().to_worker.word.load(), bell);
  EXPECT_EQ(view(session), "held");
  ASSERT_EQ(leases_.holders({}).size(), 1u);
  EXPECT_EQ(leases_.holders({})[0].session, session.id);
  clock_.advance(Duration(7000));
  EXPECT_EQ(view(session), "draining");
  EXPECT_EQ(clock_.now() - leases_.holders({})[0].view.since, Duration(2000)) << "since its time was over";
  EXPECT_THAT(take_told(), ElementsAre("joined 1", "pending 1", "pending 1"));
}

TEST_F(LeasesTest, AWithdrawnLeaseIsIdleWhenItIsReturned) {
  Session& session = joined(1);
  lend(session);
  take_told();
  order(Withdraw{lessee(session)});
  leases_.due(DeviceId{0});
  leases_.decide();
  EXPECT_EQ(lease(session).state, State::kWithdrawn);
  EXPECT_EQ(lease(session).generation, 1u);
  EXPECT_EQ(view(session), "draining");
  EXPECT_THAT(take_told(), IsEmpty());
  returned(session, 1);
  EXPECT_THAT(take_told(), ElementsAre("returned 1"));
  returned(session, 1);
  EXPECT_THAT(take_told(), IsEmpty()) << "it is said again after a restart of heddled";
  EXPECT_EQ(view(session), "waits");
}

TEST_F(LeasesTest, AnOldGenerationIsNoReturn) {
  Session& session = joined(1);
  lend(session);
  returned(session, 1);
  lend(session);
  EXPECT_EQ(lease(session).generation, 2u);
  take_told();
  returned(session, 1);
  EXPECT_THAT(take_told(), IsEmpty());
  EXPECT_EQ(view(session), "held");
}

TEST_F(LeasesTest, AHolderIsToldWhetherOthersWait) {
  Session &first = joined(1), &second = joined(2);
  lend(first);
  EXPECT_FALSE(lease(first).wanted);
  leases_.backlog(second, second.devices[0]);
  leases_.decide();
  EXPECT_TRUE(lease(first).wanted);
  EXPECT_FALSE(lease(second).wanted);
  leases_.drained(second, second.devices[0]);
  leases_.decide();
  EXPECT_FALSE(lease(first).wanted);
  EXPECT_EQ(lease(first).generation, 1u);
}

// Where the policy lends to several at a time.
TEST_F(LeasesTest, WhoHasTheDeviceTooDoesNotWaitForIt) {
  Session &first = joined(1), &second = joined(2), &third = joined(3);
  lend(first);
  lend(second);
  EXPECT_FALSE(lease(first).wanted);
  EXPECT_FALSE(lease(second).wanted);
  leases_.backlog(third, third.devices[0]);
  leases_.decide();
  EXPECT_TRUE(lease(first).wanted);
  EXPECT_TRUE(lease(second).wanted);
  leases_.drained(third, third.devices[0]);
  leases_.decide();
  EXPECT_FALSE(lease(first).wanted);
  order(Withdraw{lessee(second)});
  leases_.backlog(second, second.devices[0]);
  leases_.decide();
  EXPECT_TRUE(lease(first).wanted);  // the second has more to do, and may not
}

TEST_F(LeasesTest, WhoLeavesHoldsNothing) {
  Session &first = joined(1), &second = joined(2);
  lend(first);
  take_told();
  leases_.left(first, first.devices[0]);
  EXPECT_THAT(take_told(), ElementsAre("left 1"));
  EXPECT_EQ(lease(first).state, State::kWithdrawn);
  EXPECT_EQ(view(first), "none");
  leases_.left(first, first.devices[0]);
  returned(first, 1);
  leases_.backlog(first, first.devices[0]);
  EXPECT_THAT(take_told(), IsEmpty());
  lend(second);
  EXPECT_EQ(view(second), "held");
}

TEST_F(LeasesTest, ThePolicyIsToldWhatWasUsedOnce) {
  Session& session = joined(1);
  lend(session);
  clock_.advance(Duration(1000));
  session.devices[0].control->publish({.copy_ns = 20, .busy_ns = 300});
  returned(session, 1);
  EXPECT_EQ(script_.served, Duration(320));
  lend(session);
  session.devices[0].control->publish({.copy_ns = 20, .busy_ns = 350});
  returned(session, 2);
  EXPECT_EQ(script_.served, Duration(370));
}

// Behind a host call nothing is on the device, but its worker cannot tell.
TEST_F(LeasesTest, WhatIsUnderWayCountsOnceItIsDoneAndOnce) {
  Session& session = joined(1);
  lend(session);
  const auto began = static_cast<uint64_t>(clock_.now().time_since_epoch().count());
  session.devices[0].control->publish({.busy_ns = 100, .busy_since_ns = began});
  clock_.advance(Duration(5000));
  returned(session, 1);
  EXPECT_EQ(script_.served, Duration(100));
  lend(session);
  session.devices[0].control->publish({.busy_ns = 400});
  clock_.advance(Duration(5000));
  returned(session, 2);
  EXPECT_EQ(script_.served, Duration(400));
}

TEST_F(LeasesTest, WhileOthersWaitTheHoldersUseIsLookedAtEachTenMilliseconds) {
  Session &first = joined(1), &second = joined(2);
  leases_.backlog(second, second.devices[0]);
  lend(first);
  clock_.advance(std::chrono::milliseconds(5));
  session_used(first, 4'000'000);
  pass(std::chrono::milliseconds(5));
  EXPECT_EQ(script_.served, std::chrono::milliseconds(4));
}

TEST_F(LeasesTest, DecidesWhenThePolicyWantsTo) {
  Session& session = joined(1);
  script_.next = clock_.now() + std::chrono::milliseconds(3);
  leases_.decide();
  order(Lend{lessee(session)});
  pass(std::chrono::milliseconds(2));
  EXPECT_EQ(view(session), "idle");
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(view(session), "held");
}

// A worker that is stopped, or lies, keeps the device from the others for so long and no longer.
TEST_F(LeasesTest, ALeaseThatDoesNotComeBackIsOverdueOnce) {
  Session& session = joined(1);
  lend(session, clock_.now() + std::chrono::seconds(1));
  pass(std::chrono::seconds(10));
  EXPECT_THAT(overdue_, IsEmpty());
  pass(std::chrono::seconds(1));
  pass(std::chrono::seconds(1));
  ASSERT_EQ(overdue_.size(), 1u);
  EXPECT_EQ(overdue_[0].session, session.id);
  EXPECT_THAT(overdue_[0].text, HasSubstr("on device 0 went on for 10"));
  EXPECT_THAT(overdue_[0].text, HasSubstr("waits for 10"));
}

TEST_F(LeasesTest, ALeaseWithoutAnEndIsNeverOverdue) {
  Session& session = joined(1);
  lend(session);
  pass(std::chrono::hours(1));
  EXPECT_THAT(overdue_, IsEmpty());
  order(Withdraw{lessee(session)});
  leases_.due(DeviceId{0});
  leases_.decide();
  pass(std::chrono::seconds(10));
  EXPECT_EQ(overdue_.size(), 1u);
}

// The new heddled's policy knows nothing of them.
TEST_F(LeasesTest, AfterARestartNobodyIsLentTheDeviceBeforeOldLeasesAreBack) {
  Session &holder = placed(1), &other = placed(2);
  holder.devices[0].control->write_lease({.state = State::kHeld, .generation = 5});
  leases_.joined(holder, holder.devices[0], true);
  leases_.joined(other, other.devices[0], true);
  EXPECT_EQ(lease(holder).state, State::kWithdrawn);
  EXPECT_EQ(lease(holder).generation, 6u);
  returned(other, 1);
  EXPECT_EQ(view(holder), "draining");
  EXPECT_EQ(view(other), "idle");
  lend(other);
  EXPECT_EQ(view(other), "waits");
  take_told();
  returned(holder, 5);
  EXPECT_EQ(view(holder), "draining") << "said again by a worker that has not yet seen that it is to drain";
  returned(holder, 6);
  EXPECT_THAT(take_told(), IsEmpty()) << "it never lent that one";
  EXPECT_EQ(view(other), "held");
  returned(other, 2);
  lend(holder);
  EXPECT_EQ(lease(holder).generation, 7u);
}

// The last policy had no leases: what its worker handed over is on the device without one.
TEST_F(LeasesTest, WhereEverybodyCouldIssueBeforeARestartTheDeviceIsDrainedFirst) {
  Session &busy = placed(1), &other = joined(2);
  leases_.joined(busy, busy.devices[0], true);
  EXPECT_EQ(lease(busy).state, State::kWithdrawn);
  EXPECT_EQ(view(busy), "draining");
  lend(other);
  EXPECT_EQ(view(other), "waits");
  returned(busy, lease(busy).generation);
  EXPECT_EQ(view(other), "held");
}

// Its program may not launch anything for a long time.
TEST_F(LeasesTest, AfterARestartATaskWithoutAWorkerHoldsNothing) {
  Session &placed_only = placed(1), &other = placed(2);
  placed_only.devices[0].worker = nullptr;
  placed_only.devices[0].control->write_lease({.state = State::kWithdrawn, .generation = 5});
  leases_.joined(placed_only, placed_only.devices[0], true);
  leases_.joined(other, other.devices[0], true);
  EXPECT_EQ(view(placed_only), "idle");
  returned(other, 1);
  lend(other);
  EXPECT_EQ(view(other), "held");
}

TEST_F(LeasesTest, AnOldLeaseWhoseWorkerDoesNotComeBackIsOverdueToo) {
  Session &holder = placed(1), &other = joined(2);
  holder.devices[0].control->write_lease({.state = State::kWithdrawn, .generation = 5});
  leases_.joined(holder, holder.devices[0], true);
  lend(other);
  pass(std::chrono::seconds(10));
  ASSERT_EQ(overdue_.size(), 1u);
  leases_.left(holder, holder.devices[0]);
  leases_.decide();
  EXPECT_EQ(view(other), "held");
}

}  // namespace
}  // namespace heddle::daemon
