#include "client/driver/functions.h"

#include <array>
#include <string>
#include <unordered_map>

namespace heddle::client {

std::span<const std::span<const DriverFunction>> driver_functions() {
  static const std::array tables{driver_general_functions(), driver_device_functions(),     driver_context_functions(),
                                 driver_stream_functions(),  driver_memory_functions(),     driver_copy_functions(),
                                 driver_fill_functions(),    driver_pointer_functions(),    driver_array_functions(),
                                 driver_module_functions(),  driver_library_functions(),    driver_linker_functions(),
                                 driver_kernel_functions(),  driver_launch_functions(),     driver_graph_functions(),
                                 driver_node_functions(),    unsupported_driver_functions()};
  return tables;
}

void* driver_function(std::string_view name) {
  static const auto* const functions = [] {
    auto* const all = new std::unordered_map<std::string, void*>;
    for (const auto& table : driver_functions()) {
      for (const DriverFunction& row : table) {
        all->emplace(row.name, row.function);
        if (row.twin) all->emplace(std::string(row.name) + row.twin, row.per_thread);
      }
    }
    return all;
  }();
  const auto found = functions->find(std::string(name));
  return found == functions->end() ? nullptr : found->second;
}

}  // namespace heddle::client
