#pragma once

#include <string>

#include "core/result.h"
#include "core/units.h"

namespace heddle::worker {

struct Options {
  int socket = 3;
  std::string daemon_path;
  Duration reconnect_for = std::chrono::seconds(10);
  std::string user;
  std::string log_level = "info";
  bool help = false;  // nothing else counts then
};

// Errors name the argument.
Result<Options> parse_options(int argc, char** argv);
std::string help_text();

}  // namespace heddle::worker
