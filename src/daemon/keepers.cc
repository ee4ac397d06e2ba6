#include "daemon/keepers.h"

#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/log.h"

namespace heddle::daemon {
namespace {

// Its first answer comes when its context is built.
constexpr Duration kAnswerPatience = std::chrono::seconds(20);

Result<Fd> memory_in(protocol::Packet packet, Bytes wanted) {
  if (packet.type != protocol::MessageType::kMemoryMade)
    return fail(ErrorCode::kProtocol, "the GPU's keeper sent message %u", static_cast<unsigned>(packet.type));
  const auto made = packet.as<protocol::MemoryMade>();
  if (made.error != 0)
    return fail(static_cast<ErrorCode>(made.error), "the GPU's keeper has no memory: %s",
                protocol::get_text(made.text).c_str());
  if (packet.descriptors.size() != 1 || made.bytes != wanted.value)
    return fail(ErrorCode::kProtocol, "the GPU's keeper answered something else");
  return std::move(packet.descriptors.front());
}

}  // namespace

Keepers::~Keepers() {
  for (auto& [device, keeper] : keepers_) end(device, std::move(keeper));
  for (Leaving& leaving : leaving_) ::waitpid(leaving.child.pid, nullptr, 0);
}

pid_t Keepers::process(DeviceId device) const {
  const auto found = keepers_.find(device);
  return found == keepers_.end() ? 0 : found->second.child.pid;
}

Status Keepers::start(DeviceId device, const std::string& uuid) {
  const auto keeper = running(device, uuid);
  if (!keeper) return tl::unexpected(keeper.error());
  return {};
}

Result<Keepers::Keeper*> Keepers::running(DeviceId device, const std::string& uuid) {
  if (const auto found = keepers_.find(device); found != keepers_.end()) return &found->second;
  if (program_.empty()) return fail(ErrorCode::kNotFound, "heddle-keeper is not installed: GPUs cannot be served");
  auto ends = protocol::socket_pair();
  if (!ends) return tl::unexpected(std::move(ends).error());
  Keeper keeper;
  keeper.connection = std::make_unique<Connection>(loop_, std::move(ends->first));
  HEDDLE_TRY(keeper.connection->start({[this, device](protocol::Packet packet) { answered(device, std::move(packet)); },
                                       [this, device](const Error& why) { lost(device, why); }}));
  SpawnOptions options;
  options.program = program_;
  options.arguments = {"--socket", "3"};
  options.descriptors = {ends->second.get()};
  options.output = output_;
  options.apart = true;
  options.environment = gpu_environment(uuid, gpus_);
  auto child = spawn(options);
  if (!child) return tl::unexpected(std::move(child).error());
  keeper.child = std::move(*child);
  return &(keepers_[device] = std::move(keeper));
}

void Keepers::ask(Request request) {
  const DeviceId device = request.wanted.device;
  const auto keeper = running(device, request.wanted.uuid);
  if (!keeper) return refuse(request, keeper.error());
  send_unmaps();
  const MemoryRequest& wanted = request.wanted;
  (*keeper)->connection->send(protocol::MakeMemory{wanted.bytes.value, wanted.on_host ? 1u : 0u, 0, wanted.mapping});
  (*keeper)->requests.push_back(std::move(request));
  if (!(*keeper)->patience) await_answer(device, **keeper);
}

void Keepers::take_back(DeviceId device, Fd memory, Bytes size) {
  if (returning_.empty()) loop_.defer([this] { send_back(); });
  returning_.push_back({device, std::move(memory), size});
}

void Keepers::send_back() {
  for (const Returning& each : std::exchange(returning_, {})) {
    const auto keeper = keepers_.find(each.device);
    if (keeper != keepers_.end()) keeper->second.connection->send(protocol::TakeBack{each.size.value}, each.memory);
  }
}

void Keepers::unmap(DeviceId device, uint64_t mapping) {
  if (unmapping_.empty()) loop_.defer([this] { send_unmaps(); });
  unmapping_.push_back({device, mapping});
}

void Keepers::send_unmaps() {
  for (const Unmapping& each : std::exchange(unmapping_, {})) {
    const auto keeper = keepers_.find(each.device);
    if (keeper != keepers_.end()) keeper->second.connection->send(protocol::UnmapMemory{each.mapping});
  }
}

void Keepers::keep_at_most(DeviceId device, Bytes most) {
  const auto keeper = keepers_.find(device);
  if (keeper != keepers_.end()) keeper->second.connection->send(protocol::KeepAtMost{most.value});
}

void Keepers::answered(DeviceId device, protocol::Packet packet) {
  if (packet.type == protocol::MessageType::kMemoryLeft) {
    await_answer(device, keepers_.at(device));  // it works: a copy may take longer than kAnswerPatience
    return events_.post(FreeMemoryReported{device, Bytes{packet.as<protocol::MemoryLeft>().bytes}});
  }
  Keeper& keeper = keepers_.at(device);
  if (packet.type == protocol::MessageType::kMemoryCopied)
    return copied(device, keeper, packet.as<protocol::MemoryCopied>());
  if (keeper.requests.empty()) return lost(device, {ErrorCode::kProtocol, "it answers what it was not asked"});
  auto memory = memory_in(std::move(packet), keeper.requests.front().wanted.bytes);
  if (!memory && memory.error().code == ErrorCode::kProtocol) return lost(device, memory.error());
  events_.post(MemoryAnswered{std::move(keeper.requests.front().wanted), std::move(memory)});
  keeper.requests.pop_front();
  await_answer(device, keeper);
}

void Keepers::await_answer(DeviceId device, Keeper& keeper) {
  keeper.patience.reset();
  if (keeper.requests.empty() && keeper.copies.empty()) return;
  keeper.patience = loop_.after(kAnswerPatience, [this, device] {
    lost(device, {ErrorCode::kSystem, stringf("it did not answer for %s", to_string(kAnswerPatience).c_str())});
  });
}

// Its requests go to its successor, which is started by the first of them.
void Keepers::lost(DeviceId device, const Error& why) {
  const auto found = keepers_.find(device);
  if (found == keepers_.end()) return;
  logger("heddled")->warn("the keeper of device {} (process {}) is lost: {}; {} requests wait", device.value,
                          found->second.child.pid, why.text,
                          found->second.requests.size() + found->second.copies.size());
  std::deque<Request> requests = std::move(found->second.requests);
  Keeper keeper = std::move(found->second);
  keepers_.erase(found);
  end(device, std::move(keeper));
  for (Request& request : requests) {
    if (std::exchange(request.repeated, true)) {
      refuse(request, {why.code, "the GPU's keeper was lost twice: " + why.text});
    } else {
      ask(std::move(request));
    }
  }
}

void Keepers::refuse(const Request& request, Error error) {
  events_.post(MemoryAnswered{request.wanted, tl::unexpected(std::move(error))});
}

// Reaped when it has gone; what it was copying is repeated then.
void Keepers::end(DeviceId device, Keeper keeper) {
  if (!keeper.child.pidfd) return repeat(device, std::move(keeper.copies));
  kill_process(keeper.child.pidfd, SIGKILL);
  Leaving& leaving = leaving_.emplace_back(Leaving{device, std::move(keeper.child), std::move(keeper.copies), {}});
  auto watch =
      loop_.watch(leaving.child.pidfd.get(), EPOLLIN, [this, pid = leaving.child.pid](uint32_t) { gone(pid); });
  if (watch) leaving.watch = std::move(*watch);
}

void Keepers::gone(pid_t keeper) {
  const auto ended =
      std::find_if(leaving_.begin(), leaving_.end(), [&](const Leaving& each) { return each.child.pid == keeper; });
  if (ended == leaving_.end() || reap(ended->child.pidfd).empty()) return;
  const DeviceId device = ended->device;
  auto copies = std::move(ended->copies);
  leaving_.erase(ended);
  repeat(device, std::move(copies));
}

std::vector<std::string> gpu_environment(const std::string& uuid, const std::vector<std::string>& beside) {
  std::string visible = "CUDA_VISIBLE_DEVICES=" + uuid;
  // A GPU that is there twice would hide all of them. The pool may have one as several devices.
  for (const std::string& other : beside) {
    if (visible.find(other) == std::string::npos) visible += "," + other;
  }
  std::vector<std::string> environment{std::move(visible), "CUDA_MODULE_LOADING=LAZY"};
  // What heddled itself was given to find the driver with.
  for (const char* name : {"LD_LIBRARY_PATH", "HEDDLE_CUDA_LIBRARY"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

}  // namespace heddle::daemon
