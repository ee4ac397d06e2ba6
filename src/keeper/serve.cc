#include "keeper/serve.h"

#include <algorithm>
#include <thread>

#include "core/clock.h"

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

}  // namespace

Status serve(protocol::Socket socket, cuda::Allocator& allocator) {
  const MonotonicClock clock;
  TimePoint next_word{};
  for (;;) {
    const auto request = socket.expect<protocol::MakeMemory>(std::max(Duration{}, next_word - clock.now()));
    if (request) {
      HEDDLE_TRY(make_memory(socket, allocator, Bytes{request->bytes}));
    } else if (request.error().code == ErrorCode::kTimeout) {
      HEDDLE_TRY(tell_what_is_left(socket, allocator));
      next_word = clock.now() + kBetweenWords;
    } else {
      if (request.error().code == ErrorCode::kPeerDied) return {};  // heddled has ended, and so does its keeper
      return tl::unexpected(request.error());
    }
  }
}

}  // namespace heddle::keeper
