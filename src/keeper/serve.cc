#include "keeper/serve.h"

#include <algorithm>
#include <thread>

#include "core/clock.h"
#include "keeper/copies.h"

namespace heddle::keeper {
namespace {

constexpr int kRetries = 20;
constexpr Duration kBetweenWords = std::chrono::seconds(1);  // on what is left
constexpr Duration kRetryAfter = std::chrono::milliseconds(5);

Status make_memory(protocol::Socket& socket, cuda::Allocator& allocator, Bytes size) {
  protocol::MemoryMade answer;
  answer.bytes = size.value;
  auto memory = allocator.allocate(size);
  // What was given back a moment ago is free when its last holder, another process, has closed it.
  for (int i = 0; i < kRetries && !memory && memory.error().code == ErrorCode::kOutOfMemory; ++i) {
    std::this_thread::sleep_for(kRetryAfter);
    memory = allocator.allocate(size);
  }
  if (memory) {
    const int descriptor = memory->get();
    return socket.send(answer, std::span(&descriptor, 1));
  }
  answer.error = static_cast<uint32_t>(memory.error().code);
  protocol::set_text(answer.text, memory.error().text);
  return socket.send(answer);
}

Status tell_what_is_left(protocol::Socket& socket, cuda::Allocator& allocator) {
  const auto usage = allocator.usage();
  if (!usage) return tl::unexpected(usage.error());
  return socket.send(protocol::MemoryLeft{usage->free.value});
}

Status send_if(protocol::Socket& socket, const std::optional<protocol::MemoryCopied>& answer) {
  return answer ? socket.send(*answer) : Status{};
}

// What all requests need.
struct Desk {
  protocol::Socket& socket;
  cuda::Allocator& allocator;
  Copies copies{allocator};
};

Status answer(Desk& desk, const protocol::Packet& request) {
  switch (request.type) {
    case protocol::MessageType::kMakeMemory:
      return make_memory(desk.socket, desk.allocator, Bytes{request.as<protocol::MakeMemory>().bytes});
    case protocol::MessageType::kCopyMemory:
      return send_if(desk.socket, desk.copies.begin(request.as<protocol::CopyMemory>(), request.descriptors));
    case protocol::MessageType::kCancelCopy:
      return send_if(desk.socket, desk.copies.cancel(request.as<protocol::CancelCopy>().copy));
    default:
      return fail(ErrorCode::kProtocol, "message %u is none that heddled sends to a keeper",
                  static_cast<unsigned>(request.type));
  }
}

Status copy_a_part(Desk& desk) {
  const auto answer = desk.copies.step();
  if (!answer) return tl::unexpected(answer.error());
  return send_if(desk.socket, *answer);
}

// One question, or else what is left of the GPU's memory, said once a second, or else a part of a copy.
Status serve_next(Desk& desk, const Clock& clock, TimePoint& next_word) {
  const Duration idle = desk.copies.empty() ? std::max(Duration{}, next_word - clock.now()) : Duration{};
  const auto request = desk.socket.receive_within(idle);
  if (!request) return tl::unexpected(request.error());
  if (*request) return answer(desk, **request);
  if (clock.now() < next_word) return desk.copies.empty() ? Status{} : copy_a_part(desk);
  next_word = clock.now() + kBetweenWords;
  return tell_what_is_left(desk.socket, desk.allocator);
}

}  // namespace

Status serve(protocol::Socket socket, cuda::Allocator& allocator) {
  const MonotonicClock clock;
  TimePoint next_word{};
  Status served;
  Desk desk{socket, allocator};
  while (served) served = serve_next(desk, clock, next_word);
  // heddled has ended, seen on receiving or on sending, and so does its keeper.
  return served.error().code == ErrorCode::kPeerDied ? Status{} : served;
}

}  // namespace heddle::keeper
