#include "daemon/mps_recovery.h"

#include <sys/epoll.h>

#include <csignal>

#include "core/clock.h"

namespace heddle::daemon {
namespace {

// A process with a context on the GPU is gone 57 to 66 ms after its SIGKILL (HARDWARE.md, p8).
constexpr Duration kClientsEnd = std::chrono::seconds(2);
constexpr Duration kServersEnd = std::chrono::milliseconds(200);   // by themselves, when asked to
constexpr Duration kServersKill = std::chrono::milliseconds(500);  // when made to
constexpr Duration kAnswer = std::chrono::milliseconds(500);       // of the control daemon: 2 ms, mostly
constexpr Duration kControlKill = std::chrono::milliseconds(500);
constexpr Duration kControlReady = std::chrono::seconds(2);
constexpr Duration kControlLook = std::chrono::milliseconds(10);
constexpr Duration kBetweenLaunches = std::chrono::seconds(1);  // of one that does not live

}  // namespace

MpsRecovery::Recovery* MpsRecovery::in_step(DeviceId device, Step step) {
  const auto found = recoveries_.find(device);
  return found == recoveries_.end() || found->second.step != step ? nullptr : &found->second;
}

void MpsRecovery::watch_controls() {
  for (const DeviceId device : mps_.devices()) watch_control(device);
}

void MpsRecovery::watch_control(DeviceId device) {
  auto watch = loop_.watch(mps_.control(device).get(), EPOLLIN, [this, device](uint32_t) {
    controls_.erase(device);
    told_.control_ended(device);
  });
  if (watch) controls_[device] = std::move(*watch);
  commands_.prepare(device);
}

bool MpsRecovery::begin(DeviceId device) {
  if (!mps_.serves(device) || under_way(device)) return false;
  controls_.erase(device);
  commands_.forget(device);
  Recovery& recovery = recoveries_[device];
  recovery.began = MonotonicClock().now();
  recovery.timer = loop_.after(kClientsEnd, [this, device] {
    log_->error("clients of device {}'s MPS do not end: its server is ended with them", device.value);
    end_servers(device);
  });
  return true;
}

void MpsRecovery::clients_gone(DeviceId device) {
  if (in_step(device, Step::kClients)) end_servers(device);
}

void MpsRecovery::end_servers(DeviceId device) {
  Recovery& recovery = recoveries_.at(device);
  recovery.step = Step::kServers;
  recovery.timer.reset();
  for (Child& server : mps_.servers(device)) {
    kill_process(server.pidfd, SIGTERM);
    recovery.servers.push_back({std::move(server), {}});
  }
  // Watched where they stay: the descriptor is the watch's.
  for (Process& server : recovery.servers) {
    auto watch = loop_.watch(server.child.pidfd.get(), EPOLLIN, [this, device](uint32_t) { server_ended(device); });
    if (watch) server.watch = std::move(*watch);
  }
  if (recovery.servers.empty()) return ask_control(device);
  recovery.timer = loop_.after(kServersEnd, [this, device] { kill_servers(device); });
}

void MpsRecovery::kill_servers(DeviceId device) {
  Recovery& recovery = recoveries_.at(device);
  for (const Process& server : recovery.servers) {
    if (has_ended(server.child.pidfd)) continue;
    log_->warn("device {}'s MPS server (process {}) does not end: killing it", device.value, server.child.pid);
    kill_process(server.child.pidfd, SIGKILL);
  }
  recovery.timer = loop_.after(kServersKill, [this, device] { replace_control(device, "its server does not end"); });
}

void MpsRecovery::server_ended(DeviceId device) {
  Recovery* recovery = in_step(device, Step::kServers);
  if (!recovery) return;
  bool left = false;
  for (Process& server : recovery->servers) {
    if (has_ended(server.child.pidfd)) {
      server.watch.reset();
    } else {
      left = true;
    }
  }
  if (!left) ask_control(device);
}

void MpsRecovery::ask_control(DeviceId device) {
  Recovery& recovery = recoveries_.at(device);
  recovery.step = Step::kControl;
  recovery.timer.reset();
  recovery.servers.clear();
  if (has_ended(mps_.control(device))) return replace_control(device, "it has ended");
  const uint64_t question = recovery.question = ++last_question_;
  commands_.ask(device, kAnswer, [this, device, question](bool answered) { asked(device, question, answered); });
}

void MpsRecovery::asked(DeviceId device, uint64_t question, bool answered) {
  Recovery* recovery = in_step(device, Step::kControl);
  if (!recovery || recovery->question != question) return;
  recovery->question = 0;
  answered ? finish(device) : replace_control(device, "it does not answer");
}

void MpsRecovery::replace_control(DeviceId device, const char* why) {
  log_->warn("the MPS control daemon of device {} is replaced: {}", device.value, why);
  Recovery& recovery = recoveries_.at(device);
  recovery.step = Step::kControl;
  recovery.servers.clear();
  recovery.question = 0;
  const Fd& control = mps_.control(device);
  kill_process(control, SIGKILL);
  auto watch = loop_.watch(control.get(), EPOLLIN, [this, device](uint32_t) { launch_control(device); });
  if (watch) recovery.control = std::move(*watch);
  recovery.timer = loop_.after(kControlKill, [this, device] { launch_control(device); });
}

// A server that its control daemon has left behind would keep the next one's from the GPU.
void MpsRecovery::launch_control(DeviceId device) {
  Recovery& recovery = recoveries_.at(device);
  recovery.control.reset();
  recovery.timer.reset();
  const TimePoint now = MonotonicClock().now();
  const auto last = launched_.find(device);
  if (last != launched_.end() && now - last->second < kBetweenLaunches) {
    recovery.timer = loop_.after(last->second + kBetweenLaunches - now, [this, device] { launch_control(device); });
    return;
  }
  for (const Child& server : mps_.servers(device)) kill_process(server.pidfd, SIGKILL);
  launched_[device] = now;
  if (const Status launched = mps_.launch_again(device); !launched)
    log_->error("the MPS control daemon of device {} cannot be started: {}", device.value, launched.error().text);
  await_control(device);
}

void MpsRecovery::await_control(DeviceId device) {
  if (mps_.is_ready(device)) return finish(device);
  const bool over = has_ended(mps_.control(device)) || MonotonicClock().now() - launched_.at(device) > kControlReady;
  if (over) return replace_control(device, "it did not become ready");
  recoveries_.at(device).timer = loop_.after(kControlLook, [this, device] { await_control(device); });
}

void MpsRecovery::finish(DeviceId device) {
  log_->warn("the MPS of device {} takes clients again, {} after the fault", device.value,
             to_string(MonotonicClock().now() - recoveries_.at(device).began));
  recoveries_.erase(device);
  watch_control(device);
  told_.recovered(device);
}

void MpsRecovery::stop() {
  recoveries_.clear();
  controls_.clear();
}

}  // namespace heddle::daemon
