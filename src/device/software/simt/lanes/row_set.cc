#include "device/software/simt/lanes/row_set.h"

#include "device/software/simt/lanes/families.h"

namespace heddle::software::HEDDLE_LANES {

RowSet row_set() {
  return {{integer_rows(), multiply_rows(), carry_rows(), bit_rows(), float_rows(), float_function_rows(),
           convert_to_integer_rows(), convert_to_float_rows(), compare_rows(), move_rows(), load_rows(), store_rows(),
           warp_rows(), half_rows(), half_conversion_rows()},
          run_warp,
          run_guarded};
}

}  // namespace heddle::software::HEDDLE_LANES
