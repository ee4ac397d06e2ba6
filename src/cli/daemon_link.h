#pragma once

#include "cli/json.h"
#include "protocol/socket.h"

namespace heddle::cli {

// A connection of the command to heddled: JSON requests, JSON answers.
class DaemonLink {
 public:
  // To the heddled that listens at `socket_path`.
  static Result<DaemonLink> connect(const std::string& socket_path);

  // Sends {"command": ...} and waits for the answer. An answer {"error": text} becomes an Error.
  Result<Json> request(const Json& command);

  // The answer to `ps`, whose sessions come in pages, as one.
  Result<Json> ps() { return in_pages({{"command", "ps"}}); }
  // With the devices and heddled itself, as of the moment of the first page; each other page is as of its own.
  Result<Json> whole() { return in_pages({{"command", "ps"}, {"whole", true}}); }

  // What heddled sent by itself (an event); nullopt when there is nothing.
  Result<std::optional<Json>> take_event();
  int descriptor() const { return socket_.get(); }

 private:
  Result<Json> in_pages(const Json& command);
  explicit DaemonLink(protocol::Socket socket) : socket_(std::move(socket)) {}
  protocol::Socket socket_;
};

// The directory of the running executable, where heddle's other programs are looked for first.
std::string executable_directory();
// The first of `<bin>/NAME` and `<bin>/../libexec/heddle/NAME` that exists.
Result<std::string> find_program(const std::string& name);
// The directory with the runtime libraries that tenants load: <bin>/../lib/heddle.
Result<std::string> library_directory();

struct DaemonStart {
  std::string config;           // path; empty: the default configuration
  std::string policy;           // empty: as configured
  bool unless_running = false;  // nothing is done where one listens by now; otherwise stderr says that one is started
  int restarts = 5;             // the vault gives up when heddled dies more often than this within a minute
};
// Starts heddled (by way of its vault) for this user in the background and waits until it answers at `socket_path`.
// Of several at once for one socket, one after the other does so. kPermission where the socket's directory is not this
// user's alone.
Status start_daemon(const std::string& socket_path, const DaemonStart& how);
// To the heddled of the environment's socket; none is started.
Result<DaemonLink> connect_to_running();
// Connects, starting a daemon first where none listens; says so on stderr.
Result<DaemonLink> connect_or_start();

}  // namespace heddle::cli
