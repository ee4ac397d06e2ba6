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

}  // namespace heddle::cli
