#include "worker/validation.h"

#include <gmock/gmock.h>

#include "library/curand.h"

namespace heddle::worker {
namespace {

using protocol::Place;
using ::testing::HasSubstr;

constexpr uint64_t kBase = 1ull << 40, kDevice = 1ull << 30, kHost = 1ull << 20;
constexpr uint64_t kMost = ~0ull;

struct Validation : ::testing::Test {
  void SetUp() override {
    auto made = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
    ASSERT_TRUE(made);
    ring = std::move(made->second);
    kernel.name = "k";
    kernel.parameter_bytes = 8;
    record.parameter_bytes = 8;
    for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  }
  Bounds bounds() const { return {&ring, {kBase, kDevice, kHost}}; }
  static protocol::CopyEnd window(uint64_t address, uint64_t pitch = 0, uint64_t slice = 0) {
    return {Place::kWindow, 0, 0, 0, address, pitch, slice};
  }
  static protocol::CopyEnd bulk(uint64_t position) { return {Place::kBulk, 0, 0, 0, position, 0, 0}; }
  static protocol::CopyEnd symbol(uint64_t offset) { return {Place::kSymbol, 1, 0, 0, offset, 0, 0}; }
  Checked<CheckedCopy> copy(protocol::CopyEnd to, protocol::CopyEnd from, uint64_t width, uint64_t height = 1,
                            uint64_t depth = 1) const {
    protocol::CopyRecord copy{};
    copy.to = to;
    copy.from = from;
    copy.width = width;
    copy.height = height;
    copy.depth = depth;
    return check_copy(copy, bounds(), {0x5000, 100}, {0x5000, 100});
  }
  uint32_t copy_error(protocol::CopyEnd to, uint64_t width, uint64_t height = 1, uint64_t depth = 1) const {
    const auto checked = copy(to, window(kBase, width, width * height), width, height, depth);
    return checked ? 0 : checked.error().cuda_error;
  }
  uint32_t launch_error() {
    const std::byte parameters[64]{};
    const auto checked = check_launch(record, parameters, kernel, model);
    return checked ? 0 : checked.error().cuda_error;
  }

  protocol::RingMemory ring;
  DeviceModel model = *device_preset("P100");
  image::KernelInfo kernel;
  protocol::LaunchRecord record{};
};

TEST_F(Validation, ACopyFillsTheWindowToItsLastByteAndNoFurther) {
  EXPECT_EQ(copy_error(window(kBase + kDevice + kHost - 10), 10), 0u);
  EXPECT_EQ(copy_error(window(kBase + kDevice + kHost - 10), 11), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase), kDevice + kHost), 0u);
  EXPECT_EQ(copy_error(window(kBase - 1), 1), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase + kDevice + kHost), 1), kCudaUnknown);
}

TEST_F(Validation, NoSizeWrapsAround) {
  EXPECT_EQ(copy_error(window(kBase + 1), kMost), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kMost), 2), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 1ull << 63), 1, 3), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 1, 1ull << 63), 1, 1, 3), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 1ull << 33, 1ull << 33), 1ull << 32, 1ull << 32, 1ull << 32), kCudaUnknown);
}

TEST_F(Validation, PitchedRowsAreMeasuredToTheirLastByte) {
  const uint64_t room = 9 * 4096 + 100;  // ten rows of 100 bytes, 4096 apart
  EXPECT_EQ(copy_error(window(kBase + kDevice + kHost - room, 4096), 100, 10), 0u);
  EXPECT_EQ(copy_error(window(kBase + kDevice + kHost - room + 1, 4096), 100, 10), kCudaUnknown);
}

TEST_F(Validation, OverlappingRowsAndSlicesAreRefusedBecauseTheyHideUnboundedWork) {
  EXPECT_EQ(copy_error(window(kBase, 99), 100, 2), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 0), 1, 1ull << 40), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 100, 199), 100, 2, 2), kCudaUnknown);
  EXPECT_EQ(copy_error(window(kBase, 100, 200), 100, 2, 2), 0u);
}

TEST_F(Validation, PitchesOfASingleRowDoNotMatter) {
  EXPECT_EQ(copy_error(window(kBase, kMost, kMost), 100), 0u);
}

