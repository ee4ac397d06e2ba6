#pragma once

#include <string>
#include <vector>

namespace heddle::cli {

enum class Verdict { kOk, kNote, kBad };

struct Finding {
  std::string check;
  Verdict verdict;
  std::string text;
};

// What `heddle doctor` finds out about GPUs: the driver and what heddle's keeper sees, MPS, and who may open the GPUs.
// Where there is no driver that is one note.
std::vector<Finding> check_gpus();

}  // namespace heddle::cli
