#pragma once

#include <cstdint>
#include <string_view>

#include "client/driver/driver_types.h"

// Functions of the driver by their names, as cuGetProcAddress and cudaGetDriverEntryPoint give them.
namespace heddle::client {

enum CUdriverProcAddressQueryResult : int {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};
inline constexpr uint64_t CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2;

struct FoundFunction {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};
// What cuda.h of that CUDA version (12040) means by the name: the newest form that is no newer. A name that says its
// form (cuMemAlloc_v2) means that one, whatever the version.
FoundFunction find_driver_function(std::string_view name, int version, bool per_thread);

CUresult proc_address_v1(const char* name, void** function, int version, uint64_t flags);
CUresult proc_address(const char* name, void** function, int version, uint64_t flags,
                      CUdriverProcAddressQueryResult* status);

}  // namespace heddle::client
