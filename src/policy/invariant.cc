#include "policy/invariant.h"

#include <cstdio>
#include <cstdlib>

namespace heddle::policy {

void broken_invariant(const char* what) {
  std::fprintf(stderr, "heddle: broken invariant in the scheduler: %s\n", what);
  std::abort();
}

}  // namespace heddle::policy