TEST_F(Validation, BulkEndsAreDenseAndInsideTheArea) {
  const uint64_t size = ring.bulk().size();
  EXPECT_EQ(copy_error(bulk(size - 200), 100, 2), 0u);
  EXPECT_EQ(copy_error(bulk(size - 199), 100, 2), kCudaUnknown) << "it would wrap";
  EXPECT_EQ(copy_error(bulk(5 * size), 100, 2), 0u) << "positions count on";
  EXPECT_EQ(copy_error(bulk(0), size + 1), kCudaUnknown);
  const auto checked = copy(window(kBase, 512), bulk(64), 100, 2);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->shape.from.address, reinterpret_cast<uint64_t>(ring.bulk().data()) + 64);
  EXPECT_EQ(checked->shape.from.pitch, 100u);
  EXPECT_EQ(checked->bytes, 200u);
}

TEST_F(Validation, SymbolEndsStayInsideTheirVariable) {
  EXPECT_EQ(copy_error(symbol(90), 10), 0u);
  EXPECT_EQ(copy_error(symbol(90), 11), kCudaUnknown);
  EXPECT_EQ(copy_error(symbol(101), 1), kCudaUnknown);
  EXPECT_EQ(copy_error(symbol(kMost), 2), kCudaUnknown);
  EXPECT_EQ(copy(symbol(90), window(kBase), 10)->shape.to.address, 0x5000u + 90);
}

TEST_F(Validation, APlaceThatDoesNotExistIsMalformed) {
  protocol::CopyEnd end = window(kBase);
  end.place = static_cast<Place>(77);
  EXPECT_EQ(copy_error(end, 1), kCudaUnknown);
}

TEST_F(Validation, DirectionsFollowTheParts) {
  using device::CopyDirection;
  const auto device = window(kBase), host = window(kBase + kDevice);
  EXPECT_EQ(copy(device, host, 1)->direction, CopyDirection::kToDevice);
  EXPECT_EQ(copy(device, bulk(0), 1)->direction, CopyDirection::kToDevice);
  EXPECT_EQ(copy(bulk(0), device, 1)->direction, CopyDirection::kToHost);
  EXPECT_EQ(copy(symbol(0), device, 1)->direction, CopyDirection::kOnDevice);
  EXPECT_EQ(copy(host, bulk(0), 1)->direction, CopyDirection::kOnHost);
}

TEST_F(Validation, NothingToCopyIsNothingToCheck) {
  const auto checked = copy(window(0), window(0), 0);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->bytes, 0u);
}

TEST_F(Validation, FillsTakeWholeAlignedElementsOfDeviceMemory) {
  const auto error = [&](protocol::CopyEnd to, uint64_t width, uint32_t element) {
    protocol::FillRecord fill{};
    fill.to = to;
    fill.width = width;
    fill.height = fill.depth = 1;
    fill.element_bytes = element;
    const auto checked = check_fill(fill, bounds(), {0x5000, 100});
    return checked ? 0 : checked.error().cuda_error;
  };
  EXPECT_EQ(error(window(kBase), 8, 4), 0u);
  EXPECT_EQ(error(window(kBase), 7, 4), kCudaInvalidValue);
  EXPECT_EQ(error(window(kBase + 1), 8, 2), kCudaInvalidValue);
  EXPECT_EQ(error(window(kBase), 8, 3), kCudaUnknown);
  EXPECT_EQ(error(window(kBase), 8, 0), kCudaUnknown);
  EXPECT_EQ(error(bulk(0), 8, 1), kCudaUnknown);
  EXPECT_EQ(error(window(kBase + kDevice + kHost), 8, 1), kCudaUnknown);
}

TEST_F(Validation, LaunchesUpToTheModelsLimitsPass) {
  record.grid[0] = 0x7fffffff;
  record.grid[1] = record.grid[2] = 65535;
  record.block[0] = 1024;
  EXPECT_EQ(launch_error(), 0u);
}

TEST_F(Validation, GridsAndBlocksPastTheLimitsAreInvalidConfigurations) {
  const auto with = [&](uint32_t(&dimensions)[3], int axis, uint32_t value) {
    const uint32_t before = std::exchange(dimensions[axis], value);
    const uint32_t error = launch_error();
    dimensions[axis] = before;
    return error;
  };
  EXPECT_EQ(with(record.grid, 0, 0), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.grid, 0, 0x80000000u), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.grid, 1, 65536), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.grid, 2, 65536), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.block, 0, 0), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.block, 0, 1025), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.block, 2, 65), kCudaInvalidConfiguration);
  record.block[1] = 1024;
  EXPECT_EQ(with(record.block, 0, 2), kCudaInvalidConfiguration);
  EXPECT_EQ(with(record.block, 0, 0xffffffff), kCudaInvalidConfiguration);
}

