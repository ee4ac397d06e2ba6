#include "daemon/testing/control_case.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::daemon::testing {
namespace {

using namespace protocol;

constexpr size_t kMostSteps = 64;

[[noreturn]] void end_with(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

template <class T>
T must(Result<T> result) {
  if (!result) end_with(result.error().text.c_str());
  return std::move(*result);
}

// Takes what the bytes have, from the front.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::span<const uint8_t> take(size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  uint16_t number(size_t bytes) {
    uint16_t value = 0;
    const auto taken = take(bytes);
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

ControlCase::ControlCase() : memory_(must(create_memfd("module", Bytes{4096}))) {
  (void)open_log("", "off");
  auto ends = must(socket_pair());
  vault_ = std::move(ends.first);
  for (uint64_t key : {1, 2}) {
    protocol::Restored listener;
    listener.kind = static_cast<uint64_t>(NoteKind::kListener);
    listener.key = key;
    const Fd silent(::eventfd(0, EFD_CLOEXEC));  // nobody ever connects to it
    const int lent[] = {silent.get()};
    (void)vault_.send(listener, lent);
  }
  (void)vault_.send(AllRestored{});
  Daemon::Options options;
  options.config =
      must(parse_config("[daemon]\nring_bulk = \"128K\"\nring_records = \"128K\"\nwarm_workers = 0\n"
                        "[[device]]\npreset = \"P100\"\ncount = 2\nmemory = \"64M\"\n"
                        "[limits]\nsegments_per_session = 8\n",
                        "case"));
  options.worker_program = "/nonexistent/heddle-worker";
  options.start_vault = [] { return fail(ErrorCode::kNotSupported, "a case has one vault"); };
  daemon_ = must(Daemon::create(std::move(options), std::move(ends.second), clock_));
  (void)set_nonblocking(vault_);
  run_rounds();
}

ControlCase::~ControlCase() = default;

void ControlCase::run_rounds() {
  for (int round = 0; round < 8; ++round) {
    clock_.advance(std::chrono::milliseconds(1));
    if (!daemon_->loop().run_once(Duration{})) end_with("the loop failed");
    for (auto packet = vault_.receive(); packet && *packet;) packet = vault_.receive();
  }
}

ControlCase::Program ControlCase::connect() {
  auto ends = must(socket_pair());
  daemon_->accept_client(std::move(ends.second));
  Program program{std::move(ends.first)};
  (void)program.socket.send(Hello{});
  run_rounds();
  const auto welcome = must(program.socket.expect<Welcome>(Duration{}));
  program.session = welcome.session;
  (void)program.socket.send(OpenDevice{1, 0, 0, welcome.windows[0]});
  run_rounds();
  return program;
}

void ControlCase::send(Program& program, uint16_t type, std::span<const uint8_t> body, size_t descriptors) {
  const auto size = body_bytes(static_cast<MessageType>(type));
  std::vector<uint8_t> message(sizeof(MessageHeader) + size.value_or(body.size()));
  const MessageHeader header{static_cast<MessageType>(type), static_cast<uint32_t>(message.size())};
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + sizeof header, body.data(), std::min(body.size(), message.size() - sizeof header));

  iovec part{message.data(), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  if (descriptors > 0) {
    packet.msg_control = control;
    packet.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&packet);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const int fds[kMaxDescriptors] = {memory_.get(), memory_.get(), memory_.get(), memory_.get()};
    std::memcpy(CMSG_DATA(rights), fds, descriptors * sizeof(int));
  }
  ::sendmsg(program.socket.get(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ControlCase::run(std::span<const uint8_t> bytes) {
  {
    Program programs[] = {connect(), connect()};
    Input input(bytes);
    for (size_t step = 0; step < kMostSteps && !input.empty(); ++step) {
      const uint16_t who = input.number(1);
      const uint16_t type = input.number(2);
      const auto body = input.take(input.number(2));
      if (type == static_cast<uint16_t>(MessageType::kCommand)) {
        const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
        if (text.find("shutdown") != std::string_view::npos) continue;  // ends what all cases share
      }
      send(programs[who % 2], type, body, who / 2 % (kMaxDescriptors + 1));
      run_rounds();
      (void)set_nonblocking(programs[who % 2].socket);
      for (auto answer = programs[who % 2].socket.receive(); answer && *answer;)
        answer = programs[who % 2].socket.receive();
    }
  }
  check_books();
}

// Both programs are gone; the next of this process ends what they left.
void ControlCase::check_books() {
  run_rounds();
  for (int ended = 0; ended < 2; ++ended) {
    const Program last = connect();
    run_rounds();
  }
  run_rounds();
  if (daemon_->registry().sessions.size() > 2) end_with("sessions are left");
  if (daemon_->registry().host_bytes.value != 0) end_with("pinned memory is left");
  for (const auto& device : daemon_->scheduler().devices()) {
    if (device.promised.value != 0 || device.tasks != 0) end_with("memory is left promised");
  }
}

}  // namespace heddle::daemon::testing
