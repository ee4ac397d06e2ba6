#pragma once

#include <span>
#include <string_view>

#include "client/driver/driver_answer.h"
#include "client/stream_ref.h"

// The functions of the driver API by their names. None of them is a symbol of this library: libcuda.so.1 forwards its
// exports to what is found here (libraries/cuda_api.cc), and cuGetProcAddress gives the same.
namespace heddle::client {

struct DriverFunction {
  const char* name;  // as libcuda exports it: cuMemAlloc_v2
  int since;         // the CUDA version whose cuda.h means it by the name without the "_v2"; 0: none does any more
  void* function;
  const char*
      twin;  // "_ptsz" or "_ptds": the ending of the function for per-thread default streams; null: there is none
  void* per_thread;
};

// All that is served, and what cuda_exports.txt says is not: that says its name and answers CUDA_ERROR_NOT_SUPPORTED.
std::span<const std::span<const DriverFunction>> driver_functions();
std::span<const DriverFunction> unsupported_driver_functions();  // made by the build

// The function of exactly that name, twins included; null: the driver has none.
void* driver_function(std::string_view name);

// The same function with null streams meaning the calling thread's own.
template <auto Function>
struct PerThread;
template <class... Arguments, CUresult (*Function)(Arguments...)>
struct PerThread<Function> {
  static CUresult call(Arguments... arguments) {
    const PerThreadDefault scope;
    return Function(arguments...);
  }
};

// A function that does what the runtime's does. Handles and pointers have other types in cuda.h and are the same
// values; arguments beyond the runtime's (a context, most times) are ignored.
template <auto Function, Needs kNeeds = Needs::kContext>
struct Same;
template <class... Arguments, cudaError_t (*Function)(Arguments...), Needs kNeeds>
struct Same<Function, kNeeds> {
  static CUresult call(Arguments... arguments) {
    return driver_answer(kNeeds, [&] { return Function(arguments...); });
  }
};
template <auto Function>
using SameAnywhere = Same<Function, Needs::kDriver>;

template <class Function>
void* as_entry(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Rows of the tables: HEDDLE_DRIVER(name, since, function), the latter with twins.
#define HEDDLE_DRIVER(name, since, ...) \
  { #name, since, as_entry(&__VA_ARGS__), nullptr, nullptr }
#define HEDDLE_DRIVER_PTSZ(name, since, ...) \
  { #name, since, as_entry(&__VA_ARGS__), "_ptsz", as_entry(&PerThread <&__VA_ARGS__>::call) }
#define HEDDLE_DRIVER_PTDS(name, since, ...) \
  { #name, since, as_entry(&__VA_ARGS__), "_ptds", as_entry(&PerThread <&__VA_ARGS__>::call) }

// The tables, a file each.
std::span<const DriverFunction> driver_general_functions();
std::span<const DriverFunction> driver_device_functions();
std::span<const DriverFunction> driver_context_functions();
std::span<const DriverFunction> driver_stream_functions();
std::span<const DriverFunction> driver_memory_functions();
std::span<const DriverFunction> driver_copy_functions();
std::span<const DriverFunction> driver_fill_functions();
std::span<const DriverFunction> driver_pointer_functions();
std::span<const DriverFunction> driver_array_functions();
std::span<const DriverFunction> driver_module_functions();
std::span<const DriverFunction> driver_library_functions();
std::span<const DriverFunction> driver_linker_functions();
std::span<const DriverFunction> driver_kernel_functions();
std::span<const DriverFunction> driver_launch_functions();
std::span<const DriverFunction> driver_graph_functions();
std::span<const DriverFunction> driver_node_functions();

}  // namespace heddle::client
