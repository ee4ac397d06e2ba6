#include "client/driver/proc_address.h"

#include "client/driver/functions.h"

namespace heddle::client {
namespace {

// cuMemAlloc of cuMemAlloc_v2.
std::string_view plain_name(std::string_view name) {
  const bool has_form = name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v';
  return has_form ? name.substr(0, name.size() - 3) : name;
}

// Since CUDA 12 cuda.h means another function by this name.
struct Renamed {
  std::string_view name, function;
  int since;
};
constexpr Renamed kRenamed[] = {{"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000}};

std::string_view meant_by(std::string_view name, int version) {
  for (const auto& [renamed, function, since] : kRenamed) {
    if (name == renamed && version >= since) return function;
  }
  return name;
}

// The newest form of the name that the version knows; `too_new` where there are only newer ones.
const DriverFunction* newest(std::string_view name, int version, bool& too_new) {
  const DriverFunction* found = nullptr;
  for (const auto& table : driver_functions()) {
    for (const DriverFunction& row : table) {
      if (plain_name(row.name) != name || row.since == 0) continue;
      too_new |= row.since > version;
      if (row.since <= version && (!found || row.since > found->since)) found = &row;
    }
  }
  return found;
}

}  // namespace

FoundFunction find_driver_function(std::string_view name, int version, bool per_thread) {
  bool too_new = false;
  if (const DriverFunction* found = newest(meant_by(name, version), version, too_new))
    return {per_thread && found->twin ? found->per_thread : found->function, CU_GET_PROC_ADDRESS_SUCCESS};
  if (too_new) return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
  if (void* function = driver_function(name)) return {function, CU_GET_PROC_ADDRESS_SUCCESS};
  return {};
}

CUresult proc_address(const char* name, void** function, int version, uint64_t flags,
                      CUdriverProcAddressQueryResult* status) {
  return driver_answer(Needs::kNothing, [&] {
    constexpr uint64_t kKnown = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!name || !*name || !function || flags > kKnown || flags == kKnown) return CUDA_ERROR_INVALID_VALUE;
    const auto found = find_driver_function(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *function = found.function;
    // Who asks for the status is told there alone what is wrong.
    if (status) *status = found.result;
    return found.function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

CUresult proc_address_v1(const char* name, void** function, int version, uint64_t flags) {
  return proc_address(name, function, version, flags, nullptr);
}

}  // namespace heddle::client
