// The options of nn, which its parts share.
#pragma once

#include <chrono>
#include <thread>

#include "options.h"

namespace workload {

struct NnOptions : CommonOptions {
  std::string mode = "predict";
  long long side = 32, channels = 8, layers = 3, classes = 10, batch = 4, hidden = 64, gap = 0;
};

// The host's time before each iteration.
inline void pause(const NnOptions& o) {
  if (o.gap > 0) std::this_thread::sleep_for(std::chrono::milliseconds(o.gap));
}

}  // namespace workload
