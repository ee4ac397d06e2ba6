#include "daemon/requests.h"

#include <algorithm>

#include "daemon/cuda_codes.h"
#include "daemon/segment_rules.h"

namespace heddle::daemon {
namespace {

using protocol::DeclareSegment;
using protocol::MessageType;
using protocol::SegmentAnswer;

bool same(const protocol::Window& a, const protocol::Window& b) {
  return a.base == b.base && a.device_bytes == b.device_bytes && a.host_bytes == b.host_bytes;
}

Status check_device(const Session& session, uint32_t virtual_device) {
  if (virtual_device >= session.devices.size() || !session.devices[virtual_device].ring)
    return fail(ErrorCode::kProtocol, "virtual device %u is not open; the session has %zu", virtual_device,
                session.devices.size());
  return {};
}

SegmentAnswer refusal(uint64_t request, const std::string& text) {
  SegmentAnswer answer{request, kCudaMemoryAllocation};
  protocol::set_text(answer.text, text);
  return answer;
}

// Whether the program may leave the message without an answer.
bool needs_no_answer(const protocol::Packet& packet) {
  if (packet.type != MessageType::kDeclareSegment) return false;
  const auto declared = packet.as<DeclareSegment>();
  return declared.release != 0 || declared.kind != protocol::SegmentKind::kHost;
}

// Takes note of the number of the request, if the message is one. An error: it is missing, or not new.
Status check_request(Session& session, const protocol::Packet& packet) {
  const auto request = protocol::request_of(packet);
  if (!request || (*request == 0 && needs_no_answer(packet))) return {};
  if (*request <= session.highest_request)
    return fail(ErrorCode::kProtocol, "request number %lu is not new: the highest was %lu",
                static_cast<unsigned long>(*request), static_cast<unsigned long>(session.highest_request));
  session.highest_request = *request;
  return {};
}

}  // namespace

Status Requests::handle(Session& session, protocol::Packet packet) {
  HEDDLE_TRY(check_request(session, packet));
  if (session.failed) {
    protocol::Refused refused{protocol::request_of(packet).value_or(0)};
    if (refused.request == 0) return {};
    protocol::set_text(refused.text, session.failure);
    session.connection->send(refused);
    return {};
  }
  switch (packet.type) {
    case MessageType::kOpenDevice:
      return open_device(session, packet.as<protocol::OpenDevice>());
    case MessageType::kDeclareModule:
      return declare_module(session, std::move(packet));
    case MessageType::kDeclareSegment:
      return declare_segment(session, packet.as<DeclareSegment>());
    case MessageType::kBeginTask:
      return begin_task(session, packet.as<protocol::BeginTask>());
    case MessageType::kComputeNeed: {
      const auto need = packet.as<protocol::ComputeNeed>();
      HEDDLE_TRY(check_device(session, need.virtual_device));
      tasks_.compute_grew(session, need);
      return {};
    }
    case MessageType::kMemoryInfo:
      return memory_info(session, packet.as<protocol::MemoryInfo>());
    case MessageType::kBeginApart:
      return begin_apart(session, packet.as<protocol::BeginApart>());
    case MessageType::kWorkWaits: {
      const auto waits = packet.as<protocol::WorkWaits>();
      HEDDLE_TRY(check_device(session, waits.virtual_device));
      tasks_.follow_job(session, session.devices[waits.virtual_device]);
      return {};
    }
    case MessageType::kCopyAcross:
      return copies_.copy(session, packet.as<protocol::CopyAcross>());
    default:
      return fail(ErrorCode::kProtocol, "message %u is none that a program sends", static_cast<unsigned>(packet.type));
  }
}

// With its control page: both or none.
Status Requests::make_ring(VirtualDevice& device) {
  auto control =
      protocol::ControlPage::create(shared_.config.durability.space(), shared_.config.durability.protects_from(),
                                    shared_.config.durability.save_permille());
  if (!control) return tl::unexpected(std::move(control).error());
  auto ring = protocol::RingMemory::create(shared_.config.ring);
  if (!ring) return tl::unexpected(std::move(ring).error());
  device.control_memory = std::move(control->first);
  device.control = std::move(control->second);
  device.ring_memory = std::move(ring->first);
  device.ring = std::move(ring->second);
  device.ring_key = shared_.ids.next();
  return {};
}

Status Requests::open_device(Session& session, const protocol::OpenDevice& open) {
  if (open.virtual_device >= session.devices.size())
    return fail(ErrorCode::kProtocol, "virtual device %u: the session has %zu", open.virtual_device,
                session.devices.size());
  const auto& offered = shared_.config.windows;
  const auto is_it = [&](const protocol::Window& window) { return same(window, open.window); };
  // A restarted heddled may have another list; the session's window is its own for life.
  if (session.window ? !is_it(*session.window) : std::none_of(offered.begin(), offered.end(), is_it))
    return fail(ErrorCode::kProtocol, "the window at %#lx was not offered",
                static_cast<unsigned long>(open.window.base));
  VirtualDevice& device = session.devices[open.virtual_device];
  if (!device.ring) {
    if (const Status made = make_ring(device); !made) {
      protocol::Refused refused{open.request};
      protocol::set_text(refused.text, made.error().text);
      session.connection->send(refused);
      return {};
    }
    if (!session.window) {
      session.window = open.window;
      segments_.deposit_session(session);
    }
    tasks_.ring_opened(session, device);
  }
  session.connection->send(protocol::DeviceOpened{open.request}, device.ring_memory);
  return {};
}

Status Requests::declare_module(Session& session, protocol::Packet packet) {
  const auto declared = packet.as<protocol::DeclareModule>();
  const Limits& limits = shared_.config.limits;
  if (declared.module != 0 && declared.module <= session.modules.size() && session.resumed) return {};
  if (declared.module != session.modules.size() + 1 || packet.descriptors.size() != 1)
    return fail(ErrorCode::kProtocol, "module %u with %zu descriptors: module %zu with one is due", declared.module,
                packet.descriptors.size(), session.modules.size() + 1);
  const auto size = sealed_size(packet.descriptors.front());
  if (!size) return tl::unexpected(size.error());
  if (declared.bytes == 0 || declared.bytes > size->value)
    return fail(ErrorCode::kProtocol, "module %u says %lu bytes, its memory has %lu", declared.module,
                static_cast<unsigned long>(declared.bytes), static_cast<unsigned long>(size->value));
  if (size->value > limits.module.value || session.module_bytes + *size > limits.modules_of_session ||
      session.modules.size() >= limits.modules_per_session) {
    tasks_.fail_session(
        session, kCudaMemoryAllocation,
        stringf("module %u of %s is over limits.module (%s), modules_of_session (%s) or modules_per_session (%u)",
                declared.module, to_string(*size).c_str(), to_string(limits.module).c_str(),
                to_string(limits.modules_of_session).c_str(), limits.modules_per_session));
    return {};
  }
  Module module;
  module.key = shared_.ids.next();
  static_cast<protocol::DeclareModule&>(module.message) = declared;
  module.memory = std::move(packet.descriptors.front());
  session.module_bytes += *size;
  shared_.vault.deposit(NoteKind::kModule, module.key,
                        write_note(ModuleNote{session.id.value, declared.bytes, declared.module, 0}),
                        module.memory.get());
  session.modules.push_back(std::move(module));
  executor_.send_module(session, session.modules.back());
  return {};
}

Status Requests::declare_segment(Session& session, const DeclareSegment& declared) {
  if (declared.release != 0) return release_host(session, declared);
  const auto verdict = check_segment(session, declared, shared_.config.limits, executor_);
  if (!verdict && verdict.error().code == ErrorCode::kLimitExceeded) {
    if (declared.request != 0) {
      session.connection->send(refusal(declared.request, verdict.error().text));
    } else {
      tasks_.fail_session(session, kCudaMemoryAllocation, verdict.error().text);
    }
    return {};
  }
  if (!verdict) return tl::unexpected(verdict.error());
  if (*verdict == SegmentVerdict::kKnown) return known_segment(session, declared);
  if (*verdict == SegmentVerdict::kAwaitsFree) {
    // The program has seen the free before we have. What follows on this connection waits with it.
    session.deferred = declared;
    session.connection->pause();
    return {};
  }
  if (declared.kind == protocol::SegmentKind::kHost) return host_segment(session, declared);
  tasks_.declare(session, declared);
  return {};
}

// The program says again what heddled's forerunner may have missed.
Status Requests::known_segment(Session& session, const DeclareSegment& declared) {
  if (declared.request == 0) return {};
  Segment& segment = session.segments.at(declared.number);
  if (declared.kind == protocol::SegmentKind::kHost) {
    session.connection->send(SegmentAnswer{declared.request}, segment.memory);
  } else if (segment.state == Segment::State::kHeld) {
    session.connection->send(SegmentAnswer{declared.request});
  } else {
    segment.answers = declared.request;  // it comes with the decision
  }
  return {};
}

Status Requests::host_segment(Session& session, const DeclareSegment& declared) {
  const Limits& limits = shared_.config.limits;
  const Bytes bytes{declared.bytes};
  if (session.host_bytes + bytes > limits.host_of_session || shared_.registry.host_bytes + bytes > limits.host_total) {
    session.connection->send(
        refusal(declared.request,
                stringf("%s of pinned memory: the session has %s of limits.host_of_session (%s), all have %s "
                        "of limits.host_total (%s)",
                        to_string(bytes).c_str(), to_string(session.host_bytes).c_str(),
                        to_string(limits.host_of_session).c_str(), to_string(shared_.registry.host_bytes).c_str(),
                        to_string(limits.host_total).c_str())));
    return {};
  }
  Segment& segment = segments_.add(session, declared);
  segment.state = Segment::State::kHeld;
  if (const Status backed = segments_.back(session, segment); !backed) {
    session.connection->send(refusal(declared.request, backed.error().text));
    segments_.remove(session, declared.number);
    return {};
  }
  session.connection->send(SegmentAnswer{std::exchange(segment.answers, 0)}, segment.memory);
  executor_.map_host(session, segment, false);
  return {};
}

Status Requests::release_host(Session& session, const DeclareSegment& declared) {
  const auto found = session.segments.find(declared.number);
  if (found == session.segments.end() && session.resumed) return {};
  if (found == session.segments.end() || found->second.kind != protocol::SegmentKind::kHost)
    return fail(ErrorCode::kProtocol, "segment %lu is no pinned memory to give back",
                static_cast<unsigned long>(declared.number));
  executor_.map_host(session, found->second, true);
  segments_.remove(session, declared.number);
  return {};
}

void Requests::retry_deferred(SessionId id) {
  Session* session = shared_.registry.find_session(id);
  if (!session || !session->deferred || !session->connection || session->failed) return;
  const DeclareSegment declared = *std::exchange(session->deferred, std::nullopt);
  session->connection->resume();
  const Status done = declare_segment(*session, declared);
  if (done) return;
  if (declared.request != 0) session->connection->send(refusal(declared.request, done.error().text));
  tasks_.fail_session(*session, kCudaNotPermitted, done.error().text);
}

Status Requests::begin_task(Session& session, const protocol::BeginTask& begun) {
  HEDDLE_TRY(check_device(session, begun.need.virtual_device));
  return tasks_.begin(session, begun);
}

Status Requests::begin_apart(Session& session, const protocol::BeginApart& begun) {
  for (const protocol::BeginTask* task : {&begun.first, &begun.second})
    HEDDLE_TRY(check_device(session, task->need.virtual_device));
  if (begun.first.need.virtual_device == begun.second.need.virtual_device || begun.second.serial == 0)
    return fail(ErrorCode::kProtocol, "a task apart from another is on virtual device %u with it",
                begun.second.need.virtual_device);
  const auto granted = tasks_.begin_apart(session, begun);
  if (!granted) return tl::unexpected(granted.error());
  session.connection->send(protocol::ApartAnswer{begun.request, *granted ? 1u : 0u});
  return {};
}

Status Requests::memory_info(Session& session, const protocol::MemoryInfo& asked) {
  HEDDLE_TRY(check_device(session, asked.virtual_device));
  const Job* job = shared_.registry.find_job(session.job);
  Bytes others;
  if (job && job->budget.value != 0)
    others = shared_.registry.live_bytes_beside(*job, session.devices[asked.virtual_device]);
  session.connection->send(protocol::MemoryAnswer{asked.request, session.budget.value, others.value});
  return {};
}

}  // namespace heddle::daemon
