// The rows of one level of vector instructions. Included once for each level, with HEDDLE_LANES naming its namespace:
// hence no include guard.

#include "device/software/simt/row.h"

namespace heddle::software::HEDDLE_LANES {

RowSet row_set();

}  // namespace heddle::software::HEDDLE_LANES
