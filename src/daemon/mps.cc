#include "daemon/mps.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "daemon/keepers.h"
#include "daemon/proc_file.h"

namespace heddle::daemon {
namespace {

constexpr const char* kControl = "nvidia-cuda-mps-control";
constexpr const char* kServer = "nvidia-cuda-mps-server";
constexpr const char* kPlaces[] = {"/usr/bin", "/usr/local/nvidia/bin", "/usr/local/bin"};
constexpr size_t kNameLength = 15;  // that the kernel keeps of a process's
constexpr int kLooks = 200;         // of 10 ms, for the daemon's pipe, and for its end

std::string pid_file(const std::string& directory) {
  return directory + "/control.pid";
}

Fd open_process(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

pid_t read_pid(const std::string& path) {
  int pid = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%d", &pid) != 1) pid = 0;
    std::fclose(file);
  }
  return pid;
}

Status write_pid(const std::string& path, pid_t pid) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (!file) return fail_errno(-1, "cannot write '%s'", path.c_str());
  std::fprintf(file, "%d\n", pid);
  std::fclose(file);
  return {};
}

pid_t parent_of(pid_t pid) {
  const std::string status = read_proc_file(pid, "status");
  const size_t found = status.find("\nPPid:");
  return found == std::string::npos ? 0 : std::atoi(status.c_str() + found + 6);
}

// Empty where the kernel does not tell.
std::vector<pid_t> children_of(pid_t pid) {
  std::istringstream list(read_proc_file(pid, stringf("task/%d/children", pid).c_str()));
  return {std::istream_iterator<pid_t>(list), {}};
}

// Its program's name stands in its first word, or, of a script, in the second.
bool is_server(pid_t pid) {
  const std::string line = read_proc_file(pid, "cmdline");
  const size_t first = line.find('\0');
  if (first == std::string::npos) return line.ends_with(kServer);
  const size_t second = line.find('\0', first + 1);
  return std::string_view(line).substr(0, first).ends_with(kServer) ||
         std::string_view(line).substr(first + 1, second - first - 1).ends_with(kServer);
}

// Zero stands before and behind each variable.
bool has_variable(pid_t pid, const std::string& variable) {
  return ('\0' + read_proc_file(pid, "environ")).find('\0' + variable + '\0') != std::string::npos;
}

// What everybody has of it who belongs to the GPU's MPS.
std::string pipe_variable(const std::string& directory) {
  return "CUDA_MPS_PIPE_DIRECTORY=" + directory;
}

// A number may be another process's by now. Its program's file says nothing: what stands in NVIDIA's place may be a
// script that starts it. Clients of the GPU have its directory, too, so the name counts.
bool is_control(pid_t pid, const std::string& program, const std::string& directory) {
  const std::string name = std::filesystem::path(program).filename().string().substr(0, kNameLength);
  return read_proc_file(pid, "comm") == name + '\n' && has_variable(pid, pipe_variable(directory));
}

void nap() {
  const timespec ten_milliseconds{0, 10'000'000};
  ::nanosleep(&ten_milliseconds, nullptr);
}

}  // namespace

