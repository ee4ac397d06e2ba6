#include "worker/epoch_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "core/fd.h"
#include "worker/components.h"

namespace heddle::worker {
namespace {

constexpr uint64_t kBytes = 2 * kMiB;
using Saves = std::vector<Save>;

Touched part(uint64_t segment, const char* how, uint64_t begin = 0, uint64_t end = kBytes) {
  const std::string_view access(how);
  return {{Region::Kind::kDevice, segment, 0},
          begin,
          end,
          access.find('r') != access.npos,
          access.find_first_of("wo") != access.npos,
          access.find('o') != access.npos};
}
// A kernel.
RecordEffects record(std::vector<Touched> touched, bool same_bytes = true, bool same_values = true) {
  RecordEffects made;
  made.touched = std::move(touched);
  made.bytes_by_content = true;
  made.same_bytes = same_bytes;
  made.same_values = same_bytes && same_values;
  return made;
}
RecordEffects everything() {
  RecordEffects made;
  made.reads_everything = made.writes_everything = true;
  made.bytes_by_content = true;
  made.same_bytes = made.same_values = false;
  return made;
}

struct EpochMemoryTest : testing::Test {
  EpochMemoryTest() {
    EXPECT_TRUE(memory.segment_mapped(1, 10 * kBytes, kBytes, false));
    EXPECT_TRUE(memory.segment_mapped(2, 20 * kBytes, kBytes, false));
    EXPECT_TRUE(memory.segment_mapped(3, 30 * kBytes, kBytes, false));
  }
  // Hands over the record with what it needs, and returns that.
  Precautions run(const RecordEffects& what, uint32_t stream = 1) {
    Precautions needed = memory.before(what, stream);
    memory.handed_over(what, needed, stream, ++sequence);
    return needed;
  }
  Saves saves(const RecordEffects& what) { return run(what).saves; }
  static Saves all_of(uint64_t segment) { return {{segment, {0, kBytes}}}; }