TEST_F(Validation, ABlockLargerThanTheKernelWasBuiltForIsOutOfResources) {
  kernel.max_threads = 128;
  record.block[0] = 129;
  EXPECT_EQ(launch_error(), kCudaLaunchOutOfResources);
}

TEST_F(Validation, SharedMemoryCountsStaticAndDynamicParts) {
  const uint32_t most = std::max(model.shared_bytes_per_block, model.shared_bytes_per_block_optin);
  kernel.static_shared = 16;
  record.dynamic_shared_bytes = most - 16;
  EXPECT_EQ(launch_error(), 0u);
  record.dynamic_shared_bytes = most - 15;
  EXPECT_EQ(launch_error(), kCudaInvalidValue);
  record.dynamic_shared_bytes = 0xffffffff;
  EXPECT_EQ(launch_error(), kCudaInvalidValue);
}

TEST_F(Validation, ParametersMustBeTheKernelsAndInsideTheRecord) {
  record.parameter_bytes = 16;
  EXPECT_EQ(launch_error(), kCudaUnknown);
  kernel.parameter_bytes = record.parameter_bytes = 65;
  EXPECT_EQ(launch_error(), kCudaUnknown);
}

TEST_F(Validation, AKernelsLongNameIsCutInTheText) {
  kernel.name = std::string(5000, 'x');
  record.block[0] = 0;
  const std::byte parameters[64]{};
  EXPECT_THAT(check_launch(record, parameters, kernel, model).error().text, HasSubstr("blocks 0 x 1 x 1"));
}

TEST_F(Validation, EventsAndTheirWaitsNameWhatExists) {
  protocol::RecordHeader header{};
  header.sequence = 10;
  header.type = protocol::RecordType::kEventRecord;
  header.a = protocol::kMaxEvents - 1;
  EXPECT_TRUE(check_event(header));
  header.a = protocol::kMaxEvents;
  EXPECT_FALSE(check_event(header));
  header.type = protocol::RecordType::kEventWait;
  header.b = 9;
  EXPECT_TRUE(check_event(header));
  header.b = 10;
  EXPECT_FALSE(check_event(header)) << "it would wait for itself";
}

TEST_F(Validation, OpeningALibraryNeedsRoomInTheBulkArea) {
  protocol::LibraryOpenRecord open{};
  open.library = static_cast<uint32_t>(library::Library::kCurand);
  const uint64_t room = sizeof(protocol::LibraryOpened);
  open.position = 128 * kKiB - room;
  EXPECT_TRUE(check_library_open(open, bounds()));
  open.position += 1;
  EXPECT_FALSE(check_library_open(open, bounds()));
  open.position = kMost;
  EXPECT_FALSE(check_library_open(open, bounds()));
  open.position = 0;
  open.library = 77;
  EXPECT_FALSE(check_library_open(open, bounds()));
}

TEST_F(Validation, ALibraryCallHasExactlyItsFunctionsWords) {
  const auto words = library::curand::Draw{1, 1, library::curand::kPhilox, 0, 0, 0, 0, 0x1000, 10, 0, 0}.pack();
  const auto trailing = std::as_bytes(std::span(words));
  protocol::LibraryCallRecord call{};
  call.library = static_cast<uint32_t>(library::Library::kCurand);
  call.words = words.size();
  const auto checked = check_library_call(call, trailing);
  ASSERT_TRUE(checked) << checked.error().text;
  EXPECT_THAT(checked->call().words, ::testing::ElementsAreArray(words));
  EXPECT_FALSE(check_library_call(call, trailing.first(8 * words.size() - 1)));
  for (const uint32_t count : {0u, call.words - 1, call.words + 1, library::kMostWords + 1, UINT32_MAX}) {
    protocol::LibraryCallRecord other = call;
    other.words = count;
    EXPECT_FALSE(check_library_call(other, trailing)) << count;
  }
  protocol::LibraryCallRecord other = call;
  other.function = library::curand::kFunctions;
  EXPECT_FALSE(check_library_call(other, trailing));
  other = call;
  other.library = 0;
  EXPECT_FALSE(check_library_call(other, trailing));
}

TEST_F(Validation, ASymbolsAnswerNeedsRoomInTheBulkArea) {
  protocol::SymbolRecord symbol{};
  symbol.position = ring.bulk().size() - 16;
  EXPECT_TRUE(check_symbol(symbol, bounds()));
  symbol.position += 1;
  EXPECT_FALSE(check_symbol(symbol, bounds()));
}

}  // namespace
}  // namespace heddle::worker
