#pragma once

#include <memory>
#include <string>

#include "protocol/ring_writer.h"
#include "protocol/socket.h"

namespace heddle::daemon::testing {

// A program's side of the protocol, by hand. Calls fail the test by their returned errors, not by themselves.
class TestClient {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(20);

  // Connects and says hello.
  static Result<TestClient> open(const std::string& path, uint64_t job = 0, uint64_t secret = 0);
  // Connects again to a restarted heddled, as the same session.
  Status resume(const std::string& path);

  const protocol::Welcome& welcome() const { return welcome_; }
  protocol::Socket& socket() { return socket_; }
  const protocol::Window& window() const { return welcome_.windows[0]; }
  // The address `pieces` steps of 2 MiB into the window.
  uint64_t at(uint64_t pieces) const { return window().base + pieces * 2 * kMiB; }

  // Sends the request with the number that is due.
  template <class Message>
  Status ask(Message request) {
    request.request = ++last_request_;
    return socket_.send(request);
  }
  uint64_t last_request() const { return last_request_; }
  Status open_device(uint32_t virtual_device = 0);
  Status declare(uint64_t number, uint64_t address, Bytes bytes, bool answer = false);
  Status begin(uint64_t serial, uint64_t blocks = 1);
  Result<protocol::SegmentAnswer> answer();

  protocol::RingHeader& header() { return ring_->header(); }
  protocol::RingWriter& writer() { return *writer_; }
  void record(protocol::RecordType type, uint64_t a = 0);
  void fill(uint64_t address, uint32_t value);
  // All calls of its own that it has recorded.
  void host_calls_return();

  // Waits until the ring says so; false when the time is over.
  bool wait_binding(protocol::Binding binding);
  bool wait_completed(uint64_t sequence);
  bool wait_fault(uint32_t code);
  std::string error_text();

 private:
  void publish();
  template <class Condition>
  bool wait_until(Condition condition);

  protocol::Socket socket_;
  protocol::Welcome welcome_;
  uint64_t last_request_ = 0;
  std::unique_ptr<protocol::RingMemory> ring_;
  std::unique_ptr<protocol::RingWriter> writer_;
};

}  // namespace heddle::daemon::testing
