#include "daemon/keepers.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

namespace heddle::daemon {
namespace {

// Its first answer comes when its context is built.
constexpr Duration kPatience = std::chrono::seconds(20);

}  // namespace

Keepers::~Keepers() {
  while (!keepers_.empty()) end(keepers_.begin()->first);
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
  const auto found = keepers_.find(device);
  if (found != keepers_.end() && !has_ended(found->second.child.pidfd)) return &found->second;
  if (found != keepers_.end()) end(device);
  if (program_.empty()) return fail(ErrorCode::kNotFound, "heddle-keeper is not installed: GPUs cannot be served");
  auto ends = protocol::socket_pair();
  if (!ends) return tl::unexpected(std::move(ends).error());
  SpawnOptions options;
  options.program = program_;
  options.arguments = {"--socket", "3"};
  options.descriptors = {ends->second.get()};
  options.output = output_;
  options.apart = true;
  options.environment = gpu_environment(uuid);
  auto child = spawn(options);
  if (!child) return tl::unexpected(std::move(child).error());
  Keeper& keeper = keepers_[device];
  keeper.child = std::move(*child);
  keeper.socket = std::move(ends->first);
  return &keeper;
}

// A keeper that died while it was asked is asked once more, as its successor.
Result<Fd> Keepers::allocate(DeviceId device, const std::string& uuid, Bytes size) {
  for (int attempt = 0;; ++attempt) {
    const auto keeper = running(device, uuid);
    if (!keeper) return tl::unexpected(keeper.error());
    auto memory = ask(**keeper, size);
    if (memory || memory.error().code == ErrorCode::kOutOfMemory || attempt > 0) return memory;
    end(device);
  }
}

Result<Fd> Keepers::ask(Keeper& keeper, Bytes size) {
  HEDDLE_TRY(keeper.socket.send(protocol::MakeMemory{size.value}));
  std::vector<Fd> descriptors;
  const auto answer = keeper.socket.expect<protocol::MemoryMade>(kPatience, &descriptors);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->error != 0)
    return fail(static_cast<ErrorCode>(answer->error), "the GPU's keeper has no memory: %s",
                protocol::get_text(answer->text).c_str());
  if (descriptors.size() != 1 || answer->bytes != size.value)
    return fail(ErrorCode::kProtocol, "the GPU's keeper answered something else");
  return std::move(descriptors.front());
}

void Keepers::end(DeviceId device) {
  Keeper& keeper = keepers_.at(device);
  keeper.socket.close();
  if (keeper.child.pidfd) {
    kill_process(keeper.child.pidfd, SIGKILL);
    ::waitpid(keeper.child.pid, nullptr, 0);
  }
  keepers_.erase(device);
}

std::vector<std::string> gpu_environment(const std::string& uuid) {
  std::vector<std::string> environment{"CUDA_VISIBLE_DEVICES=" + uuid, "CUDA_MODULE_LOADING=EAGER"};
  // What heddled itself was given to find the driver with.
  for (const char* name : {"LD_LIBRARY_PATH", "HEDDLE_CUDA_LIBRARY"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

}  // namespace heddle::daemon
