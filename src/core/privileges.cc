#include "core/privileges.h"

#include <sys/prctl.h>

namespace heddle {

Status renounce_new_privileges() {
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_errno(-1, "cannot forbid core dumps");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(-1, "cannot renounce new privileges");
  return {};
}

}  // namespace heddle
