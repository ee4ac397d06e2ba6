#pragma once

#include <optional>
#include <string>

#include "core/fd.h"

namespace heddle::daemon {

// Two processes after go_to_background: the parent, which is told how to exit, and the child, which goes on apart from
// the terminal with its output in a log file.
struct Background {
  std::optional<int> exit_status;  // of the parent; none in the child
  Fd reporting;                    // the child's

  // The child has what it needs: the parent exits with success.
  void report();
};

// Forks. The parent waits until the child reports or ends; in the second case it shows what the child logged.
Result<Background> go_to_background(const std::string& log_path);

}  // namespace heddle::daemon