  EpochMemory memory;
  uint64_t sequence = 0;
};

TEST_F(EpochMemoryTest, AnUpdateInPlaceIsSavedOnce) {
  EXPECT_EQ(saves(record({part(1, "rw")})), all_of(1));
  EXPECT_EQ(saves(record({part(1, "rw")})), Saves());
  memory.committed();
  EXPECT_EQ(saves(record({part(1, "rw")})), all_of(1));
}

TEST_F(EpochMemoryTest, WritingWhatNobodyHasReadNeedsNothing) {
  EXPECT_EQ(saves(record({part(1, "r"), part(2, "w")})), Saves());
  EXPECT_EQ(saves(record({part(2, "w")})), Saves());
}

TEST_F(EpochMemoryTest, WritingBehindAReadNeedsASave) {
  run(record({part(1, "r"), part(2, "w")}));
  EXPECT_EQ(saves(record({part(2, "r"), part(1, "w")})), all_of(1));
  EXPECT_EQ(saves(record({part(2, "w")})), all_of(2)) << "it was read behind the first write";
}

TEST_F(EpochMemoryTest, WhatWasOverwrittenBeforeItWasReadIsNeverSaved) {
  EXPECT_EQ(saves(record({part(1, "o")})), Saves());
  EXPECT_EQ(saves(record({part(1, "rw")})), Saves());
  EXPECT_EQ(saves(record({part(1, "rw")}, false)), Saves());
  run(record({part(2, "r")}));
  EXPECT_EQ(saves(record({part(2, "o")})), all_of(2)) << "it was read first";
}

TEST_F(EpochMemoryTest, OfAPartThatWasOverwrittenTheRestIsSaved) {
  run(record({part(1, "o", 0, 1000)}));
  run(record({part(1, "o", 1000, 4096)}));
  EXPECT_EQ(saves(record({part(1, "rw")})), (Saves{{1, {4096, kBytes}}}));
}

TEST_F(EpochMemoryTest, ExactRangesAreToldApart) {
  run(record({part(1, "r", 0, 100)}));
  EXPECT_EQ(saves(record({part(1, "o", 200, 300)})), Saves());
  EXPECT_EQ(saves(record({part(1, "o", 50, 150)})), (Saves{{1, {50, 100}}}));
  EXPECT_EQ(saves(record({part(1, "w", 0, 100)})), (Saves{{1, {0, 50}}}));
}

TEST_F(EpochMemoryTest, ARecordThatMayDoSomethingElseNextTimeNeedsAllThatItMayWrite) {
  EXPECT_EQ(saves(record({part(1, "w")}, false)), all_of(1));
  EXPECT_EQ(saves(everything()), (Saves{{2, {0, kBytes}}, {3, {0, kBytes}}}));
}

TEST_F(EpochMemoryTest, AKernelThatReadsWhatIsUncertainMayWriteOtherBytesNextTime) {
  run(record({part(1, "w", 0, 100)}, true, false));  // sums of floats
  EXPECT_EQ(saves(record({part(1, "r", 100, 200), part(2, "w", 0, 10)})), Saves());
  EXPECT_EQ(saves(record({part(1, "r", 50, 60), part(2, "w", 0, 10)})), (Saves{{2, {0, 10}}}));
  // And so on: what it wrote is uncertain, too.
  EXPECT_EQ(saves(record({part(2, "r", 0, 10), part(2, "w", 20, 30)})), (Saves{{2, {20, 30}}}));
  // A copy writes the same bytes, whatever they are.
  RecordEffects copy = record({part(2, "r", 20, 30), part(2, "o", 40, 50)});
  copy.bytes_by_content = false;
  EXPECT_EQ(saves(copy), Saves());
  EXPECT_EQ(saves(record({part(2, "r", 40, 50), part(2, "w", 60, 70)})), (Saves{{2, {60, 70}}}));
  // What is overwritten with what is known is certain again.
  run(record({part(1, "o", 0, 100)}));
  EXPECT_EQ(saves(record({part(1, "r", 50, 60), part(2, "w", 80, 90)})), Saves());
}

TEST_F(EpochMemoryTest, VariablesMayBeUncertain) {
  const Touched counter{{Region::Kind::kVariable, 5, 7}, 0, 0, true, true, false};
  run(record({counter}, false));
  EXPECT_EQ(saves(record({part(2, "w")})), Saves());
  EXPECT_EQ(saves(record({counter, part(2, "w")})), all_of(2));
}

TEST_F(EpochMemoryTest, AWriteWaitsForASaveOnAnotherStream) {
  run(record({part(1, "rw", 0, 100)}), 1);
  const uint64_t saver = sequence;
  EXPECT_EQ(memory.before(record({part(1, "w")}), 2).await, std::vector<uint64_t>{saver});
  EXPECT_TRUE(memory.before(record({part(1, "w")}), 1).await.empty());
  EXPECT_TRUE(memory.before(record({part(1, "w", 100, 200)}), 2).await.empty());
  EXPECT_TRUE(memory.before(record({part(1, "r")}), 2).await.empty());
  memory.committed();
  EXPECT_TRUE(memory.before(record({part(1, "w")}), 2).await.empty());
}

TEST_F(EpochMemoryTest, WhatTheWorkerBeforeHasSavedIsNotSavedAgain) {
  memory.already_saved({1, {0, kBytes / 2}});
  memory.already_saved({77, {0, 1}});
  EXPECT_EQ(saves(record({part(1, "rw")})), (Saves{{1, {kBytes / 2, kBytes}}}));
}

TEST_F(EpochMemoryTest, TooManyPiecesAreSavedAsOne) {
  size_t count = 0;
  for (uint64_t i = 0; i < 1000; ++i) count += saves(record({part(1, "rw", 100 * i, 100 * i + 10)})).size();
  EXPECT_LE(count, 300u);
  count = 0;
  for (uint64_t i = 0; i < 1000; ++i) run(record({part(2, "r", 100 * i, 100 * i + 10)}));
  EXPECT_EQ(saves(record({part(2, "w")})), all_of(2));
}

TEST_F(EpochMemoryTest, OtherMemoryIsNoConcern) {
  ASSERT_TRUE(memory.segment_mapped(9, 90 * kBytes, kBytes, true));
  EXPECT_EQ(saves(record({part(8, "rw"), {{Region::Kind::kHost, 9, 0}, 0, kBytes, true, true, false}})), Saves());
  EXPECT_EQ(saves(everything()).size(), 3u);
  memory.segment_unmapped(1);
  memory.committed();
  EXPECT_EQ(saves(everything()).size(), 2u);
  EXPECT_FALSE(memory.segment_mapped(2, 500 * kBytes, kBytes, false));
  EXPECT_FALSE(memory.segment_mapped(5, 20 * kBytes, kBytes, false));
}

TEST_F(EpochMemoryTest, BytesOfASegmentAreFoundWhereTheyLie) {
  EXPECT_EQ(memory.find(2, {16, kBytes}), 20 * kBytes + 16);
  EXPECT_FALSE(memory.find(2, {16, kBytes + 1}));
  EXPECT_FALSE(memory.find(7, {0, 1}));
}

// Segment 1 has buffers at 0 and at 64 KiB, of 4 KiB each, segment 2 one of 1 MiB, and of segment 3 nothing is known.
struct EpochMemoryByBuffer : EpochMemoryTest {
  static constexpr Bytes kTable{protocol::BufferTable::kBytes};
  EpochMemoryByBuffer() : mapped(std::move(*map_shared(*create_memfd("table", kTable), kTable))) {
    table = protocol::BufferTable({static_cast<char*>(mapped.data()), mapped.size()}, 0);
    table.share({10 * kBytes, 11 * kBytes});
    for (const uint64_t offset : {uint64_t{0}, 64 * kKiB}) table.add(10 * kBytes + offset, 4 * kKiB);
    table.own(20 * kBytes, kMiB);
    memory = EpochMemory(table);
    for (uint64_t i : {1, 2, 3}) EXPECT_TRUE(memory.segment_mapped(i, 10 * i * kBytes, kBytes, false));
  }
  Mapping mapped;
  protocol::BufferTable table;
};

TEST_F(EpochMemoryByBuffer, ARecordThatMayTouchEverythingNeedsTheBuffersSaved) {
  run(record({part(1, "rw", 64 * kKiB, 68 * kKiB)}));
  EXPECT_EQ(saves(everything()), (Saves{{1, {0, 4 * kKiB}}, {2, {0, kMiB}}, {3, {0, kBytes}}}));
  EXPECT_EQ(saves(everything()), Saves());
  memory.committed();
  EXPECT_EQ(saves(everything()).size(), 4u);
}

TEST_F(EpochMemoryByBuffer, ASegmentThatIsMappedLaterIsSavedToo) {
  run(everything());
  ASSERT_TRUE(memory.segment_mapped(4, 40 * kBytes, kBytes, false));
  EXPECT_EQ(saves(everything()), all_of(4));
}

TEST_F(EpochMemoryByBuffer, OfASegmentWithManyBuffersAllIsSaved) {
  for (uint64_t i = 20; i < 300; ++i) table.add(10 * kBytes + i * 4 * kKiB, kKiB);
  EXPECT_EQ(saves(everything()), (Saves{{1, {0, kBytes}}, {2, {0, kMiB}}, {3, {0, kBytes}}}));
}

// Programs of random records of three streams over four segments of a few bytes. Now and then streams are committed
// ahead of the others, as far as they have nothing to do with them. Up to three workers die in the middle of a record;
// what was saved is restored each time, and all is run again that is not committed. The result is that of an
// undisturbed run.
class Replay : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr uint64_t kSegments = 4, kSmall = 12, kStreams = 3;
  using Memory = std::array<std::array<uint8_t, kSmall>, kSegments>;
  struct Step {
    RecordEffects effects;
    uint64_t code = 0;
    bool kernel = false;
    uint32_t stream = 0;
    std::optional<uint64_t> committed_by;  // the chance that it had then
  };

