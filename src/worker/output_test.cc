// What libraries in the worker write is the program's: through the pipe, and in the ring before a fault is.

#include "worker/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using ::testing::StartsWith;

struct OutputTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    if (!session) start_worker();
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pipe = Fd(ends[0]);
    library = Fd(ends[1]);
    ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
    drain = std::make_unique<OutputDrain>(pipe, printer);
  }
  void TearDown() override {
    session.reset();
    drain.reset();
  }
  void write(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = ::write(library.get(), text.data() + at, text.size() - at);
      ASSERT_GT(wrote, 0);
      at += static_cast<size_t>(wrote);
    }
  }
  // What the program has not taken yet; it takes it.
  std::string take() {
    const uint64_t from = header().report_head, to = header().report_tail;
    std::string text;
    for (uint64_t at = from; at < to; ++at) text += ring.report_area()[at % ring.report_area().size()];
    header().report_head = to;
    return text;
  }

  Fd pipe, library;
  std::unique_ptr<OutputDrain> drain;
};

TEST_F(OutputTest, ComesToTheProgramByItself) {
  write("a library's words\n");
  ASSERT_TRUE(eventually([&] { return header().report_tail.load() == 18; }));
  EXPECT_EQ(take(), "a library's words\n");
}

TEST_F(OutputTest, IsThereBeforeTheFault) {
  write("Assertion `x` failed\n");
  fail_device(710, "device-side assert");
  ASSERT_TRUE(eventually([&] { return header().fault.load() == 710; }));
  EXPECT_EQ(take(), "Assertion `x` failed\n");
}

TEST_F(OutputTest, MoreThanTheRingHoldsComesAsTheProgramTakesIt) {
  std::string most(3 * protocol::kReportBytes, 'x');
  most.front() = '<';
  most.back() = '>';
  write(most);
  std::string got;
  ASSERT_TRUE(eventually([&] { return (got += take()).size() >= most.size(); }));
  EXPECT_EQ(got, most);
}

TEST_F(OutputTest, AProgramThatTakesNothingDoesNotKeepTheFaultBack) {
  write("<" + std::string(2 << 20, 'x'));
  fail_device(719, "launch failure");
  ASSERT_TRUE(eventually([&] { return header().fault.load() == 719; }));
  EXPECT_THAT(take(), StartsWith("<xxx"));
}

}  // namespace
}  // namespace heddle::worker
