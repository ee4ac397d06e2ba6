#include "daemon/ids.h"

#include <sys/random.h>

#include <cstdlib>

namespace heddle::daemon {

uint64_t random_secret() {
  uint64_t secret = 0;
  // The kernel's pool is ready long before anybody can start heddled, and small reads are never cut.
  while (secret == 0) {
    if (::getrandom(&secret, sizeof secret, 0) != sizeof secret) std::abort();
  }
  return secret;
}

}  // namespace heddle::daemon
