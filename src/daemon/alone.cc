#include "daemon/alone.h"

namespace heddle::daemon {
namespace {

// Who computes on it, or will without another decision. A task whose memory alone is there asks for a worker first.
bool uses_device(TaskState state) {
  return has_device(state) && state != TaskState::kSuspended && state != TaskState::kSwappingOut;
}

template <class Body>
void for_each_user(Registry& registry, Body&& body) {
  for (auto& [id, session] : registry.sessions) {
    for (VirtualDevice& device : session.devices) {
      if (device.task && uses_device(device.task->state)) body(session, device);
    }
  }
}

}  // namespace

void note_who_is_alone(Registry& registry, bool spares) {
  // By device: the only session that computes there; none where there are none or several.
  struct Users {
    std::optional<SessionId> only;
    bool several = false;
  };
  std::vector<Users> users(registry.devices.size());
  for_each_user(registry, [&](const Session& session, const VirtualDevice& device) {
    Users& of = users[device.task->device.value];
    of.several = of.several || (of.only && of.only != session.id);
    of.only = session.id;
  });
  for_each_user(registry, [&](const Session&, VirtualDevice& device) {
    if (!device.control) return;
    const bool alone = spares && !users[device.task->device.value].several;
    if (device.control->is_alone() != alone) device.control->write_alone(alone);
  });
}

}  // namespace heddle::daemon
