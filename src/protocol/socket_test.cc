#include "protocol/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

namespace heddle::protocol {
namespace {

TEST(Socket, CarriesAMessageAndItsDescriptor) {
  auto [left, right] = *socket_pair();
  auto memory = create_memfd("test", Bytes{4096});
  const int fds[] = {memory->get()};
  ASSERT_TRUE(left.send(OpenDevice{.virtual_device = 3}, fds));
  std::vector<Fd> descriptors;
  auto got = right.expect<OpenDevice>(std::chrono::seconds(1), &descriptors);
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(got->virtual_device, 3u);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_EQ(sealed_size(descriptors[0])->value, 4096u);
}

TEST(Socket, ARefusalIsAnErrorWithItsText) {
  auto [left, right] = *socket_pair();
  Refused refused;
  set_text(refused.text, "no such thing");
  ASSERT_TRUE(left.send(refused));
  auto got = right.expect<Welcome>(std::chrono::seconds(1));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().text, "no such thing");
}

TEST(Socket, TellsWhenThePeerIsGone) {
  auto [left, right] = *socket_pair();
  right.close();
  EXPECT_EQ(left.send(Quit{}).error().code, ErrorCode::kPeerDied);
  EXPECT_EQ(left.receive().error().code, ErrorCode::kPeerDied);
}

TEST(Socket, ReadsThePeersLastWordsThoughItLeftOursUnread) {
  auto [left, right] = *socket_pair();
  ASSERT_TRUE(right.send(Quit{}));
  ASSERT_TRUE(left.send(TaskEnded{7}));
  left.close();
  auto last = right.expect<TaskEnded>(std::chrono::seconds(1));
  ASSERT_TRUE(last) << last.error().text;
  EXPECT_EQ(last->serial, 7u);
  EXPECT_EQ(right.receive().error().code, ErrorCode::kPeerDied);
}

TEST(Socket, MovesAboveOtherDescriptorsAndStaysOpen) {
  auto [left, right] = *socket_pair();
  left.move_to_top();
  EXPECT_GT(left.get(), 128);
  const Fd later(::dup(right.get()));
  EXPECT_LT(later.get(), left.get());
  ASSERT_TRUE(left.send(Quit{}));
  EXPECT_TRUE(right.expect<Quit>(std::chrono::seconds(1)));
  left.close();
  EXPECT_EQ(right.receive().error().code, ErrorCode::kPeerDied) << "no copy was left behind";
}

TEST(Socket, GarbageIsAProtocolError) {
  auto [left, right] = *socket_pair();
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<char> garbage(1 + random() % 3000);
    for (char& byte : garbage) byte = static_cast<char>(random() % 5);
    ASSERT_GT(::send(left.get(), garbage.data(), garbage.size(), 0), 0);
    auto got = right.receive();
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kProtocol);
  }
}

TEST(Socket, KnowsItsPeer) {
  auto [left, right] = *socket_pair();
  EXPECT_EQ(left.peer()->pid, ::getpid());
  EXPECT_TRUE(left.peer_pidfd());
}

TEST(ListenAt, RefusesASecondListenerAndReplacesAStaleSocket) {
  const std::string path = testing::TempDir() + "heddle-socket-test-" + std::to_string(::getpid());
  {
    auto first = listen_at(path, 0600);
    ASSERT_TRUE(first) << first.error().text;
    EXPECT_FALSE(listen_at(path, 0600));
  }
  EXPECT_TRUE(listen_at(path, 0600));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace heddle::protocol
