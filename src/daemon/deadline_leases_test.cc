// Leases under deadline policies: several devices, real policies, workers that the test plays, a clock that stands
// still.

#include <gmock/gmock.h>

#include "daemon/leases.h"
#include "daemon/testing/books.h"
#include "policy/dispatch/table.h"

namespace heddle::daemon {
namespace {

using policy::JobClass;
using protocol::Lease;
using State = protocol::Lease::State;

constexpr const char* kModel = "P100";

Duration in_ms(int64_t count) {
  return std::chrono::milliseconds(count);
}

class DeadlineLeases : public ::testing::Test, protected testing::Books {
 protected:
  DeadlineLeases() : Books("deadline_leases_test") { clock_.advance(std::chrono::seconds(100)); }

  void open(const std::string& policy, uint64_t devices) {
    for (uint64_t id = 0; id < devices; ++id) registry_.devices.emplace_back().id = DeviceId{id};
    open(policy);
  }
  // As a heddled does it that has just started.
  void open(const std::string& policy) {
    std::vector<policy::DeviceSpec> specs(registry_.devices.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      specs[i].id = registry_.devices[i].id;
      specs[i].model = kModel;
    }
    shared_.config.dispatch.policy = policy;
    family_ = std::make_unique<policy::DeadlineFamily>((*policy::find_dispatch(policy))->deadline, specs);
    leases_.open([this, next = uint64_t{0}]() mutable { return family_->dispatch(DeviceId{next++}); }, family_.get());
  }
  // A program whose task asks for a device.
  Session& asks(uint64_t id, JobClass kind) {
    Job& job = registry_.jobs[JobId{id + 100}];
    job.id = JobId{id + 100};
    job.tenant.kind = kind;
    Session session;
    session.id = SessionId{id};
    session.job = job.id;
    session.model = kModel;
    session.program = "program";
    session.devices.resize(1);
    VirtualDevice& device = session.devices[0];
    device.ring = std::move(protocol::RingMemory::create(shared_.config.ring)->second);
    device.control = std::move(protocol::ControlPage::create()->second);
    device.task = std::make_unique<Task>();
    device.task->state = TaskState::kWaiting;
    device.task->serial = 1;
    device.task->arrived = clock_.now();
    Session& placed = registry_.sessions.emplace(session.id, std::move(session)).first->second;
    leases_.waits(placed, placed.devices[0]);
    turn();
    return placed;
  }
  // The scheduler gives it to the task, where the gate lets it.
  void place(Session& session, uint64_t device) {
    ASSERT_TRUE(family_->may_go({session.id, 0}));
    ASSERT_TRUE(family_->open({session.id, 0}, DeviceId{device}));
    family_->placed({session.id, 0}, DeviceId{device});
    Task& task = *session.devices[0].task;
    task.state = TaskState::kRunning;
    task.device = DeviceId{device};
    task.granted = clock_.now();
    leases_.joined(session, session.devices[0]);
    turn();
  }
  Session& runs(uint64_t id, JobClass kind, uint64_t device) {
    Session& session = asks(id, kind);
    place(session, device);
    backlog(session);
    return session;
  }
  void backlog(Session& session) {
    leases_.backlog(session, session.devices[0]);
    turn();
  }
  void drained(Session& session) {
    leases_.drained(session, session.devices[0]);
    turn();
  }
  void returned(Session& session) {
    leases_.returned(session, session.devices[0], lease(session).generation);
    turn();
  }
  void left(Session& session) {
    leases_.left(session, session.devices[0]);
    turn();
  }
  // As Turn does it, but that no scheduler decides.
  void turn() {
    do {
      leases_.plan();
      leases_.decide();
    } while (leases_.plan());
  }
  // Lets time go by; what falls due is handled.
  void pass(Duration time) {
    clock_.advance(time);
    ASSERT_TRUE(loop_->run_once(Duration{}));
    while (auto event = events_.next()) {
      if (const auto* due = std::get_if<LeasesDue>(&*event)) leases_.due(due->device);
      turn();
    }
  }
  static Lease lease(const Session& session) {
    Lease lease;
    EXPECT_TRUE(session.devices[0].control->read_lease(lease));
    return lease;
  }
  std::string view(const Session& session) const { return leases_.view(session, session.devices[0])->state; }
  const policy::Sla& sla(const Session& session) { return registry_.jobs[session.job].sla; }