std::string Mps::find_control() {
  std::vector<std::string> places(std::begin(kPlaces), std::end(kPlaces));
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    places.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  for (const std::string& place : places) {
    std::string program = place + "/" + kControl;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::vector<std::string> Mps::variables(const Gpu& gpu) {
  std::vector<std::string> variables = gpu_environment(gpu.uuid);
  variables.push_back(pipe_variable(gpu.directory));
  variables.push_back("CUDA_MPS_LOG_DIRECTORY=" + gpu.directory);
  return variables;
}

std::vector<std::string> Mps::environment(DeviceId device) const {
  const auto found = gpus_.find(device);
  if (found == gpus_.end()) return outside();
  return {pipe_variable(found->second.directory), "CUDA_MPS_LOG_DIRECTORY=" + found->second.directory};
}

Status Mps::start(DeviceId device, const std::string& uuid) {
  if (!installed())
    return fail(ErrorCode::kNotFound, "%s is not installed: set mps = \"off\" for this GPU, or install it", kControl);
  Gpu gpu;
  gpu.uuid = uuid;
  gpu.directory = options_.directory + stringf("/mps-%lu", static_cast<unsigned long>(device.value));
  if (::mkdir(gpu.directory.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_errno(-1, "cannot make '%s'", gpu.directory.c_str());
  if (!adopt(gpu)) {
    HEDDLE_TRY(launch(gpu));
    HEDDLE_TRY(await(gpu));
  }
  gpus_[device] = std::move(gpu);
  return {};
}

bool Mps::adopt(Gpu& gpu) const {
  const pid_t pid = read_pid(pid_file(gpu.directory));
  if (pid <= 1) return false;
  Fd process = open_process(pid);
  if (!process || !is_control(pid, options_.program, gpu.directory)) return false;
  gpu.pid = pid;
  gpu.process = std::move(process);
  return true;
}

// The number is written before anybody waits, so that an interrupted start leaves nothing that its successor does not
// find.
Status Mps::launch(Gpu& gpu) const {
  SpawnOptions options;
  options.program = options_.program;
  options.arguments = {"-f"};  // in the foreground: it stays the process that was started
  options.output = options_.output;
  options.apart = true;
  options.environment = variables(gpu);
  ::unlink((gpu.directory + "/control").c_str());
  auto child = spawn(options);
  if (!child) return tl::unexpected(std::move(child).error());
  gpu.pid = child->pid;
  gpu.process = std::move(child->pidfd);
  return write_pid(pid_file(gpu.directory), gpu.pid);
}

bool Mps::is_ready(const Gpu& gpu) {
  return ::access((gpu.directory + "/control").c_str(), F_OK) == 0;
}

Status Mps::await(const Gpu& gpu) {
  for (int look = 0; look < kLooks && !has_ended(gpu.process); ++look) {
    if (is_ready(gpu)) return {};
    nap();
  }
  const std::string how = reap(gpu.process);
  kill_process(gpu.process, SIGKILL);
  return fail(ErrorCode::kSystem, "%s for %s is not ready (%s): see its log in '%s'", kControl, gpu.uuid.c_str(),
              how.empty() ? "it says nothing" : how.c_str(), gpu.directory.c_str());
}

std::vector<DeviceId> Mps::devices() const {
  std::vector<DeviceId> devices;
  for (const auto& [device, gpu] : gpus_) devices.push_back(device);
  return devices;
}

// It prints to a terminal, because to a pipe it would say nothing until its end.
Result<Mps::Speaker> Mps::speak(DeviceId device) const {
  const Gpu& gpu = gpus_.at(device);
  int ends[2], terminal[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe to %s", kControl);
  const Fd input(ends[0]);
  Speaker speaker;
  speaker.commands = Fd(ends[1]);
  if (::openpty(&terminal[0], &terminal[1], nullptr, nullptr, nullptr) != 0)
    return fail_errno(errno, "cannot make a terminal for %s", kControl);
  speaker.answers = Fd(terminal[0]);
  const Fd output(terminal[1]);
  ::fcntl(terminal[0], F_SETFD, FD_CLOEXEC);
  ::fcntl(terminal[1], F_SETFD, FD_CLOEXEC);
  ::fcntl(terminal[0], F_SETFL, O_NONBLOCK);
  SpawnOptions options;
  options.program = options_.program;
  options.input = input.get();
  options.output = output.get();
  options.apart = true;
  options.environment = variables(gpu);
  auto program = spawn(options);
  if (!program) return tl::unexpected(std::move(program).error());
  speaker.program = std::move(*program);
  return speaker;
}

std::vector<pid_t> Mps::server_numbers(DeviceId device) const {
  std::vector<pid_t> numbers = children_of(gpus_.at(device).pid);
  std::erase_if(numbers, [](pid_t pid) { return !is_server(pid); });
  if (!numbers.empty()) return numbers;
  for (const Child& server : servers(device)) numbers.push_back(server.pid);
  return numbers;
}

std::vector<Child> Mps::servers(DeviceId device) const {
  return servers(gpus_.at(device));
}

// A child of our control daemon; or, where that has died, a process in the GPU's own directories. The descriptor comes
// first: what it is found to be by its number then is what a signal goes to.
std::vector<Child> Mps::servers(const Gpu& gpu) {
  std::vector<Child> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 1 || !is_server(pid)) continue;
    Fd process = open_process(pid);
    const bool ours = (gpu.pid > 1 && parent_of(pid) == gpu.pid) || has_variable(pid, pipe_variable(gpu.directory));
    if (process && ours && is_server(pid) && !has_ended(process)) found.push_back({pid, std::move(process)});
  }
  return found;
}

Status Mps::launch_again(DeviceId device) {
  Gpu& gpu = gpus_.at(device);
  (void)reap(gpu.process);
  return launch(gpu);
}

bool Mps::is_ready(DeviceId device) const {
  const Gpu& gpu = gpus_.at(device);
  return !has_ended(gpu.process) && is_ready(gpu);
}

// A server that its control daemon has left behind would hold the GPU.
void Mps::end() {
  for (auto& [device, gpu] : gpus_) {
    const std::vector<Child> orphans = servers(gpu);
    kill_process(gpu.process, SIGTERM);
    for (int look = 0; look < kLooks && !has_ended(gpu.process); ++look) nap();
    if (!has_ended(gpu.process)) kill_process(gpu.process, SIGKILL);
    (void)reap(gpu.process);
    for (const Child& server : orphans) kill_process(server.pidfd, SIGKILL);
    std::error_code ignored;
    std::filesystem::remove_all(gpu.directory, ignored);
  }
  gpus_.clear();
}

}  // namespace heddle::daemon
