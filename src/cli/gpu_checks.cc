#include "cli/gpu_checks.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/daemon_link.h"

namespace heddle::cli {
namespace {

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of `key` in a line of `heddle-keeper --list`: words "key=value", separated by tabs.
std::string word_of(const std::string& line, const std::string& key) {
  const std::string wanted = "\t" + key + "=";
  const size_t begin = ("\t" + line).find(wanted);
  if (begin == std::string::npos) return "?";
  const size_t value = begin + wanted.size() - 1;
  return line.substr(value, line.find('\t', value) - value);
}

std::string size_of(const std::string& line, const std::string& key) {
  return to_string(Bytes{std::strtoull(word_of(line, key).c_str(), nullptr, 10)});
}

Finding check_keeper() {
  const auto keeper = find_program("heddle-keeper");
  if (!keeper) return {"gpus", Verdict::kBad, keeper.error().text + "; build heddle with the CUDA toolkit's cuda.h"};
  std::FILE* output = ::popen(("'" + *keeper + "' --list 2>&1").c_str(), "r");
  if (!output) return {"gpus", Verdict::kBad, "cannot start " + *keeper};
  std::string text, found, line;
  for (int c; (c = std::fgetc(output)) != EOF;) {
    text += static_cast<char>(c);
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (line.rfind("uuid=", 0) == 0)
      found += (found.empty() ? "" : "; ") + word_of(line, "name") + " " + word_of(line, "uuid") + ", " +
               size_of(line, "free") + " of " + size_of(line, "memory") + " free, a context takes " +
               size_of(line, "context");
    line.clear();
  }
  if (::pclose(output) == 0) return {"gpus", Verdict::kOk, found};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return {"gpus", Verdict::kBad, text + ": run nvidia-smi; GPUs that it shows must be ones that this user may open"};
}

Finding check_mps() {
  const char* path = std::getenv("PATH");
  std::string places = std::string("/usr/bin:/usr/local/nvidia/bin:") + (path ? path : "");
  while (!places.empty()) {
    const size_t end = std::min(places.find(':'), places.size());
    const std::string program = places.substr(0, end) + "/nvidia-cuda-mps-control";
    if (::access(program.c_str(), X_OK) == 0)
      return {"mps", Verdict::kOk, program + ": programs share a GPU at the same time"};
    places.erase(0, end + 1);
  }
  return {"mps", Verdict::kNote,
          "nvidia-cuda-mps-control is not installed: programs share a GPU by time slices; it comes with the driver's "
          "compute utilities"};
}

// Whoever can open the GPUs can use them without heddle, and take memory that heddle has promised.
Finding check_nodes() {
  std::string open_to_all;
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    const std::string name = entry.path().filename();
    struct stat status {};
    if (name.rfind("nvidia", 0) != 0 || name.size() < 7 || name[6] < '0' || name[6] > '9') continue;
    if (::stat(entry.path().c_str(), &status) == 0 && (status.st_mode & S_IWOTH)) open_to_all += " " + name;
  }
  if (open_to_all.empty()) return {"nodes", Verdict::kOk, "not every user can open the GPUs past heddle"};
  return {"nodes", Verdict::kNote,
          "every user can open" + open_to_all +
              " and use them past heddle; where that matters, give them to the worker user's group: driver options "
              "NVreg_DeviceFileMode=0660 and NVreg_DeviceFileGID"};
}

}  // namespace

std::vector<Finding> check_gpus() {
  const std::string version = driver_version();
  if (version.empty())
    return {{"driver", Verdict::kNote, "no NVIDIA driver on this machine: the pool consists of software devices"}};
  return {{"driver", Verdict::kOk, version}, check_keeper(), check_mps(), check_nodes()};
}

}  // namespace heddle::cli
