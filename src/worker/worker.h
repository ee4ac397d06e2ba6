#pragma once

#include <functional>
#include <memory>

#include "worker/session.h"

namespace heddle::worker {

// Opens the device; `board` is empty for one that needs none.
using ContextOpener =
    std::function<Result<std::unique_ptr<device::Context>>(const device::ContextOptions& options, const Fd& board)>;

// What heddled's messages do to a worker. Its life: unstarted -> warm (window reserved, context open) -> bound (one
// session, once). Used by the thread that reads heddled's socket.
class Worker {
 public:
  Worker(Outbox& outbox, ContextOpener open, ModuleReader read)
      : outbox_(outbox), open_(std::move(open)), read_(std::move(read)) {}

  // Acts on one message. False: heddled wants the worker to end. An error ends it too; where that is the session's
  // loss, a WorkerFault stands in the outbox.
  Result<bool> handle(protocol::Packet packet);

  bool started() const { return start_.worker != 0; }
  DeviceKind device_kind() const { return start_.model.kind; }
  // Who this is and what it serves: the first message on every connection once started.
  protocol::WorkerReady ready() const;
  Printer& printer() { return printer_; }

 private:
  Status start(const protocol::Packet& packet);
  Status bind(const protocol::Packet& packet);
  Status start_session(const protocol::Packet& packet);
  Status take_window(const protocol::Window& window);
  Status open_first_window();
  Status open_context();

  Outbox& outbox_;
  ContextOpener open_;
  ModuleReader read_;
  protocol::StartWorker start_;
  protocol::BindSession binding_;
  Fd board_;
  protocol::Window window_;
  // In this order: the session uses the context, which lives in the addresses and prints to the printer.
  Mapping addresses_;
  Printer printer_;
  std::unique_ptr<device::Context> context_;
  std::unique_ptr<Session> session_;
};

}  // namespace heddle::worker