  uint64_t draw(uint64_t below) { return random_() % below; }
  Touched draw_part(const char* how, bool whole) {
    const uint64_t begin = whole ? 0 : draw(kSmall), end = whole ? kSmall : begin + 1 + draw(kSmall - begin);
    return part(draw(kSegments), how, begin, end);
  }
  Step draw_step() {
    Step step{{}, random_(), draw(3) != 0, static_cast<uint32_t>(draw(kStreams)), std::nullopt};
    if (!step.kernel) {
      step.effects.touched.push_back(draw_part("o", draw(3) == 0));
      if (draw(2)) step.effects.touched.push_back(draw_part("r", false));
      return step;
    }
    for (uint64_t i = 1 + draw(3); i > 0; --i) {
      static constexpr const char* kHow[] = {"r", "w", "rw"};
      step.effects.touched.push_back(draw_part(kHow[draw(3)], true));
    }
    step.effects.bytes_by_content = true;
    step.effects.same_bytes = draw(6) != 0;
    step.effects.same_values = step.effects.same_bytes && draw(4) != 0;
    return step;
  }
  static uint64_t mix(uint64_t a, uint64_t b) {
    return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
  }

  // What the step reads decides what it writes, and a kernel's where; of one that cannot be repeated `chance` too. Only
  // the bytes for which `reaches` holds are written: all, or those before its worker dies.
  template <class Reaches>
  static void execute(const Step& step, Memory& memory, uint64_t chance, Reaches reaches) {
    uint64_t seed = step.effects.same_bytes ? step.code : mix(step.code, chance);
    const uint64_t order = step.effects.same_values ? 0 : chance;
    for (const Touched& touched : step.effects.touched) {
      for (uint64_t at = touched.begin; touched.read && at < touched.end; ++at)
        seed = mix(seed, memory[touched.region.number][at]);
    }
    for (const Touched& touched : step.effects.touched) {
      for (uint64_t at = touched.begin; touched.written && at < touched.end; ++at) {
        const uint64_t value = mix(mix(seed, touched.region.number), at) >> 20;
        if ((step.kernel && value % 3 == 0) || !reaches()) continue;
        memory[touched.region.number][at] = static_cast<uint8_t>((value >> 8) + order);
      }
    }
  }

