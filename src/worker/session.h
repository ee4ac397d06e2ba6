#pragma once

#include <memory>
#include <thread>

#include "worker/completions.h"
#include "worker/issuer.h"
#include "worker/printer.h"

namespace heddle::worker {

// One session bound to this worker: its ring, and the two threads that serve it, task after task, until the object
// goes.
class Session {
 public:
  struct Options {
    DeviceModel model;
    protocol::Window window;
    uint64_t task_serial = 0;
    ModuleReader read;
    bool shared_faults = false;  // what the device reports may be another client's fault
    bool variables_stay = true;  // the next worker will have modules' variables where this one has them
    bool all_sms = true;         // and as many SMs of the device as this one
    bool guarded = false;        // keeps back what could not be run again (Guard)
  };

  // Starts serving `ring`, whose control page `control` is, on `context`. Everything lent must outlive the session.
  static Result<std::unique_ptr<Session>> start(const Fd& ring, const Fd& control, Options options,
                                                device::Context& context, Printer& printer, Outbox& outbox);
  ~Session();

  // heddled's kModule, kMapSegment, kProceed, kNextTask and kDeviceFault, in the order in which they came.
  void post(protocol::Packet packet) { issuer_->post(std::move(packet)); }

 private:
  // What lies in the control page's memory.
  struct Page {
    protocol::ControlPage usage;
    protocol::Usage left;
    protocol::SavedVariables saved;
    protocol::UndoLog undo;
    Duration long_from;  // ControlPage::long_from()
    SaveBudget budget;
  };
  Session(std::unique_ptr<protocol::RingMemory> ring, Page page, std::unique_ptr<Commit> commit,
          std::unique_ptr<Progress> progress, Options options, device::Context& context, Printer& printer);
  void run(protocol::RingReader reader, protocol::ControlPage lease, const protocol::LogState& log);

  std::unique_ptr<protocol::RingMemory> ring_;  // the parts point to it: it stays where it is
  std::unique_ptr<Commit> commit_;
  std::unique_ptr<Progress> progress_;
  Printer& printer_;
  Options options_;
  Fault fault_;
  UsageMeter usage_;
  InFlight in_flight_;
  Modules modules_;
  OwnCopies own_copies_;
  Variables variables_;
  LongWork long_work_;
  Guard guard_;
  Epoch epoch_;
  Reports reports_;
  SessionParts parts_;
  Completions completions_;
  std::unique_ptr<Issuer> issuer_;
  std::thread completing_, issuing_;
};

}  // namespace heddle::worker
