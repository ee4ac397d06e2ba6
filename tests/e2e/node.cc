#include "node.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "cli/daemon_link.h"
#include "core/sanitizer.h"
#include "core/testing/patience.h"

extern char** environ;

namespace heddle::e2e {
namespace {

const std::string kBin = HEDDLE_BIN_DIRECTORY;
constexpr Duration kPoll = std::chrono::milliseconds(10);

std::string testing_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream contents;
  contents << file.rdbuf();  // throws nothing where it is of a process that ends meanwhile
  return contents.str();
}

std::string temporary_file() {
  std::string path = testing_directory() + "/heddle-e2e-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd >= 0) ::close(fd);
  return path;
}

// This process's environment with `changes` made to it.
std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string variable = *entry;
    if (!changes.contains(variable.substr(0, variable.find('=')))) result.push_back(variable);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Whether all threads of a process that was stopped have heard of it, or are gone.
bool stands_still(pid_t pid) {
  const auto is_stopped = [](const std::filesystem::path& thread) {
    const std::string stat = contents_of(thread / "stat");  // PID (NAME) STATE, and the name may have anything in it
    const size_t name_ends = stat.rfind(')');
    return name_ends == std::string::npos || std::string("TZX").find(stat[name_ends + 2]) != std::string::npos;
  };
  return Node::eventually([&] {
    std::error_code gone;
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", gone);
    return std::all_of(begin(threads), end(threads), [&](const auto& thread) { return is_stopped(thread.path()); });
  });
}

}  // namespace

Process::Process(const Arguments& command, const std::map<std::string, std::string>& changes)
    : out_path_(temporary_file()), err_path_(temporary_file()) {
  Arguments words = command;
  std::vector<std::string> environment = changed_environment(changes);
  const auto argv = pointers_to(words), envp = pointers_to(environment);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(::open(out_path_.c_str(), O_WRONLY | O_TRUNC), STDOUT_FILENO);
  ::dup2(::open(err_path_.c_str(), O_WRONLY | O_TRUNC), STDERR_FILENO);
  ::execvpe(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_path_(std::move(other.out_path_)),
      err_path_(std::move(other.err_path_)),
      status_(other.status_),
      reaped_(other.reaped_) {}

Process::~Process() {
  if (pid_ < 0) return;
  if (running()) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  ::unlink(out_path_.c_str());
  ::unlink(err_path_.c_str());
}

void Process::signal(int signal) const {
  ::kill(pid_, signal);
}

std::string Process::out() const {
  return contents_of(out_path_);
}

std::string Process::err() const {
  return contents_of(err_path_);
}

bool Process::running() {
  if (!reaped_) reaped_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !reaped_;
}

Finished Process::wait(Duration limit) {
  const bool ended = Node::eventually([this] { return !running(); }, limit);
  if (!ended) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    reaped_ = true;
  }
  Finished finished;
  finished.status = !ended ? -1 : WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  finished.out = contents_of(out_path_);
  finished.err = contents_of(err_path_);
  return finished;
}

std::string Node::default_config() {
  return R"([daemon]
warm_workers = 1

[[device]]
preset = "P100"
count = 2
memory = "256M"
slowdown = 0
copy_slowdown = 0
)";
}

Node::Node(const std::string& config, const std::string& policy) {
  directory_ = testing_directory() + "/heddle-node-XXXXXX";
  if (!::mkdtemp(directory_.data())) {
    why_ = "cannot make " + directory_;
    return;
  }
  std::ofstream(directory_ + "/heddle.toml") << config;
  const Finished started =
      heddle({"daemon", "start", "--config", directory_ + "/heddle.toml", "--policy", policy, "--restarts", "1000000"});
  if (started.status != 0) why_ = "heddled did not start: " + started.err + log();
}

