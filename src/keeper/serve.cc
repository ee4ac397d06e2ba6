#include "keeper/serve.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "keeper/copies.h"
#include "keeper/mappings.h"
#include "keeper/supply.h"

namespace heddle::keeper {
namespace {

constexpr Duration kBetweenWords = std::chrono::seconds(1);  // on what is left

Status send_memory(protocol::Socket& socket, Bytes size, const Result<Fd>& memory) {
  protocol::MemoryMade answer;
  answer.bytes = size.value;
  if (memory) {
    const int descriptor = memory->get();
    return socket.send(answer, std::span(&descriptor, 1));
  }
  answer.error = static_cast<uint32_t>(memory.error().code);
  protocol::set_text(answer.text, memory.error().text);
  return socket.send(answer);
}

Status take_back(Supply& supply, protocol::Packet packet) {
  const Bytes size{packet.as<protocol::TakeBack>().bytes};
  if (packet.descriptors.size() != 1 || size.value == 0 || size.value % cuda::Allocator::kGranule != 0)
    return fail(ErrorCode::kProtocol,
                "%llu bytes come back with %zu descriptors: a multiple of %llu and one are wanted",
                static_cast<unsigned long long>(size.value), packet.descriptors.size(),
                static_cast<unsigned long long>(cuda::Allocator::kGranule));
  supply.take_back(std::move(packet.descriptors.front()), size);
  return {};
}

Status tell_what_is_left(protocol::Socket& socket, Supply& supply) {
  const auto left = supply.left();
  if (!left) return tl::unexpected(left.error());
  return socket.send(protocol::MemoryLeft{left->value});
}

Status send_if(protocol::Socket& socket, const std::optional<protocol::MemoryCopied>& answer) {
  return answer ? socket.send(*answer) : Status{};
}

// What all requests need.
struct Desk {
  protocol::Socket& socket;
  cuda::Allocator& allocator;
  Supply supply{allocator};
  Mappings mappings{allocator};
  Copies copies{allocator, mappings};
  std::optional<protocol::Packet> next;  // was read behind requests for memory, and is answered next
};

Result<std::optional<protocol::Packet>> next_request(Desk& desk, Duration patience) {
  if (desk.next) return std::exchange(desk.next, std::nullopt);
  return desk.socket.receive_within(patience);
}

bool is_for_device(const protocol::Packet& request) {
  return request.type == protocol::MessageType::kMakeMemory && request.as<protocol::MakeMemory>().on_host == 0;
}

Bytes wanted(const protocol::Packet& request) {
  return Bytes{request.as<protocol::MakeMemory>().bytes};
}

// Answers `first` together with the requests for memory that wait in the socket already, as those of a task's segments
// do: the GPU clears all of them in one turn.
Status make_memory(Desk& desk, const protocol::Packet& first) {
  std::vector<Bytes> sizes{wanted(first)};
  while (sizes.size() < Supply::kMostAtOnce && !desk.next) {
    auto more = desk.socket.receive_within(Duration{});
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) break;
    if (is_for_device(**more))
      sizes.push_back(wanted(**more));
    else
      desk.next = std::move(*more);
  }
  const std::vector<Result<Fd>> memory = desk.supply.make(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) HEDDLE_TRY(send_memory(desk.socket, sizes[i], memory[i]));
  return {};
}

// Swap space is written whole before anybody reads it. Other memory on the host is a program's, which maps it.
Result<Fd> make_on_host(Desk& desk, const protocol::MakeMemory& wanted) {
  const Bytes size{wanted.bytes};
  auto memory = desk.allocator.allocate_on_host(size);
  if (!memory) return memory;
  if (wanted.mapping != 0) {
    (void)desk.mappings.map(wanted.mapping, *memory, size);  // where it cannot be mapped, the copy says so
    return memory;
  }
  HEDDLE_TRY(desk.allocator.clear(*memory, size));
  HEDDLE_TRY(desk.allocator.finish_clearing());
  return memory;
}

Status answer(Desk& desk, protocol::Packet request) {
  switch (request.type) {
    case protocol::MessageType::kMakeMemory:
      if (is_for_device(request)) return make_memory(desk, request);
      return send_memory(desk.socket, wanted(request), make_on_host(desk, request.as<protocol::MakeMemory>()));
    case protocol::MessageType::kTakeBack:
      return take_back(desk.supply, std::move(request));
    case protocol::MessageType::kKeepAtMost:
      desk.supply.keep_at_most(Bytes{request.as<protocol::KeepAtMost>().bytes});
      return {};
    case protocol::MessageType::kUnmapMemory:
      desk.mappings.unmap(request.as<protocol::UnmapMemory>().mapping);
      return {};
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

// What nobody waits for comes last.
Status work_on(Desk& desk) {
  if (!desk.copies.empty()) return copy_a_part(desk);
  desk.supply.clear_some();
  return {};
}

// One message, or else what is left of the GPU's memory, said once a second, or else a part of a copy, or else some
// memory cleared.
Status serve_next(Desk& desk, const Clock& clock, TimePoint& next_word) {
  const bool idle = desk.copies.empty() && !desk.supply.has_uncleared();
  auto request = next_request(desk, idle ? std::max(Duration{}, next_word - clock.now()) : Duration{});
  if (!request) return tl::unexpected(request.error());
  if (*request) return answer(desk, std::move(**request));
  if (clock.now() < next_word) return work_on(desk);
  next_word = clock.now() + kBetweenWords;
  return tell_what_is_left(desk.socket, desk.supply);
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
