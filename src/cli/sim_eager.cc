#include "cli/sim_eager.h"

namespace heddle::cli {

Json eager_json(const simulator::EagerUse& eager) {
  return {{"launches", eager.launches},
          {"on_host", eager.on_host.value},
          {"promotions", eager.promotions},
          {"promoted", eager.promoted.value},
          {"moving", std::chrono::duration<double>(eager.moving).count()}};
}

const std::vector<std::string>& eager_columns() {
  static const std::vector<std::string> columns{"LAUNCHED EAGERLY", "ON HOST", "PROMOTIONS", "PROMOTED", "MOVING"};
  return columns;
}

std::vector<std::string> eager_row(const simulator::EagerUse& eager) {
  return {std::to_string(eager.launches), to_string(eager.on_host), std::to_string(eager.promotions),
          to_string(eager.promoted), to_string(eager.moving)};
}

Json swap_json(const simulator::SwapUse& swap) {
  return {{"count", swap.count},
          {"deadlocks", swap.deadlocks},
          {"moved", swap.moved.value},
          {"moving", std::chrono::duration<double>(swap.moving).count()}};
}

const std::vector<std::string>& swap_columns() {
  static const std::vector<std::string> columns{"SWAPPED OUT", "FOR DEADLOCKS", "COPIED", "COPYING"};
  return columns;
}

std::vector<std::string> swap_row(const simulator::SwapUse& swap) {
  return {std::to_string(swap.count), std::to_string(swap.deadlocks), to_string(swap.moved), to_string(swap.moving)};
}

}  // namespace heddle::cli
