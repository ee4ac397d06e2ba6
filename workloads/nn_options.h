// The options of nn, which its parts share.
#pragma once

#include "options.h"

namespace workload {

struct NnOptions : CommonOptions {
  std::string mode = "predict";
  long long side = 32, channels = 8, layers = 3, classes = 10, batch = 4, hidden = 64;
};

}  // namespace workload