Node::~Node() {
  stop_cleanly();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::map<std::string, std::string> Node::environment() const {
  std::map<std::string, std::string> changes{{"HEDDLE_SOCKET", socket()}, {"XDG_RUNTIME_DIR", directory_}};
  // Programs that nvcc built know nothing of the sanitizer that the runtime they load was built with.
  if (const std::string sanitizer = HEDDLE_SANITIZER_LIBRARY; !sanitizer.empty()) {
    changes["LD_PRELOAD"] = sanitizer;
    changes["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
  }
  return changes;
}

Finished Node::heddle(const Arguments& arguments, Duration limit) {
  return spawn(arguments).wait(limit);
}

Process Node::spawn(const Arguments& arguments) {
  Arguments command{kBin + "/heddle"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Process(command, environment());
}

Finished Node::run(const Arguments& command, Duration limit) {
  return spawn_run(command).wait(limit);
}

Process Node::spawn_run(const Arguments& command) {
  Arguments arguments{"run", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return spawn(arguments);
}

Finished Node::run_under(const std::string& ulimit, const Arguments& command) {
  Arguments arguments{"/bin/sh", "-c", "ulimit " + ulimit + "; exec \"$@\"", "sh", kBin + "/heddle", "run", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return Process(arguments, environment()).wait();
}

Json Node::ask(const Json& command) {
  auto link = cli::DaemonLink::connect(socket());
  if (!link) return Json::object();
  auto answer = link->request(cli::Json::parse(command.dump()));
  return answer ? Json::parse(answer->dump()) : Json::object();
}

bool Node::eventually(const std::function<bool()>& holds, Duration limit) {
  Patience patience(limit);
  while (!holds()) {
    if (patience.is_over()) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

bool Node::empty() {
  const Json sessions = ask({{"command", "ps"}}), devices = ask({{"command", "devices"}});
  if (!sessions.contains("sessions") || !devices.contains("devices") || !sessions["sessions"].empty()) return false;
  for (const Json& device : devices["devices"]) {
    if (device["used"] != 0 || device["tasks"] != 0) return false;
  }
  return true;
}

std::string Node::gpu_config() {
  std::string config = R"(
[daemon]
warm_workers = 1
[[gpu]]
mps = "off"
memory = "256M"
context_memory = "0"
variables_stay = true
)";
  // The only one that the driver for tests has then, and a program may come before a worker could say so.
  if (kSanitized) config += "[[window]]\nbase = 0x7e8000000000\ndevice = '448G'\nhost = '32G'\n";
  return config;
}

bool Node::warm() {
  return eventually([this] {
    const Json devices = ask({{"command", "devices"}});
    return devices.contains("devices") && devices["devices"][0]["warm_workers"] != 0;
  });
}

// What is asked of the task counts: once the worker stands still, it stays so.
pid_t Node::stop_worker(const std::function<Json()>& task, const std::function<bool(const Json&)>& wanted) {
  pid_t worker = -1;
  const bool stopped = eventually([&] {
    worker = task().value("worker_pid", -1);
    if (worker <= 1 || ::kill(worker, SIGSTOP) != 0) return false;
    const Json now = stands_still(worker) ? task() : Json::object();
    const bool is_wanted = now.value("worker_pid", -1) == worker && wanted(now);
    if (!is_wanted) ::kill(worker, SIGCONT);
    return is_wanted;
  });
  return stopped ? worker : -1;
}

pid_t Node::stop_at_work(const Json& id) {
  const auto task = [&] {
    for (const Json& session : ask({{"command", "ps"}}).value("sessions", Json::array())) {
      if ((id.is_null() || session["session"] == id) && !session["tasks"].empty()) return session["tasks"][0];
    }
    return Json::object();
  };
  return stop_worker(task, [](const Json& now) { return now["drained"] == false; });
}

pid_t Node::kill_at_work(pid_t last, std::optional<uint32_t> virtual_device) {
  const auto busy_task = [&] {
    const Json all = ask({{"command", "ps"}, {"whole", true}});
    const Json sessions = all.value("sessions", Json::array());
    if (sessions.empty() || sessions[0]["usage"]["busy_now"] != true) return Json::object();
    for (const Json& task : sessions[0]["tasks"]) {
      if (!task.contains("device") || (virtual_device && task["virtual_device"] != *virtual_device)) continue;
      const bool busy = all["devices"][task["device"].get<size_t>()]["usage"]["busy_now"] == true;
      if (busy && task.value("worker_pid", last) != last) return task;
    }
    return Json::object();
  };
  const pid_t worker = stop_worker(busy_task, [](const Json& now) { return now["drained"] == true; });
  return worker > 1 && ::kill(worker, SIGKILL) == 0 ? worker : -1;
}

void Node::stand_still(Duration time) {
  std::vector<pid_t> all = keeper_pids();
  const auto others = processes_of_node();
  all.insert(all.end(), others.begin(), others.end());
  for (const pid_t pid : all) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(time);
  for (const pid_t pid : all) ::kill(pid, SIGCONT);
}

pid_t Node::daemon_pid() {
  return ask({{"command", "status"}}).value("pid", -1);
}
pid_t Node::vault_pid() {
  const auto vaults = running("heddle-vault");
  return vaults.empty() ? -1 : vaults.front();
}
std::vector<pid_t> Node::worker_pids() {
  return running("heddle-worker");
}

// Nothing in a keeper's command line or environment tells whose it is; its parent does.
std::vector<pid_t> Node::keeper_pids() {
  const std::string heddled = std::to_string(daemon_pid());
  std::istringstream children(contents_of("/proc/" + heddled + "/task/" + heddled + "/children"));
  std::vector<pid_t> keepers;
  for (pid_t pid; children >> pid;) {
    if (contents_of("/proc/" + std::to_string(pid) + "/comm") == "heddle-keeper\n") keepers.push_back(pid);
  }
  return keepers;
}

// Whatever has this node's socket or directory in its command line or environment, this test aside.
std::vector<pid_t> Node::processes_of_node() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    const std::string command = contents_of(entry.path() / "cmdline");
    const std::string environment = contents_of(entry.path() / "environ");
    if (command.find(directory_) != std::string::npos || environment.find(directory_) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> Node::running(const std::string& program) const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_of_node()) {
    std::error_code ignored;
    const auto executable = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored);
    if (executable.filename() == program) found.push_back(pid);
  }
  return found;
}

bool Node::stop_cleanly() {
  heddle({"daemon", "stop"}, std::chrono::seconds(30));
  const bool gone = eventually([this] { return processes_of_node().empty(); }, std::chrono::seconds(10));
  for (const pid_t pid : processes_of_node()) ::kill(pid, SIGKILL);
  return gone;
}

std::string Node::log() const {
  std::string text;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    if (entry.path().extension() == ".log") text += contents_of(entry.path());
  }
  return text;
}

unsigned setting(const char* name, unsigned fallback) {
  const char* text = std::getenv(name);
  return text ? static_cast<unsigned>(std::atoi(text)) : fallback;
}

std::string workload(const std::string& name, bool static_runtime) {
  const std::string path = std::string(HEDDLE_WORKLOADS) + "/" + name + (static_runtime ? "_static" : "");
  return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

}  // namespace heddle::e2e
