#include "daemon/clients.h"

#include <unistd.h>

#include "daemon/cuda_codes.h"

namespace heddle::daemon {

using protocol::MessageType;

namespace {

// Of answers that nobody reads: a dozen of the longest, and what goes in memory beside them.
constexpr size_t kMostBytesWaiting = 256 * kKiB, kMostDescriptorsWaiting = 16;

}  // namespace

// A user's own heddled serves that user; the system's serves everybody.
Status Clients::admit(const protocol::PeerCredentials& peer) const {
  if (stopping_) return fail(ErrorCode::kCancelled, "heddled is ending");
  if (!shared_.places.shared && peer.uid != ::geteuid())
    return fail(ErrorCode::kPermission, "this heddled serves user %u only, not user %u", ::geteuid(), peer.uid);
  const auto own = of_user_.find(peer.uid);
  if (own != of_user_.end() && own->second >= shared_.config.limits.connections_per_user)
    return fail(ErrorCode::kLimitExceeded,
                "user %u has %zu connections, and limits.connections_per_user allows no more", peer.uid, own->second);
  return {};
}

void Clients::accept(protocol::Socket socket) {
  const auto peer = socket.peer();
  if (!peer) return;
  if (const Status admitted = admit(*peer); !admitted) return turn_away(socket, *peer, admitted.error());
  const uint64_t key = ++last_;
  Client client{std::make_unique<Connection>(shared_.loop, std::move(socket)), *peer, {}, {}};
  client.connection->stop_behind({kMostBytesWaiting, kMostDescriptorsWaiting});
  const uid_t user = peer->uid;
  const Status started =
      client.connection->start({[this, key, user, connection = client.connection.get()](protocol::Packet packet) {
                                  connection->hold();
                                  shared_.events.post_of(user, ClientSaid{key, std::move(packet)});
                                },
                                [this, key, user](const Error& error) {
                                  shared_.events.post_of(user, ClientClosed{key, error});
                                }});
  if (!started) return;
  clients_.emplace(key, std::move(client));
  ++of_user_[peer->uid];
}

protocol::Refused Clients::refusal(const protocol::PeerCredentials& peer, const Error& error) const {
  shared_.log->warn("process {} of user {} is refused: {}", peer.pid, peer.uid, error.text);
  protocol::Refused refused;
  protocol::set_text(refused.text, error.text);
  return refused;
}

// Said once, without keeping anything of it: a peer that does not even take that has closed, or never reads.
void Clients::turn_away(protocol::Socket& socket, const protocol::PeerCredentials& peer, const Error& error) const {
  const protocol::Refused refused = refusal(peer, error);
  if (protocol::set_nonblocking(socket)) (void)socket.send(refused);
}

void Clients::said(uint64_t key, protocol::Packet packet) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  Client& client = found->second;
  client.connection->handled();
  if (packet.type == MessageType::kCommand) return command(client, packet.as<protocol::Command>());
  if (client.session.value != 0) return session_message(client, key, std::move(packet));
  if (packet.type == MessageType::kHello) return hello(client, key, packet.as<protocol::Hello>());
  refuse(key,
         {ErrorCode::kProtocol, stringf("message %u before Hello or a command", static_cast<unsigned>(packet.type))});
}

void Clients::hello(Client& client, uint64_t key, const protocol::Hello& hello) {
  const auto session = sessions_.hello(hello, *client.connection, client.peer);
  if (!session) return refuse(key, session.error());
  client.session = (*session)->id;
  client.connection->send(sessions_.welcome(**session));
}

void Clients::command(Client& client, const protocol::Command& command) {
  const auto reply = commands_.answer(command, client.peer, *client.connection, client.jobs);
  if (!reply.memory) return client.connection->send(reply.message);
  client.connection->send(reply.message, reply.memory);
}

void Clients::session_message(Client& client, uint64_t key, protocol::Packet packet) {
  Session* session = shared_.registry.find_session(client.session);
  if (!session || session->ending) return forget(key);  // sent before its process ended
  if (session->connection != client.connection.get()) return refuse(key, {ErrorCode::kNotFound, "the session is over"});
  if (const Status done = requests_.handle(*session, std::move(packet)); !done) {
    tasks_.fail_session(*session, kCudaNotPermitted, "the program broke heddle's protocol: " + done.error().text);
    refuse(key, done.error());
  }
}

void Clients::refuse(uint64_t key, const Error& error) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  Client& client = found->second;
  client.connection->send(refusal(client.peer, error));
  forget(key);
}

void Clients::closed(uint64_t key, const Error& error) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  // The peer's end is ordinary; garbage is not.
  if (error.code == ErrorCode::kPeerDied) return forget(key);
  if (Session* session = shared_.registry.find_session(found->second.session))
    tasks_.fail_session(*session, kCudaNotPermitted, "the program broke heddle's protocol: " + error.text);
  refuse(key, error);
}

void Clients::forget(uint64_t key) {
  Client& client = clients_.at(key);
  Session* session = shared_.registry.find_session(client.session);
  if (session && session->connection == client.connection.get()) sessions_.disconnected(*session);
  client.session = {};
  client.connection->pause();
  for (const JobId job : std::exchange(client.jobs, {})) sessions_.abandon(job);
  shared_.loop.defer([this, key] { erase(key); });
}

void Clients::erase(uint64_t key) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  const auto own = of_user_.find(found->second.peer.uid);
  if (--own->second == 0) of_user_.erase(own);
  clients_.erase(found);
}

}  // namespace heddle::daemon