  std::unique_ptr<policy::DeadlineFamily> family_;
  Leases leases_{shared_};
};

TEST_F(DeadlineLeases, ABatchLesseeGivesWayToARequestOnItsDevice) {
  open("priority:soft", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  EXPECT_EQ(view(batch), "held");
  EXPECT_TRUE(lease(batch).wanted) << "requests that have no device wait for it";
  Session& server = asks(2, JobClass::kUserFacing);
  EXPECT_EQ(lease(batch).state, State::kWithdrawn) << "in the middle of its burst";
  EXPECT_FALSE(family_->open({server.id, 0}, DeviceId{0})) << "work of batch is in flight still";
  returned(batch);
  place(server, 0);
  backlog(server);
  EXPECT_EQ(view(server), "held");
  EXPECT_EQ(view(batch), "waits");
  drained(server);
  returned(server);
  EXPECT_EQ(view(batch), "held");
}

// Nobody says anything meanwhile: that the request is late by then, and batch's turn over, is looked at in time.
TEST_F(DeadlineLeases, WithoutRevocationALateRequestEndsTheTurn) {
  open("priority:off", 2);
  Session& first = runs(1, JobClass::kBatch, 0);
  Session& second = runs(2, JobClass::kBatch, 1);
  asks(3, JobClass::kUserFacing);
  pass(in_ms(900));
  EXPECT_EQ(lease(first).state, State::kHeld);
  pass(in_ms(100));
  EXPECT_EQ(lease(first).state, State::kWithdrawn);
  EXPECT_EQ(lease(second).state, State::kHeld) << "one for each request";
  pass(in_ms(5000));
  EXPECT_EQ(lease(second).state, State::kHeld);
}

// All that is known of revocations is that they take longer than the SLO.
TEST_F(DeadlineLeases, RequestsDoNotStarveWhereRevocationsTookLonger) {
  open("priority:soft", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  for (uint64_t id = 2; id < 20; ++id) {
    Session& server = asks(id, JobClass::kUserFacing);
    ASSERT_EQ(lease(batch).state, State::kWithdrawn) << id;
    pass(in_ms(300));
    leases_.returned(batch, batch.devices[0], lease(batch).generation);
    leases_.plan();
    place(server, 0);
    backlog(server);
    EXPECT_EQ(view(server), "held");
    left(server);
    EXPECT_EQ(view(batch), "held");
  }
}

TEST_F(DeadlineLeases, WithoutRevocationABurstEndsFirst) {
  open("priority:off", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  Session& server = asks(2, JobClass::kUserFacing);
  EXPECT_EQ(lease(batch).state, State::kHeld);
  drained(batch);
  place(server, 0);
  backlog(server);
  EXPECT_EQ(lease(batch).state, State::kWithdrawn);
  returned(batch);
  EXPECT_EQ(view(server), "held");
}

TEST_F(DeadlineLeases, ARequestOfAServiceThatHasItsDeviceTakesItBack) {
  open("priority:soft", 2);
  Session& server = runs(1, JobClass::kUserFacing, 0);
  drained(server);
  Session &first = runs(2, JobClass::kBatch, 1), &second = runs(3, JobClass::kBatch, 0);
  returned(server);
  EXPECT_EQ(view(second), "held");
  backlog(server);
  EXPECT_EQ(lease(second).state, State::kWithdrawn);
  EXPECT_EQ(lease(first).state, State::kHeld) << "on the other device";
  returned(second);
  EXPECT_EQ(view(server), "held");
}

TEST_F(DeadlineLeases, ElasticKeepsADeviceForRequests) {
  open("elastic:soft", 2);
  Session& server = runs(1, JobClass::kUserFacing, 0);
  Session& batch = runs(2, JobClass::kBatch, 1);
  clock_.advance(in_ms(100));
  server.devices[0].control->publish({.busy_ns = 100'000'000});
  drained(server);
  EXPECT_EQ(view(batch), "held");
  Session& more = asks(3, JobClass::kBatch);
  EXPECT_FALSE(family_->open({more.id, 0}, DeviceId{0})) << "it is kept for the next request";
  for (const int seconds : {15, 5}) pass(std::chrono::seconds(seconds));
  EXPECT_TRUE(family_->open({more.id, 0}, DeviceId{0})) << "requests have not come for long";
}

TEST_F(DeadlineLeases, FifoKnowsNoClasses) {
  open("fifo", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  asks(2, JobClass::kUserFacing);
  EXPECT_EQ(lease(batch).state, State::kHeld);
}

TEST_F(DeadlineLeases, RequestsAreCountedFromTheTaskThatTheyWaitedWith) {
  open("priority:soft", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  Session& server = asks(2, JobClass::kUserFacing);
  clock_.advance(in_ms(150));
  returned(batch);
  place(server, 0);
  backlog(server);
  clock_.advance(in_ms(40));
  drained(server);
  EXPECT_EQ(sla(server).met(), 1u);
  EXPECT_NEAR(static_cast<double>(sla(server).times().at(1).count()), 190e6, 4e6);
  EXPECT_NEAR(static_cast<double>(sla(server).waits().at(1).count()), 150e6, 4e6);
  backlog(server);
  clock_.advance(in_ms(201));
  drained(server);
  EXPECT_EQ(sla(server).missed(), 1u);
  EXPECT_EQ(sla(batch).requests(), 0u);
}

TEST_F(DeadlineLeases, ARequestEndsWithItsTaskAndIsMissedWhereItsSessionFails) {
  open("priority:soft", 2);
  Session &well = runs(1, JobClass::kUserFacing, 0), &fails = runs(2, JobClass::kUserFacing, 1);
  left(well);
  EXPECT_EQ(sla(well).met(), 1u);
  fails.failed = true;
  left(fails);
  EXPECT_EQ(sla(fails).missed(), 1u);
}

TEST_F(DeadlineLeases, WhoIsRefusedWaitsNoLonger) {
  open("priority:soft", 1);
  Session& batch = runs(1, JobClass::kBatch, 0);
  Session& server = asks(2, JobClass::kUserFacing);
  left(server);
  EXPECT_EQ(sla(server).missed(), 1u);
  returned(batch);
  EXPECT_EQ(view(batch), "held") << "the device is kept for nobody";
}

TEST_F(DeadlineLeases, ARequestGoesOnInAnotherWorker) {
  open("priority:soft", 1);
  Session& server = runs(1, JobClass::kUserFacing, 0);
  clock_.advance(in_ms(30));
  leases_.worker_gone(server, server.devices[0]);
  turn();
  clock_.advance(in_ms(30));
  backlog(server);
  EXPECT_EQ(view(server), "held");
  drained(server);
  EXPECT_EQ(sla(server).requests(), 1u);
  EXPECT_NEAR(static_cast<double>(sla(server).times().at(1).count()), 60e6, 2e6);
}

// Of a batch lessee in a kernel, on whose device a service has a request.
class HardRevocation : public DeadlineLeases {
 protected:
  void SetUp() override {
    open("priority:hard", 1);
    server_ = &runs(1, JobClass::kUserFacing, 0);
    drained(*server_);
    clock_.advance(in_ms(10));
    batch_ = &runs(2, JobClass::kBatch, 0);
    returned(*server_);
    ASSERT_EQ(view(*batch_), "held");
  }
  // Its worker has so much of a kernel behind it, of which nothing is done yet.
  void compute(Duration since) {
    const auto now = static_cast<uint64_t>(clock_.now().time_since_epoch().count());
    batch().control->note_affected(++records_);
    batch().control->publish({.busy_ns = done_, .busy_since_ns = now - static_cast<uint64_t>(since.count())});
  }
  void complete(Duration busy) {
    batch().control->note_cut({records_, records_, batch().control->log().variables_saved});
    batch().control->publish({.busy_ns = done_ += static_cast<uint64_t>(busy.count())});
  }
  VirtualDevice& batch() { return batch_->devices[0]; }
  bool ordered() {
    bool any = false;
    while (auto event = events_.next()) any |= std::holds_alternative<TerminationOrdered>(*event);
    return any && leases_.awaits_termination(*batch_, batch());
  }
  // heddled is another one, which has found both tasks with their workers.
  void restart() {
    open("priority:hard");
    for (Session* each : {server_, batch_}) {
      each->devices[0].worker = &worker_;
      leases_.joined(*each, each->devices[0], true);
    }
    turn();
  }
  const policy::Sla& of_device() { return *leases_.bound(DeviceId{0})->sla; }

  Session *server_ = nullptr, *batch_ = nullptr;
  Worker worker_;
  uint64_t records_ = 0, done_ = 0;
};

TEST_F(HardRevocation, IsSoftWhileThereIsTime) {
  backlog(*server_);
  EXPECT_EQ(lease(*batch_).state, State::kWithdrawn);
  EXPECT_FALSE(ordered());
  clock_.advance(in_ms(6));
  returned(*batch_);
  EXPECT_EQ(view(*server_), "held");
  EXPECT_EQ(sla(*batch_).revocations(), 1u);
  EXPECT_EQ(sla(*batch_).terminations(), 0u);
  EXPECT_NEAR(static_cast<double>(sla(*batch_).revocation_latencies().at(1).count()), 6e6, 2e5);
}

TEST_F(HardRevocation, OfWhatHasRunForLongIsOrderedAtOnce) {
  clock_.advance(in_ms(500));
  compute(in_ms(400));
  backlog(*server_);
  EXPECT_TRUE(ordered());
}

TEST_F(HardRevocation, TheDeviceIsLentOnlyOnceTheWorkerIsGone) {
  clock_.advance(in_ms(500));
  compute(in_ms(400));
  backlog(*server_);
  ASSERT_TRUE(ordered());
  clock_.advance(in_ms(1));
  leases_.terminated(*batch_, batch());
  turn();
  EXPECT_EQ(view(*server_), "waits");
  clock_.advance(in_ms(12));
  leases_.worker_gone(*batch_, batch());
  turn();
  EXPECT_EQ(view(*server_), "held");
  backlog(*batch_);
  EXPECT_EQ(view(*batch_), "waits") << "its new worker";
  for (const policy::Sla* each : {&sla(*batch_), &of_device()}) {
    EXPECT_EQ(each->terminations(), 1u);
    EXPECT_NEAR(static_cast<double>(each->termination_latencies().at(1).count()), 13e6, 3e5);
    EXPECT_EQ(each->lost(), in_ms(401));
  }
  EXPECT_EQ(sla(*server_).revocations(), 0u);
}

// It cannot be waited for where it has taken longer already, in the worker before.
TEST_F(HardRevocation, WhatIsRunAgainIsKnownToTakeLong) {
  clock_.advance(in_ms(500));
  compute(in_ms(400));
  for (int round = 0; round < 3; ++round) {
    backlog(*server_);
    ASSERT_TRUE(ordered()) << round;
    leases_.terminated(*batch_, batch());
    leases_.worker_gone(*batch_, batch());
    drained(*server_);
    backlog(*batch_);
    returned(*server_);
    ASSERT_EQ(view(*batch_), "held");
    clock_.advance(in_ms(20));
    compute(in_ms(20));
  }
  complete(in_ms(390));
  compute(in_ms(20));
  backlog(*server_);
  EXPECT_FALSE(ordered()) << "of what comes behind it nothing is known";
}

// Nobody notes when it was done: what was busy since the look before counts.
TEST_F(HardRevocation, WhatWasDoneIsNotLost) {
  clock_.advance(in_ms(100));
  compute(in_ms(100));
  pass(in_ms(1));
  complete(in_ms(90));
  compute(in_ms(11));
  clock_.advance(in_ms(400));
  leases_.terminated(*batch_, batch());
  leases_.worker_gone(*batch_, batch());
  EXPECT_LE(sla(*batch_).lost(), in_ms(501));
  EXPECT_GE(sla(*batch_).lost(), in_ms(411));
}

TEST_F(HardRevocation, WhoDrainsInstead) {
  clock_.advance(in_ms(500));
  compute(in_ms(400));
  backlog(*server_);
  ASSERT_TRUE(ordered());
  leases_.not_terminated(*batch_, batch(), "because");
  turn();
  EXPECT_FALSE(ordered()) << "nor once more";
  EXPECT_EQ(batch().terminations.refused, 1u);
  EXPECT_EQ(batch().terminations.why, "because");
  EXPECT_EQ(view(*batch_), "draining");
  clock_.advance(in_ms(50));
  complete(in_ms(450));
  returned(*batch_);
  EXPECT_EQ(view(*server_), "held");
  EXPECT_EQ(sla(*batch_).terminations(), 0u);
  EXPECT_EQ(sla(*batch_).terminations_refused(), 1u);
  EXPECT_EQ(sla(*batch_).revocations(), 1u);
}

// On a machine that is busy a worker does not always stop in time.
TEST_F(HardRevocation, AfterARestartWhoCouldNotBeTerminatedIsTriedAgain) {
  clock_.advance(in_ms(500));
  restart();
  returned(*server_);
  backlog(*server_);
  ASSERT_TRUE(ordered());
  leases_.not_terminated(*batch_, batch(), "its worker does not stop");
  turn();
  EXPECT_FALSE(ordered()) << "not at once";
  compute(in_ms(400));
  pass(in_ms(250));
  EXPECT_FALSE(leases_.awaits_termination(*batch_, batch())) << "it would not outlive that now";
  complete(in_ms(400));
  pass(in_ms(20));
  EXPECT_TRUE(leases_.awaits_termination(*batch_, batch()));
}

TEST_F(HardRevocation, ALeaseThatComesBackMeanwhileIsTerminatedNoLonger) {
  clock_.advance(in_ms(500));
  compute(in_ms(400));
  backlog(*server_);
  ASSERT_TRUE(ordered());
  returned(*batch_);
  EXPECT_FALSE(leases_.awaits_termination(*batch_, batch()));
  EXPECT_EQ(view(*server_), "held");
}

}  // namespace
}  // namespace heddle::daemon
