#include "daemon/testing/household.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/testing/patience.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Socket;

constexpr Duration kPatience = std::chrono::seconds(30);
constexpr Duration kLook = std::chrono::milliseconds(10);

std::string words_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/cmdline");
  std::ostringstream words;
  words << file.rdbuf();  // throws nothing where the process ends meanwhile
  return words.str();
}

}  // namespace

Result<std::unique_ptr<Household>> Household::start(const std::string& config, Serves serves) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what outlives its parents comes here, and is seen
  auto house = std::make_unique<Household>();
  std::string pattern = "/tmp/heddle-test-XXXXXX";
  if (!::mkdtemp(pattern.data())) return fail_errno(-1, "cannot make a directory");
  house->directory_ = pattern;
  house->socket_ = pattern + "/control";
  std::ofstream(pattern + "/config.toml") << config;
  SpawnOptions options;
  options.program = HEDDLE_TEST_LIBEXEC "/heddle-vault";
  options.arguments = {"--libexec",    HEDDLE_TEST_LIBEXEC, "--socket",
                       house->socket_, "--config",          pattern + "/config.toml"};
  if (serves == Serves::kEverybody) {
    options.arguments.push_back("--system");
    ::chmod(pattern.c_str(), 0755);
  }
  auto child = spawn(options);
  if (!child) return tl::unexpected(child.error());
  house->vault_ = std::move(*child);
  Patience patience(kPatience);
  while (!house->ask({{"command", "ping"}})) {
    if (patience.is_over() || has_ended(house->vault_.pidfd))
      return fail(ErrorCode::kTimeout, "heddled does not answer");
    std::this_thread::sleep_for(kLook);
  }
  return house;
}

Household::~Household() {
  if (vault_.pidfd) stop();
  // A heddled whose vault was killed is not reached by that, and vault and heddled start each other again.
  for (auto left = processes("heddle"); !left.empty(); left = processes("heddle")) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

Result<Household::Json> Household::ask(Socket& socket, const Json& command) {
  protocol::Command message;
  const std::string text = command.dump();
  message.length = static_cast<uint32_t>(text.size());
  protocol::set_text(message.text, text);
  HEDDLE_TRY(socket.send(message));
  std::vector<Fd> descriptors;
  const auto reply = socket.expect<protocol::Reply>(kPatience, &descriptors);
  if (!reply) return tl::unexpected(reply.error());
  std::string answer(reply->text, std::min<size_t>(reply->length, sizeof reply->text));
  if (!descriptors.empty()) {
    const auto mapping = map_shared(descriptors.front(), Bytes{reply->length}, false);
    if (!mapping) return tl::unexpected(mapping.error());
    answer.assign(static_cast<const char*>(mapping->data()), reply->length);
  }
  Json json = Json::parse(answer, nullptr, false);
  if (json.is_object() && json.contains("error"))
    return fail(ErrorCode::kPermission, "%s", json["error"].get<std::string>().c_str());
  return json;
}

Result<Household::Json> Household::ask(const Json& command) {
  auto socket = protocol::connect_to(socket_);
  if (!socket) return tl::unexpected(socket.error());
  return ask(*socket, command);
}

pid_t Household::heddled() {
  const auto status = ask({{"command", "status"}});
  return status ? (*status)["pid"].get<pid_t>() : -1;
}

std::vector<pid_t> Household::processes(const std::string& name) const {
  std::vector<pid_t> found;
  DIR* all = ::opendir("/proc");
  if (!all) return found;
  while (const dirent* entry = ::readdir(all)) {
    const std::string words = words_of(entry->d_name);
    const std::string program = words.substr(0, words.find('\0'));
    if (program.find("/" + name) != std::string::npos && words.find(directory_) != std::string::npos)
      found.push_back(std::atoi(entry->d_name));
  }
  ::closedir(all);
  return found;
}

void Household::signal(pid_t pid, int number) {
  if (pid <= 1) {
    ADD_FAILURE() << "process " << pid << " is none to signal";
    return;
  }
  ::kill(pid, number);
}

Household::Json Household::wait_for(const std::string& command, const std::function<bool(const Json&)>& condition) {
  Patience patience(kPatience);
  for (;;) {
    const auto answer = ask({{"command", command}});
    if (answer && condition(*answer)) return *answer;
    if (patience.is_over()) {
      Json last = answer ? *answer : Json{{"error", answer.error().text}};
      ADD_FAILURE() << "waited " << to_string(kPatience) << " for what '" << command << "' last answered: " << last;
      return last;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Household::wait_for_end_or_answer(const Fd& process, pid_t old) {
  Patience patience(kPatience);
  while (!has_ended(process) && !patience.is_over()) {
    const pid_t now = heddled();
    if (now > 0 && now != old) return;
    std::this_thread::sleep_for(kLook);
  }
}

void Household::fail_workers(bool fail, int status) {
  const std::string mark = socket_ + ".worker.fails";
  if (fail) {
    std::ofstream(mark + ".new") << status;
    std::filesystem::rename(mark + ".new", mark);
  } else {
    ::unlink(mark.c_str());
  }
}

void Household::slow_workers(std::chrono::milliseconds by) const {
  std::ofstream(socket_ + ".worker.slow") << by.count() << std::endl;
}

Result<Fd> open_pidfd(pid_t pid) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return fail_errno(-1, "cannot open a pidfd of process %d", pid);
  return fd;
}

void Household::wait_idle(size_t sessions) {
  wait_for("devices", [](const Json& answer) {
    return std::all_of(answer["devices"].begin(), answer["devices"].end(), [](const Json& device) {
      return device["used"] == 0 && device["tasks"] == 0 && device["workers"] == 0;
    });
  });
  wait_for("status", [&](const Json& answer) { return answer["sessions"] == sessions; });
}

int Household::stop() {
  ::kill(vault_.pid, SIGTERM);
  pollfd poll_fd{vault_.pidfd.get(), POLLIN, 0};
  if (::poll(&poll_fd, 1, static_cast<int>(kPatience / std::chrono::milliseconds(1))) <= 0) return -1;
  int status = 0;
  ::waitpid(vault_.pid, &status, 0);
  vault_.pidfd.reset();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace heddle::daemon::testing
