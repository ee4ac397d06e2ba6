#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "daemon/daemon.h"

namespace heddle::daemon::testing {

// heddled in this process, without workers and with a vault that forgets, for bytes from a fuzzer.
class ControlCase {
 public:
  ControlCase();
  ~ControlCase();

  // Two programs connect and open a device; then the bytes say who sends what. Each step is
  //   connection and number of descriptors (1 byte), message type (2), bytes of the body that follow (2), body
  // where the rest of the body is zeros, and a type that does not exist sends the bytes as they are. Ends the process
  // where heddled's books are not at zero once both programs are gone.
  void run(std::span<const uint8_t> bytes);

 private:
  struct Program {
    protocol::Socket socket;
    uint64_t session = 0;
  };
  Program connect();
  void send(Program& program, uint16_t type, std::span<const uint8_t> body, size_t descriptors);
  void run_rounds();
  void check_books();

  ManualClock clock_;
  std::unique_ptr<Daemon> daemon_;
  protocol::Socket vault_;
  Fd memory_;
};

}  // namespace heddle::daemon::testing
