#include "worker/confinement.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "core/fd.h"
#include "core/log.h"
#include "core/privileges.h"

namespace heddle::worker {
namespace {

struct User {
  uid_t uid;
  gid_t gid;
};

// A uid need not be anybody's; its group is then of the same number.
Result<User> find_user(const std::string& name) {
  uid_t uid = 0;
  const char* end = name.data() + name.size();
  const auto [stop, wrong] = std::from_chars(name.data(), end, uid);
  if (wrong == std::errc() && stop == end) return User{uid, uid};
  errno = 0;
  const passwd* entry = ::getpwnam(name.c_str());
  if (!entry) return fail_errno(errno, "cannot become '%s': no such user", name.c_str());
  return User{entry->pw_uid, entry->pw_gid};
}

Status become(const std::string& user) {
  const auto found = find_user(user);
  if (!found) return tl::unexpected(found.error());
  const auto [uid, gid] = *found;
  if (::getuid() == uid && uid != 0) return {};
  if (::setgroups(0, nullptr) != 0 || ::setresgid(gid, gid, gid) != 0 || ::setresuid(uid, uid, uid) != 0)
    return fail_errno(-1, "cannot become '%s'", user.c_str());
  return {};
}

// oom_score_adj: as if the worker used half of the machine's memory beside what it uses. Every process may raise its
// own.
constexpr int kOutOfMemoryScore = 500;

Status offer_to_be_ended_first() {
  const Fd file(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  char text[16] = {};
  if (!file || ::pread(file.get(), text, sizeof text - 1, 0) <= 0)
    return fail_errno(-1, "cannot read /proc/self/oom_score_adj");
  if (std::atoi(text) >= kOutOfMemoryScore) return {};
  const std::string score = std::to_string(kOutOfMemoryScore);
  if (::pwrite(file.get(), score.data(), score.size(), 0) < 0)
    return fail_errno(-1, "cannot raise /proc/self/oom_score_adj to %s", score.c_str());
  return {};
}

}  // namespace

Status drop_privileges(const std::string& user) {
  // First, because /proc/self belongs to root once the process is not dumpable. A failure is no reason to stop.
  if (const Status offered = offer_to_be_ended_first(); !offered) logger("worker")->warn("{}", offered.error().text);
  if (!user.empty()) HEDDLE_TRY(become(user));
  return renounce_new_privileges();
}

}  // namespace heddle::worker
