#include "worker/write_set.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "core/fd.h"
#include "library/cublas.h"
#include "library/cufft.h"
#include "library/curand.h"

namespace heddle::worker {
namespace {

constexpr uint64_t kSegment = 2 * kMiB, kWindow = 1ull << 40;
constexpr uint64_t kA = kWindow, kB = kA + kSegment, kC = kB + kSegment, kPinned = kWindow + kGiB,
                   kVariable = 1ull << 30;
constexpr Region kRegionA{Region::Kind::kDevice, 1}, kRegionB{Region::Kind::kDevice, 2},
    kRegionC{Region::Kind::kDevice, 3};
constexpr Region kRegionPinned{Region::Kind::kHost, 9}, kRegionVariable{Region::Kind::kVariable, 1, 7};

// Segments a, b and c side by side, and variable 1 of module 7, of 64 bytes.
struct WriteSet : testing::Test {
  WriteSet() {
    EXPECT_TRUE(regions.add(kA, kSegment, kRegionA) && regions.add(kB, kSegment, kRegionB) &&
                regions.add(kC, kSegment, kRegionC) && regions.add(kVariable, 64, kRegionVariable));
    info.variables = {{"unused", 4}, {"table", 64}};
    kernel.name = effects.name = "k";
    kernel.parameters = {{0, 8}, {8, 8}, {16, 8}};
  }
  RecordEffects launch(uint64_t first, uint64_t second = 0, uint64_t third = 0) {
    const std::array<uint64_t, 3> words{first, second, third};
    const std::vector<image::KernelEffects> all{image::KernelEffects{.name = "other"}, effects};
    return effects_of_launch(use_of(7, info, kernel, all), std::as_bytes(std::span(words)), regions);
  }
  static Touched whole(Region region, bool read, bool written) { return {region, 0, kSegment, read, written, false}; }