  struct Saved {
    Save save;
    std::vector<uint8_t> bytes;
    uint32_t stream = 0;
    size_t step = 0;
  };
  using Undo = std::vector<Saved>;

  // Of the steps up to `last`.
  void commit_one(std::vector<Step>& steps, size_t last, uint64_t chance, EpochMemory& epoch, Components& components,
                  Undo& undo) {
    const auto all = components.all();
    if (all.size() < 2) return;
    const Components::Streams streams = all[draw(all.size())];
    const auto is_one = [&](uint32_t stream) { return std::count(streams.begin(), streams.end(), stream) != 0; };
    epoch.committed(streams, components.committed(streams));
    for (size_t i = 0; i <= last; ++i) {
      if (!is_one(steps[i].stream) || steps[i].committed_by) continue;
      steps[i].committed_by = chance;
      ++committed_;
    }
    std::erase_if(undo, [&](const Saved& each) { return is_one(each.stream) && each.step <= last; });
  }

  // A worker that runs what of the program is not committed, and dies in the middle of step `dies_in`.
  // Those before it have got to step `again_until`.
  void live(std::vector<Step>& steps, size_t again_until, size_t dies_in, uint64_t chance, Memory& memory, Undo& undo) {
    EpochMemory epoch;
    Components components;
    for (uint64_t i = 0; i < kSegments; ++i) ASSERT_TRUE(epoch.segment_mapped(i, (i + 1) * kBytes, kSmall, false));
    for (const Saved& each : undo) {
      epoch.already_saved(each.save);
      components.touches(each.stream, {}, {each.save}, {});
    }
    for (size_t i = 0; i <= dies_in; ++i) {
      const Step& step = steps[i];
      if (step.committed_by) continue;
      const Precautions needed = epoch.before(step.effects, step.stream);
      for (const Save& save : needed.saves) {
        const auto from = memory[save.segment].begin();
        undo.push_back({save,
                        {from + static_cast<long>(save.bytes.begin), from + static_cast<long>(save.bytes.end)},
                        step.stream,
                        i});
        ++saved_;
      }
      epoch.handed_over(step.effects, needed, step.stream, i + 1);
      components.touches(step.stream, step.effects, needed.saves, {});
      execute(step, memory, chance, [&] { return i < dies_in || draw(2) == 0; });
      if (i >= again_until && i < dies_in && draw(3) == 0) commit_one(steps, i, chance, epoch, components, undo);
    }
    for (const auto& [save, bytes, stream, step] : undo)
      std::copy(bytes.begin(), bytes.end(), memory[save.segment].begin() + static_cast<long>(save.bytes.begin));
  }

  void one_program() {
    Memory before{};
    for (uint64_t i = 0; i < kSegments; ++i) {
      for (uint8_t& byte : before[i]) byte = static_cast<uint8_t>(random_());
    }
    std::vector<Step> steps(1 + draw(12));
    for (Step& step : steps) step = draw_step();

    Memory memory = before;
    Undo undo;
    uint64_t lives = 1 + draw(3);
    size_t again_until = 0;
    for (; lives > 0; --lives) {
      const size_t dies_in = draw(steps.size());
      live(steps, again_until, dies_in, lives, memory, undo);
      again_until = std::max(again_until, dies_in);
    }
    Memory undisturbed = before;
    for (const Step& step : steps) {
      if (!step.committed_by) execute(step, memory, lives, [] { return true; });
      execute(step, undisturbed, step.committed_by.value_or(lives), [] { return true; });
    }
    EXPECT_EQ(memory, undisturbed);
  }

  std::mt19937_64 random_{GetParam()};
  size_t saved_ = 0, committed_ = 0;
};

TEST_P(Replay, EndsAsAnUndisturbedRun) {
  for (int i = 0; i < 5000 && !HasFailure(); ++i) one_program();
  EXPECT_GT(saved_, 1000u);
  EXPECT_GT(committed_, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, testing::Range(1u, 9u));

}  // namespace
}  // namespace heddle::worker
