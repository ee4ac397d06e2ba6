// heddle top on a terminal: it draws over its last look, follows the terminal's size, and leaves nothing to be undone.

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "core/fd.h"
#include "node.h"

namespace heddle::e2e {
namespace {

// `heddle top` behind a pseudoterminal, looking once an hour: what it draws later it draws for another reason.
class TopOnTerminal {
 public:
  explicit TopOnTerminal(const Node& node) {
    int master = -1;
    winsize size{.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("HEDDLE_SOCKET", node.socket().c_str(), 1);
      ::setenv("TERM", "xterm", 1);
      ::execl(HEDDLE_BIN_DIRECTORY "/heddle", "heddle", "top", "--every", "1h", nullptr);
      ::_exit(127);
    }
    master_ = Fd(master);
  }
  ~TopOnTerminal() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // Reads until it has written that, from `from` on; what came.
  std::string read_until(const std::string& text, size_t from = 0) {
    EXPECT_TRUE(Node::eventually([&] {
      pollfd ready{master_.get(), POLLIN, 0};
      char some[4096];
      if (::poll(&ready, 1, 0) > 0) {
        const ssize_t count = ::read(master_.get(), some, sizeof some);
        if (count > 0) written_.append(some, static_cast<size_t>(count));
      }
      return written_.find(text, from) != std::string::npos;
    })) << "no '"
        << text << "' in: " << written_;
    return written_;
  }
  void resize(unsigned short columns, unsigned short rows) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  void type(char key) { EXPECT_EQ(::write(master_.get(), &key, 1), 1); }
  // Its exit status.
  int wait() {
    int status = -1;
    EXPECT_TRUE(Node::eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // All that it wrote. Once it has ended.
  std::string all() {
    char some[4096];
    ssize_t count;
    while ((count = ::read(master_.get(), some, sizeof some)) > 0) written_.append(some, static_cast<size_t>(count));
    return written_;
  }

 private:
  pid_t pid_ = -1;
  Fd master_;
  std::string written_;
};

TEST(TopOnATerminal, FollowsItsSizeAndLeavesNothingToBeUndone) {
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  TopOnTerminal top(node);
  const std::string first = top.read_until("nothing runs");
  EXPECT_NE(first.find("\x1b[H"), std::string::npos);
  top.resize(20, 4);
  const std::string second = top.read_until("lines more", first.size()).substr(first.size());
  EXPECT_NE(second.find("\x1b[Hheddled"), std::string::npos) << second;
  EXPECT_EQ(second.find("nothing runs"), std::string::npos) << second;
  const size_t so_far = first.size() + second.size();
  top.resize(120, 24);
  top.read_until("nothing runs", so_far);
  top.type(3);  // Ctrl-C
  EXPECT_EQ(top.wait(), 0);
  const std::string all = top.all();
  EXPECT_EQ(all.find("\x1b[?"), std::string::npos) << "a mode of the terminal: " << all;
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back(), '\n') << "the shell goes on in an empty line";
  EXPECT_LT(all.rfind("^C"), all.rfind('\n'));
}

}  // namespace
}  // namespace heddle::e2e
