#include "core/fd.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace heddle {
namespace {

TEST(Memfd, IsZeroAndCannotBeResized) {
  auto fd = create_memfd("test", Bytes{kMiB});
  ASSERT_TRUE(fd) << fd.error().text;
  EXPECT_EQ(sealed_size(*fd)->value, kMiB);
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
  auto mapping = map_shared(*fd, Bytes{kMiB});
  ASSERT_TRUE(mapping);
  EXPECT_EQ(static_cast<char*>(mapping->data())[kMiB - 1], 0);
}

TEST(Memfd, UnsealedFromAPeerIsRefused) {
  Fd fd(::memfd_create("unsealed", MFD_ALLOW_SEALING));
  auto size = sealed_size(fd);
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, ErrorCode::kProtocol);
}

TEST(ReserveAddresses, RefusesARangeThatIsTaken) {
  auto first = reserve_addresses(0x200000000000, Bytes{kGiB});
  if (!first) GTEST_SKIP() << first.error().text;
  EXPECT_FALSE(reserve_addresses(0x200000000000 + kMiB, Bytes{kMiB}));
  first->reset();
  EXPECT_TRUE(reserve_addresses(0x200000000000 + kMiB, Bytes{kMiB}));
}

}  // namespace
}  // namespace heddle
