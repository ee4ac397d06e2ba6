#include <numeric>

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kGranule = 2 * kMiB;
constexpr uint32_t kIllegalAddress = 700;

class MemoryTest : public ConformanceTest {
 protected:
  device::Tag copy(device::CopyDirection direction, const device::CopyShape& shape) {
    device::Tag tag = next_tag();
    EXPECT_TRUE(context().copy(0, direction, shape, tag));
    return tag;
  }
  device::Tag fill_shape(const device::FillShape& shape) {
    device::Tag tag = next_tag();
    EXPECT_TRUE(context().fill(0, shape, tag));
    return tag;
  }
};
HEDDLE_CONFORMANCE_SUITE(MemoryTest);

std::vector<uint8_t> counting(size_t count) {
  std::vector<uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

TEST_P(MemoryTest, FreshMemoryIsZero) {
  EXPECT_EQ(read<uint8_t>(map(kGranule), 1000), std::vector<uint8_t>(1000));
}

TEST_P(MemoryTest, LargeCopiesArriveWhole) {
  auto bytes = counting(5'000'001);
  uint64_t memory = map(bytes.size());
  write(memory, bytes);
  EXPECT_EQ(read<uint8_t>(memory, bytes.size()), bytes);
}

TEST_P(MemoryTest, CopyOfNothingCompletes) {
  EXPECT_EQ(wait_for(to_device(0, map(kGranule), nullptr, 0)).cuda_error, 0u);
}

TEST_P(MemoryTest, MemoryKeepsItsBytesWhileItIsUnmapped) {
  auto memory = target().allocate(Bytes{kGranule});
  ASSERT_TRUE(memory);
  uint64_t address = target().window_base();
  ASSERT_TRUE(context().map(address, Bytes{kGranule}, *memory, false));
  write(address, counting(1000));
  finish();
  ASSERT_TRUE(context().unmap(address, Bytes{kGranule}));
  uint64_t elsewhere = address + 16 * kGranule;
  ASSERT_TRUE(context().map(elsewhere, Bytes{kGranule}, *memory, false));
  EXPECT_EQ(read<uint8_t>(elsewhere, 1000), counting(1000));
}

TEST_P(MemoryTest, MemoryOutlivesItsContext) {
  auto memory = target().allocate(Bytes{kGranule});
  ASSERT_TRUE(memory);
  uint64_t address = target().window_base();
  ASSERT_TRUE(context().map(address, Bytes{kGranule}, *memory, false));
  write(address, counting(1000));
  finish();
  reopen();
  ASSERT_TRUE(context().map(address, Bytes{kGranule}, *memory, false));
  EXPECT_EQ(read<uint8_t>(address, 1000), counting(1000));
}

TEST_P(MemoryTest, MappingsOutsideTheWindowOrInOddStepsAreRefused) {
  auto memory = target().allocate(Bytes{2 * kGranule});
  ASSERT_TRUE(memory);
  uint64_t base = target().window_base(), end = base + target().window_bytes();
  EXPECT_FALSE(context().map(base + 4096, Bytes{kGranule}, *memory, false));
  EXPECT_FALSE(context().map(base, Bytes{4096}, *memory, false));
  EXPECT_FALSE(context().map(base, Bytes{0}, *memory, false));
  EXPECT_FALSE(context().map(base - kGranule, Bytes{kGranule}, *memory, false));
  EXPECT_FALSE(context().map(end - kGranule, Bytes{2 * kGranule}, *memory, false));
  EXPECT_FALSE(context().map(base, Bytes{3 * kGranule}, *memory, false)) << "more than there is memory";
}

TEST_P(MemoryTest, AddressesAreMappedOnce) {
  uint64_t address = map(kGranule);
  auto memory = target().allocate(Bytes{kGranule});
  ASSERT_TRUE(memory);
  EXPECT_FALSE(context().map(address, Bytes{kGranule}, *memory, false));
  EXPECT_TRUE(context().unmap(address, Bytes{kGranule}));
  EXPECT_FALSE(context().unmap(address, Bytes{kGranule}));
}

TEST_P(MemoryTest, CopyOfAPlaneLeavesItsMarginsAlone) {
  constexpr uint64_t kWidth = 5, kHeight = 3, kPitch = 16;
  auto bytes = counting(kWidth * kHeight);
  uint64_t memory = map(kGranule);
  write(memory, std::vector<uint8_t>(kPitch * kHeight, 0xee));
  device::CopyShape shape{{memory + 2, kPitch}, {reinterpret_cast<uintptr_t>(bytes.data()), kWidth}, kWidth, kHeight};
  wait_for(copy(device::CopyDirection::kToDevice, shape));
  std::vector<uint8_t> expected(kPitch * kHeight, 0xee);
  for (uint64_t row = 0; row < kHeight; ++row) {
    for (uint64_t i = 0; i < kWidth; ++i) expected[row * kPitch + 2 + i] = bytes[row * kWidth + i];
  }
  EXPECT_EQ(read<uint8_t>(memory, expected.size()), expected);
}

TEST_P(MemoryTest, CopyOfABoxOnTheDevice) {
  constexpr uint64_t kWidth = 4, kHeight = 3, kDepth = 2;
  constexpr uint64_t kPitch = 8, kSlice = 40;
  auto bytes = counting(kSlice * kDepth);
  uint64_t from = map(kGranule), to = map(kGranule);
  write(from, bytes);
  device::CopyShape shape{{to, kWidth, kWidth * kHeight}, {from, kPitch, kSlice}, kWidth, kHeight, kDepth};
  wait_for(copy(device::CopyDirection::kOnDevice, shape));
  std::vector<uint8_t> expected;
  for (uint64_t slice = 0; slice < kDepth; ++slice) {
    for (uint64_t row = 0; row < kHeight; ++row) {
      auto begin = bytes.begin() + static_cast<ptrdiff_t>(slice * kSlice + row * kPitch);
      expected.insert(expected.end(), begin, begin + kWidth);
    }
  }
  EXPECT_EQ(read<uint8_t>(to, expected.size()), expected);
}

TEST_P(MemoryTest, CopyOnTheHost) {
  auto from = counting(100'000);
  std::vector<uint8_t> to(from.size());
  device::CopyShape shape{
      {reinterpret_cast<uintptr_t>(to.data())}, {reinterpret_cast<uintptr_t>(from.data())}, from.size()};
  EXPECT_EQ(wait_for(copy(device::CopyDirection::kOnHost, shape)).cuda_error, 0u);
  EXPECT_EQ(to, from);
}

TEST_P(MemoryTest, FillsWithElementsOfAllSizes) {
  uint64_t memory = map(kGranule);
  for (uint32_t element_bytes : {1u, 2u, 4u}) {
    device::FillShape shape;
    shape.to = {memory};
    shape.width = 12;
    shape.value = 0x04030201;
    shape.element_bytes = element_bytes;
    wait_for(fill_shape(shape));
    auto bytes = read<uint8_t>(memory, 12);
    for (uint32_t i = 0; i < 12; ++i) EXPECT_EQ(bytes[i], i % element_bytes + 1) << element_bytes << ", byte " << i;
  }
}

TEST_P(MemoryTest, FillOfAPlaneLeavesItsMarginsAlone) {
  uint64_t memory = map(kGranule);
  device::FillShape shape;
  shape.to = {memory, 8};
  shape.width = 6;
  shape.height = 3;
  shape.value = 7;
  wait_for(fill_shape(shape));
  std::vector<uint8_t> expected(24);
  for (int i = 0; i < 24; ++i) expected[i] = i % 8 < 6 ? 7 : 0;
  EXPECT_EQ(read<uint8_t>(memory, 24), expected);
}

TEST_P(MemoryTest, FillWithAnOddElementIsRefused) {
  device::FillShape shape;
  shape.to = {map(kGranule)};
  shape.width = 12;
  shape.element_bytes = 3;
  EXPECT_FALSE(context().fill(0, shape, next_tag()));
}

TEST_P(MemoryTest, ShapesThatOverflowAreRefused) {
  device::CopyShape shape{{map(kGranule)}, {map(kGranule)}, uint64_t{1} << 33, uint64_t{1} << 31};
  EXPECT_FALSE(context().copy(0, device::CopyDirection::kOnDevice, shape, next_tag()));
}

TEST_P(MemoryTest, CopyThatRunsPastMappedMemoryFaults) {
  uint64_t memory = map(kGranule);
  std::vector<uint8_t> bytes(8192);
  auto done = wait_for(to_device(0, memory + kGranule - 4096, bytes.data(), bytes.size()));
  EXPECT_EQ(done.cuda_error, kIllegalAddress);
  EXPECT_FALSE(done.text.empty());
}

TEST_P(MemoryTest, LargeCopyFromUnmappedMemoryFaults) {
  std::vector<uint8_t> bytes(4 * kMiB);
  EXPECT_EQ(wait_for(to_host(0, bytes.data(), target().window_base(), bytes.size())).cuda_error, kIllegalAddress);
}

TEST_P(MemoryTest, FillOfUnmappedMemoryFaults) {
  EXPECT_EQ(wait_for(fill(0, target().window_base(), 1, 100)).cuda_error, kIllegalAddress);
}

}  // namespace
}  // namespace heddle::conformance
