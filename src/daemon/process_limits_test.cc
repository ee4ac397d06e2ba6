#include "daemon/process_limits.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace heddle::daemon {
namespace {

// What raise_process_limits() says in a process whose limit of `resource` was set so. Empty: nothing.
std::string said_under(__rlimit_resource_t resource, rlimit limit) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = "cannot set the limit";
    if (::setrlimit(resource, &limit) == 0) {
      const Status raised = raise_process_limits();
      text = raised ? "" : raised.error().text;
      rlimit now{};
      if (raised && (::getrlimit(resource, &now) != 0 || now.rlim_cur != now.rlim_max)) text = "not raised";
    }
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[1024] = {};
  (void)!::read(ends[0], text, sizeof text - 1);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

TEST(ProcessLimits, ASoftLimitOfTheCallerIsRaised) {
  EXPECT_EQ(said_under(RLIMIT_NOFILE, {256, 4096}), "");
  EXPECT_EQ(said_under(RLIMIT_CPU, {60, RLIM_INFINITY}), "");
}

TEST(ProcessLimits, AHardLimitIsNamedWithWhatToDo) {
  EXPECT_THAT(said_under(RLIMIT_NOFILE, {256, 256}),
              ::testing::AllOf(::testing::HasSubstr("open files (ulimit -H -n) is 256"),
                               ::testing::HasSubstr("at least 1024"), ::testing::HasSubstr("heddle daemon start")));
  EXPECT_THAT(said_under(RLIMIT_CPU, {60, 60}), ::testing::HasSubstr("processor seconds (ulimit -H -t) is 60"));
  EXPECT_THAT(said_under(RLIMIT_AS, {rlim_t{1} << 32, rlim_t{1} << 32}), ::testing::HasSubstr("address space"));
}

}  // namespace
}  // namespace heddle::daemon
