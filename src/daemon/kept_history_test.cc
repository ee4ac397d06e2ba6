#include "daemon/kept_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace heddle::daemon {
namespace {

using policy::History;
using policy::KnownApp;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KeptHistoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/history";
    ASSERT_TRUE(open_log("", "off"));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<KeptHistory> kept() { return std::make_unique<KeptHistory>(*loop_, logger("test")); }
  static std::vector<std::string> names(const std::vector<KnownApp>& apps) {
    std::vector<std::string> all;
    for (const KnownApp& app : apps) all.push_back(app.app);
    return all;
  }
  // What the next heddled finds.
  std::vector<std::string> found() {
    return names(kept()->open(path_, [] { return nullptr; }));
  }
  void pass(Duration time) {
    clock_.advance(time);
    ASSERT_TRUE(loop_->run_once(Duration{}));
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::string directory_ = "/tmp/heddle-history-XXXXXX", path_;
  History history_;
  const KeptHistory::Ask ask_ = [this] { return &history_; };
};

TEST_F(KeptHistoryTest, WhatIsLearnedIsInTheFileASecondLater) {
  const auto first = kept();
  EXPECT_THAT(first->open(path_, ask_), IsEmpty());
  history_.add("b", 100, 0.5, 1);
  history_.add("a", 200, 1, 1);
  first->look();
  pass(std::chrono::milliseconds(999));
  EXPECT_FALSE(std::filesystem::exists(path_));
  history_.add("c", 1, 0, 1);
  first->look();
  pass(std::chrono::milliseconds(1));
  EXPECT_THAT(found(), ElementsAre("b", "a", "c"));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(KeptHistoryTest, AnOrderlyEndWritesWhatIsNewAndNothingAfterIt) {
  const auto first = kept();
  first->open(path_, ask_);
  history_.add("a", 1, 1, 1);
  first->finish();
  history_.add("cut off", 1, 1, 1);
  first->look();
  pass(std::chrono::seconds(5));
  EXPECT_THAT(found(), ElementsAre("a"));
}

TEST_F(KeptHistoryTest, WithoutNewsTheFileStaysAsItIs) {
  const auto first = kept();
  first->open(path_, ask_);
  history_.add("a", 1, 1, 1);
  first->finish();
  History next;
  const auto second = kept();
  for (const KnownApp& app : second->open(path_, [&] { return &next; })) next.restore(app);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  second->look();
  second->finish();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// What it says may be of use again: nobody has anything better.
TEST_F(KeptHistoryTest, APolicyThatDoesNotLearnLeavesTheFile) {
  const auto first = kept();
  first->open(path_, ask_);
  history_.add("a", 1, 1, 1);
  first->finish();
  const auto second = kept();
  second->open(path_, [] { return nullptr; });
  second->look();
  second->finish();
  EXPECT_THAT(found(), ElementsAre("a"));
}

TEST_F(KeptHistoryTest, GarbageIsNothingAndIsReplaced) {
  for (const std::string& garbage :
       {std::string(), std::string("\0\1\2\n", 4), std::string("0 history 2\n0 learned 'a 1 1 1 1\n"),
        std::string("0 history 2\n0 learned 'a 1 nan 1 1\n0 end 1\n"), std::string(5000, 'x'),
        std::string(3 << 20, '\n')}) {
    write(garbage);
    History history;
    const auto kept_history = kept();
    EXPECT_THAT(kept_history->open(path_, [&] { return &history; }), IsEmpty());
    EXPECT_EQ(text().size(), garbage.size());
    history.add("a", 1, 1, 1);
    kept_history->finish();
    EXPECT_THAT(found(), ElementsAre("a"));
  }
}

TEST_F(KeptHistoryTest, WhatIsNoFileOfItsOwnIsNotRead) {
  write("0 history 2\n0 learned 'a 1 1 1 1\n0 end 1\n");
  ASSERT_THAT(found(), ElementsAre("a"));
  const std::string real = path_ + ".real";
  std::filesystem::rename(path_, real);
  ASSERT_EQ(::symlink(real.c_str(), path_.c_str()), 0);
  EXPECT_THAT(found(), IsEmpty());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(KeptHistoryTest, GoesOnWithoutAPlaceForIt) {
  for (const std::string& path : {directory_ + "/none/history", std::string()}) {
    const auto kept_history = kept();
    EXPECT_THAT(kept_history->open(path, ask_), IsEmpty());
    history_.add("a", 1, 1, 1);
    kept_history->look();
    pass(std::chrono::seconds(1));
    history_.add("b", 1, 1, 1);
    kept_history->finish();
  }
  EXPECT_THAT(found(), IsEmpty());
}

// A heddled that died while it wrote left its half.
TEST_F(KeptHistoryTest, AHalfWrittenOneIsNoHindrance) {
  std::ofstream(path_ + ".new") << "0 hist";
  const auto first = kept();
  first->open(path_, ask_);
  history_.add("a", 1, 1, 1);
  first->finish();
  EXPECT_THAT(found(), ElementsAre("a"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

}  // namespace
}  // namespace heddle::daemon
