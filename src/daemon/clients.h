#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "daemon/commands.h"
#include "daemon/requests.h"

namespace heddle::daemon {

// Connections on the control socket: who they are, and to whom their messages go. The first message decides: Hello
// makes it a session's, Command one of the `heddle` command.
class Clients {
 public:
  Clients(Shared& shared, Sessions& sessions, Requests& requests, Commands& commands, Tasks& tasks)
      : shared_(shared), sessions_(sessions), requests_(requests), commands_(commands), tasks_(tasks) {}

  void accept(protocol::Socket socket);
  // What came on a connection, and its end.
  void said(uint64_t client, protocol::Packet packet);
  void closed(uint64_t client, const Error& why);
  // heddled ends: nobody new is let in.
  void stop() { stopping_ = true; }

 private:
  struct Client {
    std::unique_ptr<Connection> connection;
    protocol::PeerCredentials peer;
    SessionId session;     // 0: none
    std::set<JobId> jobs;  // that it opened
  };

  void hello(Client& client, uint64_t key, const protocol::Hello& hello);
  void command(Client& client, const protocol::Command& command);
  void session_message(Client& client, uint64_t key, protocol::Packet packet);
  // Tells the client why, and closes its connection behind this round.
  void refuse(uint64_t key, const Error& error);
  void forget(uint64_t key);
  Status admit(const protocol::PeerCredentials& peer) const;
  // Logs that the peer is refused; what it is to be told.
  protocol::Refused refusal(const protocol::PeerCredentials& peer, const Error& error) const;
  void turn_away(protocol::Socket& socket, const protocol::PeerCredentials& peer, const Error& error) const;
  void erase(uint64_t key);

  Shared& shared_;
  Sessions& sessions_;
  Requests& requests_;
  Commands& commands_;
  Tasks& tasks_;
  uint64_t last_ = 0;
  bool stopping_ = false;
  std::map<uint64_t, Client> clients_;
  std::map<uid_t, size_t> of_user_;  // connections
};

}  // namespace heddle::daemon
