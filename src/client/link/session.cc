#include "client/link/session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "client/link/window_pages.h"
#include "core/clock.h"
#include "core/cuda_error.h"
#include "protocol/trust.h"

namespace heddle::client {

using namespace protocol;

namespace {

constexpr Duration kForever(-1);
constexpr Duration kCallEvery = std::chrono::milliseconds(50);  // while heddled is away

// The name that `heddle ps` shows.
void set_program(Hello& hello) {
  char path[512];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  std::string_view name(path, length > 0 ? static_cast<size_t>(length) : 0);
  set_text(hello.program, name.substr(name.rfind('/') + 1));
}

// heddled answers in CUDA's codes (daemon/cuda_codes.h).
Error as_error(const SegmentAnswer& answer) {
  const auto code = answer.cuda_error == kCudaMemoryAllocation ? ErrorCode::kOutOfMemory
                    : answer.cuda_error == kCudaNoDevice       ? ErrorCode::kNotFound
                    : answer.cuda_error == kCudaNotPermitted   ? ErrorCode::kPermission
                                                               : ErrorCode::kInternal;
  return {code, get_text(answer.text)};
}

// What heddled sent with its answer.
Status map_pinned(std::span<const Fd> descriptors, uint64_t address, uint64_t bytes) {
  if (descriptors.size() != 1) return fail(ErrorCode::kOutOfMemory, "heddled sent no memory");
  const auto size = sealed_size(descriptors.front());
  if (!size || size->value < bytes) return fail(ErrorCode::kOutOfMemory, "heddled sent too little memory");
  const void* const mapped = ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, descriptors.front().get(), 0);
  if (mapped == MAP_FAILED) return fail_errno(-1, "cannot map pinned memory");
  return {};
}

Result<Fd> memfd_of(std::span<const std::span<const std::byte>> parts, uint64_t total) {
  auto fd = create_memfd("heddle-module", Bytes{total});
  if (!fd) return fd;
  auto mapping = map_shared(*fd, Bytes{total});
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  char* to = static_cast<char*>(mapping->data());
  for (const auto& part : parts) {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(SessionSettings settings) {
  std::unique_ptr<Session> session(new Session(std::move(settings)));
  HEDDLE_TRY(session->introduce());
  session->segment_count_.limit(session->welcome_.segment_limit);
  HEDDLE_TRY(session->refuse_checks());
  HEDDLE_TRY(session->reserve_window());
  return session;
}

// A heddled that dies while it is greeted has a successor soon, who ends what its forerunner may have opened.
Status Session::introduce() {
  const TimePoint deadline = MonotonicClock().now() + settings_.lost_after;
  for (bool reached = false;; std::this_thread::sleep_for(kCallEvery)) {
    auto socket = connect_to_heddled(settings_.socket_path);
    if (!socket && socket.error().code == ErrorCode::kPermission) return tl::unexpected(socket.error());
    if (!socket && !reached)
      return fail(ErrorCode::kNotFound, "no heddled: %s; start the program with `heddle run`",
                  socket.error().text.c_str());
    reached = true;
    const auto welcome = socket ? greet(*socket, 0, 0) : tl::unexpected(socket.error());
    if (welcome) {
      welcome_ = *welcome;
      connection_ = std::make_shared<Connection>(std::move(*socket), 0);
      return {};
    }
    const bool died = !socket || welcome.error().code == ErrorCode::kPeerDied;
    if (!died || MonotonicClock().now() >= deadline)
      return fail(welcome.error().code, "heddled: %s", welcome.error().text.c_str());
  }
}

Status Session::refuse_checks() const {
  if (!settings_.check || welcome_.devices[0].kind == DeviceKind::kSoftware) return {};
  return fail(ErrorCode::kNotSupported,
              "HEDDLE_CHECK, heddle run --check: kernels are checked on software devices only, and this is %s; "
              "compute-sanitizer checks programs on NVIDIA's GPUs, without heddle",
              welcome_.devices[0].name);
}

Result<Welcome> Session::greet(Socket& socket, uint64_t resume_session, uint64_t resume_secret) {
  Hello hello;
  hello.job = settings_.job;
  hello.job_secret = settings_.job_secret;
  hello.resume_session = resume_session;
  hello.resume_secret = resume_secret;
  set_program(hello);
  HEDDLE_TRY(socket.send(hello));
  auto welcome = socket.expect<Welcome>(settings_.lost_after);
  if (!welcome) return welcome;
  if (welcome->version != kProtocolVersion)
    return fail(ErrorCode::kPermission,
                "it speaks protocol version %u, this runtime version %u: install the two from "
                "one release",
                welcome->version, kProtocolVersion);
  if (welcome->device_count == 0) return fail(ErrorCode::kPermission, "it has no device for this session");
  if (welcome->device_count > kMaxDevices || welcome->window_count > kMaxWindows)
    return fail(ErrorCode::kPermission, "its welcome names %u devices and %u windows, %u and %u are possible",
                welcome->device_count, welcome->window_count, kMaxDevices, kMaxWindows);
  return welcome;
}

Status Session::reserve_window() {
  std::string why = "heddled offers no window";
  for (uint32_t i = 0; i < welcome_.window_count; ++i) {
    const Window& window = welcome_.windows[i];
    auto reserved = reserve_addresses(window.base, Bytes{window.device_bytes + window.host_bytes});
    if (reserved) {
      window_ = window;
      reserved_ = std::move(*reserved);
      return {};
    }
    why = reserved.error().text;
  }
  return fail(ErrorCode::kOutOfMemory, "no address window is free in this process: %s", why.c_str());
}

tl::unexpected<Error> Session::lost(std::string why) {
  if (!std::exchange(lost_, true)) why_lost_ = std::move(why);
  connection_->end({ErrorCode::kPeerDied, why_lost_});
  return tl::unexpected(Error{ErrorCode::kPeerDied, why_lost_});
}

// A kernel of another device could not reach it on the first.
bool Session::managed_on_device() const {
  using Managed = SessionSettings::Managed;
  if (settings_.managed == Managed::kAsConfigured) return welcome_.managed_on_device != 0;
  return settings_.managed == Managed::kDevice && welcome_.device_count == 1;
}

std::string Session::managed_refusal() const {
  if (settings_.managed != SessionSettings::Managed::kDevice || managed_on_device()) return "";
  return stringf(
      "HEDDLE_MANAGED=device (heddle run --managed device) has no effect: the program sees %u devices, and managed "
      "memory on one of them could not be reached by kernels of the others; it stays on the host",
      welcome_.device_count);
}

// heddled went away. Its successor knows this session from the vault; what was on its way is said again, requests by
// those who wait for their answers.
Status Session::reconnect() {
  connection_->end({ErrorCode::kPeerDied, "heddled is gone"});
  const TimePoint deadline = MonotonicClock().now() + settings_.lost_after;
  do {
    auto socket = connect_to_heddled(settings_.socket_path);
    if (socket) {
      const auto welcome = greet(*socket, welcome_.session, welcome_.secret);
      if (!welcome && welcome.error().code == ErrorCode::kPermission)
        return lost("heddled does not know this session any more: " + welcome.error().text);
      if (!welcome && welcome.error().code == ErrorCode::kProtocol)
        return lost("a heddled of another release has taken its place, and the program must be started anew: " +
                    welcome.error().text);
      if (welcome && declare_again(*socket)) {
        connection_ = std::make_shared<Connection>(std::move(*socket), connection_->last_request());
        return {};
      }
    }
    std::this_thread::sleep_for(kCallEvery);
  } while (MonotonicClock().now() < deadline);
  return lost(stringf("heddled is gone for more than %s (HEDDLE_LOST_AFTER)", to_string(settings_.lost_after).c_str()));
}

// heddled passes over what it knows already: ids, numbers and serials are the same.
Status Session::declare_again(Socket& socket) {
  for (const auto& [module, fd] : journal_.modules) {
    const int descriptor = fd.get();
    HEDDLE_TRY(socket.send(module, {&descriptor, 1}));
  }
  for (const auto& [number, segment] : journal_.segments) HEDDLE_TRY(socket.send(segment));
  for (const auto& [device, task] : journal_.tasks) {
    HEDDLE_TRY(socket.send(task));
    HEDDLE_TRY(socket.send(task.need));
  }
  return {};
}

template <class Message>
Status Session::tell(const Message& message, std::span<const int> descriptors) {
  for (;;) {
    if (lost_) return tl::unexpected(Error{ErrorCode::kPeerDied, why_lost_});
    const Status sent = connection_->send(message, descriptors);
    if (sent) return {};
    if (sent.error().code != ErrorCode::kPeerDied) return lost(sent.error().text);
    HEDDLE_TRY(reconnect());
  }
}

template <class Reply, class Message>
Result<Reply> Session::ask(Lock& lock, Message message, Duration limit, std::vector<Fd>* descriptors) {
  for (;;) {
    if (lost_) return tl::unexpected(Error{ErrorCode::kPeerDied, why_lost_});
    const std::shared_ptr<Connection> connection = connection_;
    Connection::Request request(*connection);
    message.request = request.number();
    const Status sent = connection->send(message);
    lock.unlock();
    auto answer = sent ? request.wait(limit) : tl::unexpected(sent.error());
    lock.lock();
    if (answer) return reply_in<Reply>(std::move(*answer), descriptors);
    if (lost_) continue;
    const Error& error = answer.error();
    if (error.code == ErrorCode::kTimeout) return lost("heddled does not answer: " + error.text);
    if (error.code != ErrorCode::kPeerDied) return lost(error.text);
    if (connection_ == connection) HEDDLE_TRY(reconnect());
  }
}

template <class Reply>
Result<Reply> Session::reply_in(Packet packet, std::vector<Fd>* descriptors) {
  if (packet.type == MessageType::kRefused)
    return fail(ErrorCode::kPermission, "%s", get_text(packet.as<Refused>().text).c_str());
  if (packet.type != Reply::kType)
    return lost(stringf("heddled answers with message %u where %u was asked for", static_cast<unsigned>(packet.type),
                        static_cast<unsigned>(Reply::kType)));
  if (descriptors) *descriptors = std::move(packet.descriptors);
  return packet.as<Reply>();
}

Result<RingMemory> Session::open_device(uint32_t virtual_device) {
  Lock lock(mutex_);
  std::vector<Fd> descriptors;
  auto opened = ask<DeviceOpened>(lock, OpenDevice{0, virtual_device, 0, window_}, settings_.lost_after, &descriptors);
  if (!opened) return tl::unexpected(std::move(opened).error());
  if (descriptors.size() != 1) return fail(ErrorCode::kProtocol, "heddled sent no ring");
  auto memory = RingMemory::attach(descriptors.front());
  if (!memory) return tl::unexpected(Error{ErrorCode::kProtocol, memory.error().text});
  ::madvise(&memory->header(), memory->size().value, MADV_DONTFORK);
  return std::move(*memory);
}

Result<uint32_t> Session::declare_module(std::span<const std::span<const std::byte>> fatbins) {
  uint64_t total = 0;
  for (const auto& fatbin : fatbins) total += fatbin.size();
  auto fd = memfd_of(fatbins, total);
  if (!fd) return tl::unexpected(Error{ErrorCode::kOutOfMemory, fd.error().text});

  const std::lock_guard lock(mutex_);
  DeclareModule module;
  module.module = static_cast<uint32_t>(journal_.modules.size() + 1);
  module.bytes = total;
  const int descriptor = fd->get();
  HEDDLE_TRY(tell(module, {&descriptor, 1}));
  journal_.modules.emplace_back(module, std::move(*fd));
  return module.module;
}

Result<uint64_t> Session::declare_segment(uint32_t virtual_device, const Segment& declared, bool answer) {
  Lock lock(mutex_);
  const DeclareSegment segment{0, ++last_segment_, declared.address, declared.bytes, declared.kind, virtual_device};
  if (answer) {
    // Memory may take as long as it takes; that heddled goes away meanwhile shows.
    auto reply = ask<SegmentAnswer>(lock, segment, kForever);
    if (!reply) return tl::unexpected(std::move(reply).error());
    if (reply->cuda_error != 0) return tl::unexpected(as_error(*reply));
  } else {
    HEDDLE_TRY(tell(segment));
  }
  journal_.segments.emplace(segment.number, segment);
  return segment.number;
}

void Session::forget_segment(uint64_t number) {
  const std::lock_guard lock(mutex_);
  journal_.segments.erase(number);
}

Status Session::begin_task(uint64_t serial, const ComputeNeed& need) {
  const std::lock_guard lock(mutex_);
  const BeginTask task{serial, need};
  HEDDLE_TRY(tell(task));
  journal_.tasks[need.virtual_device] = task;
  return {};
}

Result<bool> Session::begin_apart(const BeginTask& first, const BeginTask& second) {
  Lock lock(mutex_);
  auto answer = ask<ApartAnswer>(lock, BeginApart{0, first, second}, settings_.lost_after);
  if (!answer) return tl::unexpected(std::move(answer).error());
  if (answer->granted == 0) return false;
  for (const BeginTask& task : {first, second}) {
    if (task.serial != 0) journal_.tasks[task.need.virtual_device] = task;
  }
  return true;
}

Status Session::grow_task(const ComputeNeed& need) {
  const std::lock_guard lock(mutex_);
  HEDDLE_TRY(tell(need));
  journal_.tasks[need.virtual_device].need = need;
  return {};
}

Status Session::work_waits(uint32_t virtual_device) {
  const std::lock_guard lock(mutex_);
  return tell(WorkWaits{virtual_device});
}

void Session::end_task(uint32_t virtual_device) {
  const std::lock_guard lock(mutex_);
  journal_.tasks.erase(virtual_device);
}

Result<uint64_t> Session::map_host_segment(uint32_t virtual_device, uint64_t address, uint64_t bytes) {
  if (!segment_count_.add())
    return fail(ErrorCode::kOutOfMemory,
                "pinned memory: the program has %lu pieces of memory, and limits.segments_per_session (%lu) of heddled "
                "allows no more",
                static_cast<unsigned long>(segment_count_.count()), static_cast<unsigned long>(segment_count_.most()));
  auto number = ask_for_host_segment(virtual_device, address, bytes);
  if (!number) segment_count_.remove();
  return number;
}

Result<uint64_t> Session::ask_for_host_segment(uint32_t virtual_device, uint64_t address, uint64_t bytes) {
  Lock lock(mutex_);
  const DeclareSegment segment{0, ++last_segment_, address, bytes, SegmentKind::kHost, virtual_device};
  std::vector<Fd> descriptors;
  auto reply = ask<SegmentAnswer>(lock, segment, settings_.lost_after, &descriptors);
  if (!reply) return tl::unexpected(std::move(reply).error());
  if (reply->cuda_error != 0) return tl::unexpected(as_error(*reply));
  if (const Status mapped = map_pinned(descriptors, address, bytes); !mapped) {
    (void)tell(DeclareSegment{0, segment.number, address, bytes, SegmentKind::kHost, 0, 1});
    return tl::unexpected(mapped.error());
  }
  return segment.number;
}

void Session::unmap_host_segment(uint64_t number, uint64_t address, uint64_t bytes) {
  unmap_pages(address, bytes);
  const std::lock_guard lock(mutex_);
  // A session that cannot say so any more has lost its memory anyway.
  (void)tell(DeclareSegment{0, number, address, bytes, SegmentKind::kHost, 0, 1});
  segment_count_.remove();  // behind it: who takes the place is heard later
}

Result<MemoryAnswer> Session::memory_info(uint32_t virtual_device) {
  Lock lock(mutex_);
  return ask<MemoryAnswer>(lock, MemoryInfo{0, virtual_device}, settings_.lost_after);
}

Result<CopyAnswer> Session::copy_across(const CopyAcross& copy) {
  Lock lock(mutex_);
  // It takes as long as it takes; that heddled goes away meanwhile shows, and its successor is asked again.
  return ask<CopyAnswer>(lock, copy, kForever);
}

Status Session::look() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};  // whoever holds it talks to heddled, and would notice
  if (lost_) return tl::unexpected(Error{ErrorCode::kPeerDied, why_lost_});
  const Status looked = connection_->look();
  if (looked) return {};
  return looked.error().code == ErrorCode::kPeerDied ? reconnect() : lost(looked.error().text);
}

}  // namespace heddle::client
