#include "client/redirect/scan.h"

#include <algorithm>

namespace heddle::redirect {
namespace {

// The name of a file that NVIDIA's runtime shares between processes; it stays in a stripped object. In two parts, so
// that no object of heddle holds it whole.
std::string stripped_mark() {
  return std::string("/cudart.") + "shm.%x";
}

}  // namespace

bool is_driver(std::string_view file_name) {
  return file_name.substr(file_name.rfind('/') + 1).starts_with("libcuda.so");
}

bool goes_past_heddle(std::string_view file_name) {
  const std::string_view base = file_name.substr(file_name.rfind('/') + 1);
  if (is_driver(base)) return file_name != base;  // by its name heddle's own is found
  for (const char* prefix : {"libcudnn", "libnccl.so"}) {
    if (base.starts_with(prefix)) return true;
  }
  return false;
}

bool is_runtime_function(std::string_view name) {
  if (name == "heddle_task_api") return true;  // in what heddle cc compiled
  const std::string_view bare = name.starts_with("__") ? name.substr(2) : name;
  return bare.starts_with("cuda") && bare.size() > 4 && bare[4] >= 'A' && bare[4] <= 'Z';
}

Finding scan(const ElfFile& file) {
  const auto needed = file.needed();
  const auto past = std::find_if(needed.begin(), needed.end(), goes_past_heddle);
  if (past != needed.end()) return {Finding::Kind::kRefused, 0, *past};

  // A name that only the runtime defines, and one that only CUDA 12's has.
  bool runtime = false, twelve = false;
  file.functions([&](const ElfFile::Function& function) {
    const std::string_view name = function.name;
    runtime |= name == "cudaMalloc";
    twelve |= name == "cudaGetDeviceProperties_v2";
  });
  if (runtime) return {Finding::Kind::kRuntime, twelve ? 12 : 13, {}};
  if (file.contains(stripped_mark())) return {Finding::Kind::kStripped, 0, {}};
  return {};
}

}  // namespace heddle::redirect