  Regions regions;
  image::ModuleInfo info;
  image::KernelInfo kernel;
  image::KernelEffects effects;
};

TEST_F(WriteSet, OfALaunchAreTheSegmentsThatItsParametersLeadTo) {
  effects.read = 0b011;
  effects.written = 0b010;
  const RecordEffects k = launch(kA + 256, kC, kB);
  EXPECT_EQ(k.touched, (std::vector<Touched>{whole(kRegionA, true, false), whole(kRegionC, true, true)}));
  EXPECT_FALSE(k.reads_everything || k.writes_everything);
  EXPECT_TRUE(k.same_bytes);
  EXPECT_FALSE(k.unmovable);
  EXPECT_EQ(launch(kA, kA + kSegment / 2).touched, (std::vector<Touched>{whole(kRegionA, true, true)}));
  EXPECT_TRUE(launch(0, 12345).touched.empty());
}

TEST_F(WriteSet, OfAKernelThatIsNotKnownIsEverything) {
  effects.name = "another";
  const RecordEffects k = launch(kA);
  EXPECT_TRUE(k.reads_everything && k.writes_everything && !k.same_bytes);
  EXPECT_FALSE(k.unmovable);
  ASSERT_TRUE(regions.add(kPinned, kSegment, kRegionPinned));
  EXPECT_EQ(launch(kA).unmovable, Unmovable::kHostMemory);
  EXPECT_TRUE(regions.remove(kPinned));
  EXPECT_FALSE(launch(kA).unmovable);
}

TEST_F(WriteSet, OfAKernelThatFollowsAddressesIsWhatItReadsOrWritesThroughThem) {
  effects.follows_memory = true;
  EXPECT_TRUE(launch(kA).reads_everything);
  EXPECT_FALSE(launch(kA).writes_everything);
  effects.writes_anything = true;
  EXPECT_TRUE(launch(kA).writes_everything);
  EXPECT_TRUE(launch(kA).same_bytes);
}

TEST_F(WriteSet, TellsWhatCannotBeRepeatedOrMoved) {
  effects.atomics = true;
  EXPECT_FALSE(launch(kA).same_bytes);
  effects.atomics = false;
  effects.reductions = true;
  EXPECT_TRUE(launch(kA).same_bytes && launch(kA).same_values);
  effects.unordered = true;
  EXPECT_TRUE(launch(kA).same_bytes && !launch(kA).same_values);
  effects.observes = true;
  EXPECT_FALSE(launch(kA).same_bytes);
  effects.keeps_module_addresses = true;
  EXPECT_EQ(launch(kA).unmovable, Unmovable::kModuleAddress);
  effects.allocates = true;
  EXPECT_EQ(launch(kA).unmovable, Unmovable::kDeviceMalloc);
  effects = {.name = "k", .read = 1};
  ASSERT_TRUE(regions.add(kPinned, kSegment, kRegionPinned));
  EXPECT_FALSE(launch(kA, kPinned).unmovable) << "it does nothing with that parameter";
  EXPECT_EQ(launch(kPinned + 64).unmovable, Unmovable::kHostMemory);
}

TEST_F(WriteSet, NamesVariablesThatTheKernelNamesOrIsPointedTo) {
  effects.variables = {{"table", true, false}};
  EXPECT_EQ(launch(0).touched, (std::vector<Touched>{{kRegionVariable, 0, 0, true, false, false}}));
  EXPECT_FALSE(launch(0).unmovable);
  info.variables[1].managed = true;
  EXPECT_EQ(launch(0).unmovable, Unmovable::kHostMemory);
  effects.variables.clear();
  effects.written = 1;
  EXPECT_EQ(launch(kVariable + 8).touched, (std::vector<Touched>{{kRegionVariable, 0, 64, false, true, false}}));
  effects.variables = {{"of_another_unit", false, true}};
  EXPECT_TRUE(launch(0).writes_everything);
}

// Segment b is shared by buffers: 512 bytes, a gap, 8 KiB, the next one 512 bytes behind it, and one of 256 KiB that
// ends where another one of 4 KiB begins. Segment a has one of 1 MiB.
struct BufferWriteSet : WriteSet {
  static constexpr uint64_t kUnit = 512;
  static constexpr Bytes kTable{protocol::BufferTable::kBytes};
  static constexpr uint64_t kStarts[] = {0, 1024, 1024 + 8192 + kUnit, kMiB, kMiB + 256 * kKiB};
  static constexpr uint64_t kBytes[] = {kUnit, 8192, 8192, 256 * kKiB, 4096};
  BufferWriteSet() : memory(std::move(*map_shared(*create_memfd("table", kTable), kTable))) {
    protocol::BufferTable table({static_cast<char*>(memory.data()), memory.size()}, kWindow);
    table.own(kA, kMiB);
    table.share({kB, kC});
    for (size_t i = 0; i < std::size(kStarts); ++i) table.add(kB + kStarts[i], kBytes[i]);
    regions = Regions(table);
    EXPECT_TRUE(regions.add(kA, kSegment, kRegionA) && regions.add(kB, kSegment, kRegionB) &&
                regions.add(kC, kSegment, kRegionC));
    effects.written = 1;
  }
  std::vector<Touched> of(uint64_t pointer) { return launch(pointer).touched; }
  static Touched buffer(size_t i) { return {kRegionB, kStarts[i], kStarts[i] + kBytes[i], false, true, false}; }

