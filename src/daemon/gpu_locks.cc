#include "daemon/gpu_locks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fstream>

namespace heddle::daemon {
namespace {

// The process that holds a file's flock, as /proc/locks tells: "1: FLOCK  ADVISORY  WRITE 4711 00:1a:271 0 EOF".
// 0 where it does not tell.
int holder_of(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return 0;
  const std::string place =
      stringf("%02x:%02x:%ju", major(status.st_dev), minor(status.st_dev), static_cast<uintmax_t>(status.st_ino));
  std::ifstream locks("/proc/locks");
  std::string number, kind, strictness, access, where, rest;
  int process = 0;
  while (locks >> number >> kind >> strictness >> access >> process >> where && std::getline(locks, rest)) {
    if (kind == "FLOCK" && where == place) return process;
  }
  return 0;
}

// The first heddled creates the file. Later ones must open it without O_CREAT, which the kernel refuses for another
// user's file in a sticky directory.
Result<Fd> open_lock(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd file(::open(path.c_str(), kFlags));
  if (!file && errno == ENOENT) {
    file = Fd(::open(path.c_str(), kFlags | O_CREAT, 0644));
    if (file) ::fchmod(file.get(), 0644);  // whatever this user's umask is
  }
  if (!file) return fail_errno(-1, "cannot open '%s'", path.c_str());
  return file;
}

}  // namespace

Status GpuLocks::take(const std::string& uuid) {
  if (directory_.empty()) return {};
  auto file = open_lock(directory_ + "/heddle-" + uuid + ".lock");
  if (!file) return tl::unexpected(std::move(file).error());
  if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(-1, "cannot lock GPU %s", uuid.c_str());
    const int holder = holder_of(*file);
    return fail(ErrorCode::kPermission,
                "GPU %s is shared by another heddled%s: both would promise the same memory. Use that one, stop it "
                "(`heddle daemon stop`), or leave the GPU out of this one's configuration",
                uuid.c_str(), holder > 0 ? stringf(", process %d", holder).c_str() : "");
  }
  held_.push_back(std::move(*file));
  return {};
}

}  // namespace heddle::daemon
