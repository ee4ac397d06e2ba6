#include "keeper/confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heddle::keeper {

Status drop_privileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return fail_errno(-1, "cannot drop capabilities");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(-1, "cannot renounce new privileges");
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_errno(-1, "cannot forbid core dumps");
  return {};
}

}  // namespace heddle::keeper
