#include "daemon/process_limits.h"

#include <sys/resource.h>

#include <cstdint>

namespace heddle::daemon {
namespace {

struct Needed {
  int resource;
  const char* what;
  const char* ulimit;
  rlim_t least;
  const char* why;
};

constexpr Needed kNeeded[] = {
    {RLIMIT_NOFILE, "open files", "-n", kFewestDescriptors, "holds a descriptor for each piece of a program's memory"},
    {RLIMIT_AS, "address space", "-v", RLIM_INFINITY, "has workers that map every program's whole window of addresses"},
    {RLIMIT_DATA, "data", "-d", RLIM_INFINITY, "has workers that map every program's memory"},
    {RLIMIT_FSIZE, "file size", "-f", RLIM_INFINITY, "makes device memory as files in memory"},
    {RLIMIT_CPU, "processor seconds", "-t", RLIM_INFINITY,
     "and its workers outlive the program that it was started for"},
};

Status raise(const Needed& needed) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(needed.resource), &limit) != 0)
    return fail_errno(-1, "cannot read the limit on %s", needed.what);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(static_cast<__rlimit_resource_t>(needed.resource), &limit) != 0)
    return fail_errno(-1, "cannot raise the limit on %s", needed.what);
  if (limit.rlim_max >= needed.least) return {};
  const std::string least = needed.least == RLIM_INFINITY ? "no limit" : stringf("at least %ju", needed.least);
  return fail(ErrorCode::kInvalidArgument,
              "the limit on %s (ulimit -H %s) is %ju, but heddle needs %s: it %s. Start it from where that is not "
              "limited, for example by `heddle daemon start` in another shell",
              needed.what, needed.ulimit, static_cast<uintmax_t>(limit.rlim_max), least.c_str(), needed.why);
}

}  // namespace

Status raise_process_limits() {
  for (const Needed& needed : kNeeded) HEDDLE_TRY(raise(needed));
  return {};
}

}  // namespace heddle::daemon