  Mapping memory;
};

TEST_F(BufferWriteSet, APointerMeansTheBufferThatItPointsInto) {
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(of(kB + kStarts[i]), std::vector{buffer(i)}) << i;
  EXPECT_EQ(of(kB + kStarts[3] + 1000), std::vector{buffer(3)});
  const Touched only{kRegionA, 0, kMiB, false, true, false};
  EXPECT_EQ(of(kA), std::vector{only});
  EXPECT_EQ(of(kA + 1000), std::vector{only});
  EXPECT_EQ(of(kC + 8), std::vector{whole(kRegionC, false, true)}) << "nothing is known of its buffers";
}

TEST_F(BufferWriteSet, APointerMayMeanWhatEndsThereOrBeginsSoonBehind) {
  EXPECT_EQ(of(kB + kStarts[4]), (std::vector{buffer(4), buffer(3)})) << "one begins where the other ends";
  EXPECT_EQ(of(kB + kStarts[0] + kUnit), (std::vector{buffer(1), buffer(0)})) << "at an end, and soon before another";
  EXPECT_EQ(of(kB + kStarts[2] - 8), (std::vector{buffer(2)})) << "elements counted from 1";
  EXPECT_EQ(of(kB + kStarts[1] + 8), (std::vector{buffer(1)}));
  EXPECT_EQ(of(kB + kStarts[1] + 8000), (std::vector{buffer(2), buffer(1)}));
  EXPECT_EQ(of(kB - 8), (std::vector{buffer(0), buffer(1), whole(kRegionA, false, true)}));
  EXPECT_EQ(of(kA + kMiB), (std::vector{Touched{kRegionA, 0, kMiB, false, true, false}}));
}

TEST_F(BufferWriteSet, APointerThatLeadsToNoBufferMeansItsSegment) {
  EXPECT_EQ(of(kB + kSegment / 2 + 300 * kKiB), std::vector{whole(kRegionB, false, true)});
  EXPECT_EQ(of(kA + kMiB + 512), std::vector{whole(kRegionA, false, true)});
}

TEST_F(BufferWriteSet, ListsTheBuffersOfASegment) {
  const auto all = [&](uint64_t segment) {
    std::vector<std::pair<uint64_t, uint64_t>> found;
    regions.each_buffer(segment, kSegment, [&](uint64_t begin, uint64_t end) { found.emplace_back(begin, end); });
    return found;
  };
  std::vector<std::pair<uint64_t, uint64_t>> expected;
  for (size_t i = 0; i < std::size(kStarts); ++i) expected.emplace_back(kStarts[i], kStarts[i] + kBytes[i]);
  EXPECT_EQ(all(kB), expected);
  expected = {{0, kMiB}};
  EXPECT_EQ(all(kA), expected);
  expected = {{0, kSegment}};
  EXPECT_EQ(all(kC), expected);
}

CheckedCopy copy_of(device::CopyEnd to, device::CopyEnd from, uint64_t width, uint64_t height = 1, uint64_t depth = 1) {
  CheckedCopy copy;
  copy.shape = {to, from, width, height, depth};
  copy.bytes = width * height * depth;
  return copy;
}

TEST_F(WriteSet, OfACopyAreItsBytes) {
  const RecordEffects dense = effects_of_copy(copy_of({kB + 100}, {kA + 50}, 1000), regions);
  EXPECT_EQ(dense.touched,
            (std::vector<Touched>{{kRegionA, 50, 1050, true, false, false}, {kRegionB, 100, 1100, false, true, true}}));
  EXPECT_TRUE(dense.same_bytes);
  const RecordEffects rows = effects_of_copy(copy_of({kB, 100, 0}, {0x1000, 10, 0}, 10, 3), regions);
  EXPECT_EQ(rows.touched, (std::vector<Touched>{{kRegionB, 0, 210, false, true, false}}));
  const RecordEffects box = effects_of_copy(copy_of({kB, 10, 30}, {kB + kSegment / 2, 10, 60}, 10, 3, 2), regions);
  EXPECT_EQ(box.touched, (std::vector<Touched>{{kRegionB, kSegment / 2, kSegment / 2 + 90, true, false, false},
                                               {kRegionB, 0, 60, false, true, true}}));
  const RecordEffects across = effects_of_copy(copy_of({kB - 4}, {kVariable}, 8), regions);
  EXPECT_EQ(across.touched, (std::vector<Touched>{{kRegionVariable, 0, 8, true, false, false},
                                                  {kRegionA, kSegment - 4, kSegment, false, true, true},
                                                  {kRegionB, 0, 4, false, true, true}}));
  EXPECT_TRUE(effects_of_copy({}, regions).touched.empty());
}

TEST_F(WriteSet, OfAFillAreItsBytes) {
  CheckedFill fill;
  fill.shape = {{kC + 8}, 16, 1, 1, 0, 4};
  fill.bytes = 16;
  EXPECT_EQ(effects_of_fill(fill, regions).touched, (std::vector<Touched>{{kRegionC, 8, 24, false, true, true}}));
  fill.shape = {{kC + 8, 32, 0}, 16, 2, 1, 0, 4};
  fill.bytes = 32;
  EXPECT_EQ(effects_of_fill(fill, regions).touched, (std::vector<Touched>{{kRegionC, 8, 56, false, true, false}}));
}

TEST_F(WriteSet, OfADrawIsWhatItFills) {
  const auto words = library::curand::Draw{1, 1, library::curand::kPhilox, 0, 0, 0, 0, kB + 64, 10, 0, 0}.pack();
  const library::Call call{library::Library::kCurand, 0, words};
  EXPECT_EQ(effects_of_call(call, regions).touched, (std::vector<Touched>{{kRegionB, 64, 104, false, true, false}}));
}

// cublasSgemm of 2 x 2 matrices, C behind A in one segment, and a workspace.
TEST_F(WriteSet, OfAProductIsWhatItReadsAndWritesAndTheWorkspace) {
  const auto setting = library::cublas::Setting{.workspace = kC + 4096, .workspace_bytes = 1024}.pack();
  std::vector<uint64_t> words(setting.begin(), setting.end());
  for (const uint64_t word : std::initializer_list<uint64_t>{0, 0, 2, 2, 2, 0, 0, kA, 2, kB, 2, 0, 0, kA + 16, 2})
    words.push_back(word);
  const library::Call call{library::Library::kCublas, static_cast<uint32_t>(library::cublas::Number::Sgemm_v2), words};
  EXPECT_EQ(effects_of_call(call, regions).touched, (std::vector<Touched>{{kRegionC, 4096, 5120, false, true, false},
                                                                          {kRegionA, 0, 16, true, false, false},
                                                                          {kRegionB, 0, 16, true, false, false},
                                                                          {kRegionA, 16, 32, true, true, false}}));
  const RecordEffects unknown = effects_of_call({library::Library::kCublas, 1u << 20, {}}, regions);
  EXPECT_TRUE(unknown.reads_everything && unknown.writes_everything && !unknown.same_bytes);
}

// What the matrices of a batch are, the array of addresses says when the call's turn comes.
TEST_F(WriteSet, OfAFactorizedBatchIsEverything) {
  const auto setting = library::cublas::Setting{}.pack();
  std::vector<uint64_t> words(setting.begin(), setting.end());
  for (const uint64_t word : std::initializer_list<uint64_t>{2, kA, 2, 0, kB, 3}) words.push_back(word);
  const library::Call call{library::Library::kCublas, static_cast<uint32_t>(library::cublas::Number::SgetrfBatched),
                           words};
  const RecordEffects of_call = effects_of_call(call, regions);
  EXPECT_TRUE(of_call.reads_everything && of_call.writes_everything);
  EXPECT_EQ(of_call.touched,
            (std::vector<Touched>{{kRegionA, 0, 24, true, false, false}, {kRegionB, 0, 12, true, true, false}}));
}

TEST_F(WriteSet, OfATransformIsItsInputOutputAndWorkArea) {
  library::cufft::Transform transform;
  transform.type = type_of(library::cufft::Function::kC2C);
  transform.size[2] = 4;
  transform.input = kA, transform.output = kB;
  transform.work = kC, transform.work_bytes = 64;
  const auto words = transform.pack();
  EXPECT_EQ(effects_of_call({library::Library::kCufft, 0, words}, regions).touched,
            (std::vector<Touched>{{kRegionA, 0, 32, true, false, false},
                                  {kRegionB, 0, 32, true, true, false},
                                  {kRegionC, 0, 64, true, true, false}}));
}

}  // namespace
}  // namespace heddle::worker
