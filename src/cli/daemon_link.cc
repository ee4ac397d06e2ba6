#include "cli/daemon_link.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "cli/output.h"
#include "core/clock.h"
#include "protocol/socket_path.h"
#include "protocol/trust.h"

extern char** environ;

namespace heddle::cli {
namespace {

constexpr Duration kAnswerLimit = std::chrono::seconds(30);
constexpr Duration kStartLimit = std::chrono::seconds(20);
constexpr Duration kStartPoll = std::chrono::milliseconds(20);

// An answer's text: inside the packet, or in the memfd beside it.
Result<std::string> text_of(const protocol::Reply& reply, const std::vector<Fd>& descriptors) {
  if (descriptors.empty()) return std::string(reply.text, std::min<size_t>(reply.length, sizeof reply.text));
  auto size = sealed_size(descriptors[0]);
  if (!size) return tl::unexpected(std::move(size).error());
  if (reply.length > size->value) return fail(ErrorCode::kProtocol, "an answer is shorter than it says");
  auto mapping = map_shared(descriptors[0], *size, /*writable=*/false);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  return std::string(static_cast<const char*>(mapping->data()), reply.length);
}

}  // namespace

Result<DaemonLink> DaemonLink::connect(const std::string& socket_path) {
  auto socket = protocol::connect_to_heddled(socket_path);
  if (!socket) return tl::unexpected(std::move(socket).error());
  return DaemonLink(std::move(*socket));
}

Result<Json> DaemonLink::request(const Json& command) {
  const std::string text = json_text(command);
  protocol::Command message;
  if (text.size() >= sizeof message.text)
    return fail(ErrorCode::kLimitExceeded, "the request has %zu bytes, heddled takes %zu", text.size(),
                sizeof message.text - 1);
  message.length = static_cast<uint32_t>(text.size());
  protocol::set_text(message.text, text);
  HEDDLE_TRY(socket_.send(message));
  std::vector<Fd> descriptors;
  auto reply = socket_.expect<protocol::Reply>(kAnswerLimit, &descriptors);
  if (!reply) return tl::unexpected(std::move(reply).error());
  auto answer_text = text_of(*reply, descriptors);
  if (!answer_text) return tl::unexpected(std::move(answer_text).error());
  auto answer = parse_json(*answer_text);
  if (answer && answer->is_object() && answer->contains("error"))
    return fail(ErrorCode::kPermission, "%s", answer->at("error").get<std::string>().c_str());
  return answer;
}

Result<Json> DaemonLink::in_pages(const Json& command) {
  auto whole = request(command);
  for (auto page = whole; page && page->contains("next");) {
    page = request({{"command", "ps"}, {"from", page->at("next")}});
    if (!page) return page;
    for (const char* list : {"sessions", "jobs"})
      for (Json& each : page->at(list)) whole->at(list).push_back(std::move(each));
    whole->at("hidden_sessions") = count_of(*whole, "hidden_sessions") + count_of(*page, "hidden_sessions");
  }
  if (whole) whole->erase("next");
  return whole;
}

Result<std::optional<Json>> DaemonLink::take_event() {
  pollfd ready{socket_.get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) <= 0) return std::nullopt;
  auto packet = socket_.receive();
  if (!packet) return tl::unexpected(std::move(packet).error());
  if (!*packet || (*packet)->type != protocol::MessageType::kCommand) return std::nullopt;
  const auto event = (*packet)->as<protocol::Command>();
  auto json = parse_json(std::string(event.text, std::min<size_t>(event.length, sizeof event.text)));
  if (!json) return tl::unexpected(std::move(json).error());
  return std::optional<Json>(std::move(*json));
}

std::string executable_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

Result<std::string> find_program(const std::string& name) {
  const std::string bin = executable_directory();
  for (const std::string& candidate : {bin + "/" + name, bin + "/../libexec/heddle/" + name}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return fail(ErrorCode::kNotFound, "'%s' is neither in %s nor in %s/../libexec/heddle: is heddle installed whole?",
              name.c_str(), bin.c_str(), bin.c_str());
}

Result<std::string> library_directory() {
  std::error_code error;
  const auto path = std::filesystem::canonical(executable_directory() + "/../lib/heddle", error);
  if (error)
    return fail(ErrorCode::kNotFound, "no runtime libraries in %s/../lib/heddle: is heddle installed whole?",
                executable_directory().c_str());
  return path.string();
}

namespace {

// Whoever holds it starts the daemon of that socket, and others wait: without it several programs that are started at
// once each start one. The file stays; the lock goes with its holder.
Result<Fd> lock_start(const std::string& socket_path) {
  HEDDLE_TRY(protocol::prepare_directory_of(socket_path, false));
  const std::string path = socket_path + ".lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno(-1, "cannot open '%s'", path.c_str());
  const TimePoint deadline = MonotonicClock().now() + kStartLimit;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(-1, "cannot lock '%s'", path.c_str());
    if (MonotonicClock().now() >= deadline)
      return fail(ErrorCode::kTimeout, "somebody has been starting heddled at '%s' for %s", socket_path.c_str(),
                  to_string(kStartLimit).c_str());
    std::this_thread::sleep_for(kStartPoll);
  }
  return file;
}

}  // namespace

Status start_daemon(const std::string& socket_path, const DaemonStart& how) {
  const auto lock = lock_start(socket_path);
  if (!lock) return tl::unexpected(lock.error());
  if (how.unless_running) {
    if (DaemonLink::connect(socket_path)) return {};  // somebody else was faster
    std::fprintf(stderr, "heddle: no daemon at %s, starting one\n", socket_path.c_str());
  }
  auto vault = find_program("heddle-vault");
  if (!vault) return tl::unexpected(std::move(vault).error());
  std::vector<std::string> arguments{*vault,         "--socket",   socket_path,
                                     "--background", "--restarts", std::to_string(how.restarts)};
  if (!how.config.empty()) arguments.insert(arguments.end(), {"--config", how.config});
  if (!how.policy.empty()) arguments.insert(arguments.end(), {"--policy", how.policy});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  pid_t child;
  if (const int error = ::posix_spawn(&child, vault->c_str(), nullptr, nullptr, argv.data(), environ))
    return fail_errno(error, "cannot start '%s'", vault->c_str());
  int status = 0;
  ::waitpid(child, &status, 0);  // it detaches once its sockets are there
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorCode::kSystem, "heddled did not start: '%s' ended with status %d", vault->c_str(),
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  for (Duration waited{}; waited < kStartLimit; waited += kStartPoll) {
    auto link = DaemonLink::connect(socket_path);
    if (link && link->request({{"command", "ping"}})) return {};
    std::this_thread::sleep_for(kStartPoll);
  }
  return fail(ErrorCode::kTimeout, "heddled was started, but does not answer at '%s' within %s", socket_path.c_str(),
              to_string(kStartLimit).c_str());
}

Result<DaemonLink> connect_to_running() {
  return DaemonLink::connect(protocol::control_socket_path());
}

Result<DaemonLink> connect_or_start() {
  const std::string path = protocol::control_socket_path();
  auto link = DaemonLink::connect(path);
  if (link || link.error().code == ErrorCode::kPermission) return link;
  HEDDLE_TRY(start_daemon(path, {.unless_running = true}));
  return DaemonLink::connect(path);
}

}  // namespace heddle::cli
