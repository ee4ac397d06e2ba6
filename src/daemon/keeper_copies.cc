// The part of Keepers that copies between GPUs.

#include "daemon/keepers.h"

namespace heddle::daemon {

using protocol::CopyMemory;
using protocol::MemoryCopied;

void Keepers::copy(DeviceId device, const std::string& uuid, const CopyMemory& copy, const Fd& to, const Fd& from) {
  // Descriptors of our own: whatever becomes of the segments, this memory is there until the copy is over.
  auto own_to = to.duplicate(), own_from = from.duplicate();
  Copy request{uuid, copy, {}, {}};
  if (!own_to) return refuse(request, own_to.error());
  if (!own_from) return refuse(request, own_from.error());
  request.to = std::move(*own_to);
  request.from = std::move(*own_from);
  ask(device, std::move(request));
}

void Keepers::ask(DeviceId device, Copy copy) {
  const auto keeper = running(device, copy.uuid);
  if (!keeper) return refuse(copy, keeper.error());
  const int lent[] = {copy.to.get(), copy.from.get()};
  (*keeper)->connection->send(copy.message, lent);
  (*keeper)->copies.emplace(copy.message.copy, std::move(copy));
  if (!(*keeper)->patience) await_answer(device, **keeper);
}

void Keepers::copied(DeviceId device, Keeper& keeper, const MemoryCopied& answer) {
  const auto found = keeper.copies.find(answer.copy);
  if (found == keeper.copies.end()) return lost(device, {ErrorCode::kProtocol, "it copied what it was not asked to"});
  keeper.copies.erase(found);
  await_answer(device, keeper);
  Status status;
  if (answer.error != 0)
    status = tl::unexpected(Error{static_cast<ErrorCode>(answer.error), protocol::get_text(answer.text)});
  events_.post(CopyAnswered{answer.copy, std::move(status)});
}

void Keepers::cancel(DeviceId device, uint64_t copy) {
  const auto keeper = keepers_.find(device);
  if (keeper != keepers_.end() && keeper->second.copies.contains(copy))
    return keeper->second.connection->send(protocol::CancelCopy{copy});
  for (Leaving& leaving : leaving_) {
    if (const auto found = leaving.copies.find(copy); found != leaving.copies.end())
      found->second.repeated = true;  // refused when the process has gone
  }
}

// From a keeper that has gone.
void Keepers::repeat(DeviceId device, std::map<uint64_t, Copy> copies) {
  while (!copies.empty()) {
    Copy copy = std::move(copies.extract(copies.begin()).mapped());
    if (std::exchange(copy.repeated, true)) {
      refuse(copy, {ErrorCode::kPeerDied, "the GPU's keeper was lost while it copied"});
    } else {
      ask(device, std::move(copy));
    }
  }
}

void Keepers::refuse(const Copy& copy, Error error) {
  events_.post(CopyAnswered{copy.message.copy, tl::unexpected(std::move(error))});
}

}  // namespace heddle::daemon
