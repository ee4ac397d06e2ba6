#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "keeper/test_driver.h"
#include "protocol/own_messages.h"
#include "protocol/socket.h"

namespace heddle::keeper {

inline constexpr Duration kPatience = std::chrono::seconds(60);

// The real keeper over the driver that tests bring; the test is heddled.
struct Keeper : testing::Test {
  void SetUp() override {
    auto pair = protocol::socket_pair();
    ASSERT_TRUE(pair);
    heddled = std::move(pair->first);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const int passed = ::fcntl(pair->second.get(), F_DUPFD_CLOEXEC, 100);
    ::posix_spawn_file_actions_adddup2(&actions, passed, 3);
    char program[] = HEDDLE_KEEPER_PROGRAM, socket[] = "--socket=3";
    char* arguments[] = {program, socket, nullptr};
    ASSERT_EQ(::posix_spawn(&pid, program, &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(passed);
  }
  void TearDown() override {
    if (pid < 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  int exit_status() {
    int status = -1;
    EXPECT_GT(::waitpid(std::exchange(pid, -1), &status, 0), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Between its answers it says what is left.
  template <class Message>
  Message next() {
    pollfd ready{heddled.get(), POLLIN, 0};
    while (::poll(&ready, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(kPatience).count())) == 1) {
      auto packet = heddled.receive();
      if (!packet || !*packet) break;
      if ((*packet)->type != Message::kType) continue;
      descriptors = std::move((*packet)->descriptors);
      return (*packet)->template as<Message>();
    }
    ADD_FAILURE() << "the keeper does not answer";
    return {};
  }
  protocol::MemoryMade ask(uint64_t bytes) {
    EXPECT_TRUE(heddled.send(protocol::MakeMemory{bytes}));
    return next<protocol::MemoryMade>();
  }

  // Memory of the keeper's with a tenant's bytes in it.
  Fd used(uint64_t bytes) {
    ask(bytes);
    if (descriptors.size() != 1) return {};
    auto mapping = map_shared(descriptors[0], Bytes{bytes});
    std::memset(mapping->data(), 0xab, mapping->size());
    return std::move(descriptors[0]);
  }
  void give_back(const Fd& memory, uint64_t bytes) {
    const int lent[] = {memory.get()};
    EXPECT_TRUE(heddled.send(protocol::TakeBack{bytes}, lent));
  }
  static bool is_zero(const Fd& memory, uint64_t bytes) {
    const auto mapping = map_shared(memory, Bytes{bytes}, false);
    const auto* first = static_cast<const char*>(mapping->data());
    return std::all_of(first, first + bytes, [](char byte) { return byte == 0; });
  }

  TestDriver driver;
  protocol::Socket heddled;
  std::vector<Fd> descriptors;
  pid_t pid = -1;
};

// Two pieces of memory that the keeper made, to copy between.
struct KeeperCopies : Keeper {
  static constexpr uint64_t kSize = 4 * kMiB;
  void SetUp() override {
    Keeper::SetUp();
    for (Fd* each : {&to, &from}) {
      ask(kSize);
      ASSERT_EQ(descriptors.size(), 1u);
      *each = std::move(descriptors[0]);
    }
    auto mapped = map_shared(from, Bytes{kSize});
    ASSERT_TRUE(mapped);
    auto* numbers = static_cast<uint32_t*>(mapped->data());
    for (uint32_t i = 0; i < kSize / 4; ++i) numbers[i] = i;
  }
  void send(protocol::CopyMemory copy) {
    copy.to_bytes = copy.from_bytes = kSize;
    const int lent[] = {to.get(), from.get()};
    ASSERT_TRUE(heddled.send(copy, lent));
  }
  protocol::MemoryCopied copied(const protocol::CopyMemory& copy) {
    send(copy);
    return next<protocol::MemoryCopied>();
  }
  std::vector<uint32_t> received() {
    const auto mapped = map_shared(to, Bytes{kSize});
    const auto* numbers = static_cast<const uint32_t*>(mapped->data());
    return {numbers, numbers + kSize / 4};
  }
  static protocol::CopyMemory wanted(uint64_t number, protocol::PeerEnd to, protocol::PeerEnd from, uint64_t width,
                                     uint64_t height = 1, uint64_t depth = 1) {
    return {number, kSize, kSize, to, from, width, height, depth};
  }

  Fd to, from;
};

}  // namespace heddle::keeper
