#include "core/stream_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace heddle {
namespace {

TEST(StreamCopy, CopiesWhatItIsToldAndNothingBesideIt) {
  constexpr size_t kMost = (size_t{1} << 20) + 200;
  std::vector<unsigned char> from(kMost + 100);
  std::iota(from.begin(), from.end(), static_cast<unsigned char>(0));
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, (size_t{512} << 10) - 1, size_t{512} << 10, kMost}) {
    for (const size_t to_offset : {0, 1, 63}) {
      for (const size_t from_offset : {0, 7}) {
        std::vector<unsigned char> to(kMost + 100, 0xee), expected = to;
        std::copy_n(from.begin() + static_cast<long>(from_offset), bytes,
                    expected.begin() + static_cast<long>(to_offset));
        stream_copy(to.data() + to_offset, from.data() + from_offset, bytes);
        EXPECT_TRUE(to == expected) << bytes << " bytes from " << from_offset << " to " << to_offset;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
