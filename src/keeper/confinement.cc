#include "keeper/confinement.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/privileges.h"

namespace heddle::keeper {

Status drop_privileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return fail_errno(-1, "cannot drop capabilities");
  return renounce_new_privileges();
}

}  // namespace heddle::keeper
