#include "daemon/programs.h"

#include <unistd.h>

#include <climits>
#include <vector>

namespace heddle::daemon {
namespace {

Result<std::string> own_directory() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return fail_errno(-1, "cannot read /proc/self/exe");
  const std::string whole(path, static_cast<size_t>(length));
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& directory) {
  std::vector<std::string> places;
  if (!directory.empty()) {
    places = {directory};
  } else {
    auto own = own_directory();
    if (!own) return own;
    places = {*own, *own + "/../libexec/heddle"};
  }
  std::string tried;
  for (const std::string& place : places) {
    const std::string path = place + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
    tried += tried.empty() ? "" : ", ";
    tried += path;
  }
  return fail(ErrorCode::kNotFound, "program %s not found (tried %s): say where with --libexec", name.c_str(),
              tried.c_str());
}

}  // namespace heddle::daemon
