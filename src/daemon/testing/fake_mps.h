#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace heddle::daemon::testing {

// NVIDIA's MPS as its users see it: a control program and a server, found first in PATH by a household that starts
// while this lives.
class FakeMps {
 public:
  FakeMps() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    write_program("nvidia-cuda-mps-control", kControl);
    write_program("nvidia-cuda-mps-server", kServer);
    ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
  }
  ~FakeMps() {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }
  FakeMps(const FakeMps&) = delete;
  FakeMps& operator=(const FakeMps&) = delete;

  // From now on its control daemon says nothing until it is started anew, and servers started from now on do not end by
  // SIGTERM.
  void make_mute() const { std::ofstream{directory_ + "/mute"}; }
  void make_stubborn() const { std::ofstream{directory_ + "/stubborn"}; }
  // It says nothing, and no control daemon that is started becomes ready, until it may come back.
  void go_away() const {
    std::ofstream{directory_ + "/away"};
    make_mute();
  }
  void come_back() const { std::filesystem::remove(directory_ + "/away"); }
  // All servers that ever ran, in order.
  std::vector<pid_t> servers() const {
    std::vector<pid_t> pids;
    std::ifstream file(directory_ + "/servers");
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    return pids;
  }

 private:
  // In the foreground it always has a server. Otherwise it is spoken to, and says nothing where it is "mute". A client
  // is taken off once it is no longer stopped; it learns of that by SIGURG.
  static constexpr const char* kControl = R"sh(#!/bin/sh
here="$(dirname "$0")"
if [ "$1" = -f ]; then
  trap 'exit 0' TERM
  while [ -e "$here/away" ]; do sleep 0.01; done
  rm -f "$here/mute"
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  while :; do
    "$here/nvidia-cuda-mps-server" &
    wait $!
  done
fi
while read -r command server client; do
  while [ -e "$here/mute" ]; do sleep 0.05; done
  if [ "$command" = terminate_client ]; then
    while grep -q '^State:.T' "/proc/$client/status" 2> /dev/null; do sleep 0.01; done
    kill -URG "$client"
    echo 0
  else
    echo 100.0
  fi
done
)sh";
  // Which server it is stands in "servers". A later one than the first lets workers start again.
  static constexpr const char* kServer = R"sh(#!/bin/sh
here="$(dirname "$0")"
[ -e "$here/stubborn" ] && trap '' TERM
echo $$ >> "$here/servers"
[ $(wc -l < "$here/servers") -gt 1 ] && rm -f "$CUDA_MPS_PIPE_DIRECTORY/../control.worker.fails"
while [ -d "$CUDA_MPS_PIPE_DIRECTORY" ]; do sleep 0.05; done
)sh";

  void write_program(const std::string& name, const char* text) const {
    std::ofstream(directory_ + "/" + name) << text;
    std::filesystem::permissions(directory_ + "/" + name, std::filesystem::perms::owner_all);
  }

  const std::string path_ = std::getenv("PATH");
  std::string directory_ = ::testing::TempDir() + "/heddle-mps-fault-XXXXXX";
};

}  // namespace heddle::daemon::testing
