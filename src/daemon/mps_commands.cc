#include "daemon/mps_commands.h"

#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

namespace heddle::daemon {
namespace {

// Between two starts of a program that ends at once, as it does while another one is spoken to.
constexpr Duration kBetweenStarts = std::chrono::milliseconds(10);
// Answered by a number whatever runs, unlike get_server_list.
constexpr const char* kQuestion = "get_default_active_thread_percentage";
constexpr size_t kLongestLine = 4096;

bool is_number(const std::string& line) {
  return !line.empty() && line.find_first_not_of("0123456789.") == std::string::npos;
}

// What is there, up to the end; false at the end.
bool read_all(const Fd& from, std::string& into) {
  std::array<char, 1024> piece{};
  while (into.size() < kLongestLine) {
    const ssize_t count = ::read(from.get(), piece.data(), piece.size());
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    into.append(piece.data(), static_cast<size_t>(count));
  }
  return false;
}

// Takes the whole lines, without their ends.
std::vector<std::string> take_lines(std::string& text) {
  std::vector<std::string> lines;
  for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
    std::string line = text.substr(0, end);
    std::erase(line, '\r');
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

MpsCommands::~MpsCommands() {
  for (auto& [device, gpu] : gpus_) end(gpu);
  for (const auto& [pid, ending] : ending_) ::waitpid(pid, nullptr, 0);
}

void MpsCommands::prepare(DeviceId device) {
  Gpu& gpu = gpus_[device];
  if (gpu.speaker) return;
  if (const Status started = start(device); !started)
    log_->warn("nobody speaks to the MPS control daemon of device {}: {}", device.value, started.error().text);
}

bool MpsCommands::terminate(DeviceId device, pid_t client, Duration patience, const Answered& answered) {
  const std::vector<pid_t> servers = mps_.server_numbers(device);
  // The client is only one server's. The last one's answer is behind the others'.
  for (const pid_t server : servers) {
    const bool last = server == servers.back();
    give(device, stringf("terminate_client %d %d", server, client), patience, last ? answered : Answered());
  }
  return !servers.empty();
}

void MpsCommands::ask(DeviceId device, Duration patience, Answered answered) {
  give(device, kQuestion, patience, std::move(answered));
}

void MpsCommands::give(DeviceId device, std::string text, Duration patience, Answered answered) {
  Gpu& gpu = gpus_[device];
  gpu.commands.push_back({std::move(text), clock_.now() + patience, std::move(answered)});
  if (gpu.commands.size() == 1) say(device);
}

// The first command, to a program that waits for one, or that is started for it.
void MpsCommands::say(DeviceId device) {
  Gpu& gpu = gpus_[device];
  if (gpu.commands.empty()) return;
  const TimePoint until = gpu.commands.front().until;
  if (!gpu.speaker && clock_.now() >= gpu.next_start) {
    if (const Status started = start(device); !started)
      log_->warn("MPS of device {} is not told '{}': {}", device.value, gpu.commands.front().text,
                 started.error().text);
  }
  if (!gpu.speaker) {
    const bool again = gpu.next_start < until;
    gpu.timer = loop_.at(again ? gpu.next_start : until,
                         [this, device, again] { again ? say(device) : finish(device, false); });
    return;
  }
  // A pipe has room for a line. What has ended already is seen when the answers end.
  const std::string line = gpu.commands.front().text + '\n';
  (void)!::write(gpu.speaker->at.commands.get(), line.data(), line.size());
  gpu.timer = loop_.at(until, [this, device] { finish(device, false); });
}

Status MpsCommands::start(DeviceId device) {
  Gpu& gpu = gpus_[device];
  gpu.next_start = clock_.now() + kBetweenStarts;
  auto speaker = mps_.speak(device);
  if (!speaker) return tl::unexpected(std::move(speaker).error());
  gpu.speaker = Speaker{std::move(*speaker), {}, {}};
  auto watch = loop_.watch(gpu.speaker->at.answers.get(), EPOLLIN, [this, device](uint32_t) { heard(device); });
  if (!watch) {
    end(gpu);
    return tl::unexpected(std::move(watch).error());
  }
  gpu.speaker->watch = std::move(*watch);
  return {};
}

void MpsCommands::heard(DeviceId device) {
  Gpu& gpu = gpus_[device];
  const bool goes_on = read_all(gpu.speaker->at.answers, gpu.speaker->read);
  bool answered = false;
  for (const std::string& line : take_lines(gpu.speaker->read)) {
    answered |= is_number(line);
    if (!is_number(line) && !line.empty()) log_->warn("MPS of device {} says '{}'", device.value, line);
  }
  if (answered && !gpu.commands.empty()) finish(device, true);
  if (!goes_on) replace(device);
}

void MpsCommands::forget(DeviceId device) {
  Gpu& gpu = gpus_[device];
  gpu.commands.clear();
  gpu.timer.reset();
  end(gpu);
}

// A program that may still answer is not asked anything else.
void MpsCommands::finish(DeviceId device, bool in_time) {
  Gpu& gpu = gpus_[device];
  gpu.timer.reset();
  if (!in_time) end(gpu);
  const Command done = std::move(gpu.commands.front());
  gpu.commands.pop_front();
  say(device);
  if (done.answered) done.answered(in_time);
}

void MpsCommands::replace(DeviceId device) {
  end(gpus_[device]);
  say(device);
}

void MpsCommands::end(Gpu& gpu) {
  if (!gpu.speaker) return;
  gpu.speaker->watch.reset();
  Child program = std::move(gpu.speaker->at.program);
  gpu.speaker.reset();
  kill_process(program.pidfd, SIGKILL);
  const pid_t pid = program.pid;
  Ending& ending = ending_[pid] = {std::move(program), {}};
  auto watch = loop_.watch(ending.program.pidfd.get(), EPOLLIN, [this, pid](uint32_t) { reap_program(pid); });
  if (watch) ending.watch = std::move(*watch);
}

void MpsCommands::reap_program(pid_t pid) {
  (void)reap(ending_.at(pid).program.pidfd);
  ending_.erase(pid);
}

}  // namespace heddle::daemon
