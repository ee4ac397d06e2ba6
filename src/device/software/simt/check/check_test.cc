// Races on shared memory and reads of what nobody wrote: what is told, and what is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/software/simt/check/check_log.h"
#include "device/software/simt/check/clocks.h"
#include "device/software/simt/check/declared_access.h"
#include "device/software/simt/check/written_memory.h"
#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Findings = std::vector<std::string>;

const char* const kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

// Kernels of 64 threads.
class CheckTest : public ::testing::Test {
 protected:
  // %r1 is the thread, %r2 four times it, tile has 64 words: %r3 is its address, %r4 of the thread's word, %r5 of that
  // of the thread 32 further (in the other warp), %r6 of its neighbour's (in the same warp).
  Findings check(const std::string& body, const std::string& functions = "") {
    return run(functions +
               ".visible .entry k()\n{\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\n.reg .pred %p<4>;\n"
               ".shared .align 8 .b32 tile[64];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, tile;\n"
               "add.u32 %r4, %r3, %r2;\nxor.b32 %r5, %r2, 128;\nadd.u32 %r5, %r3, %r5;\nxor.b32 %r6, %r2, 4;\n"
               "add.u32 %r6, %r3, %r6;\n" +
               body + "ret;\n}\n");
  }
  Findings run(const std::string& module) {
    machine_.load(kHead + module);
    Machine::Launch launch;
    launch.block = {64, 1, 1};
    launch.check = true;
    const auto outcome = machine_.run("k", launch);
    EXPECT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.fault.text << outcome.refusal;
    return outcome.findings;
  }
  Machine machine_;
};

const auto kIsRace = ElementsAre(HasSubstr("race on shared memory"));

TEST_F(CheckTest, ReadsOfAnotherWarpsWriteNeedABarrier) {
  const Findings found = check("st.shared.u32 [%r4], %r1;\nld.shared.u32 %r7, [%r5];\n");
  // The read of the warp that runs first finds nothing written; the other one's races.
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], HasSubstr("uninitialised shared memory at 0x80: kernel k, block 0,0,0: thread 0,0,0 reads 4"));
  EXPECT_THAT(found[1], AllOf(HasSubstr("race on shared memory at 0x80: kernel k, block 0,0,0: thread 32,0,0 writes"),
                              HasSubstr("(PTX line 18), thread 0,0,0 read (PTX line 19), and nothing orders the two")));
  EXPECT_THAT(check("st.shared.u32 [%r4], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r5];\n"), IsEmpty());
}

TEST_F(CheckTest, AWriteBehindReadsNeedsABarrierToo) {
  const std::string begin = "st.shared.u32 [%r4], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r5];\n";
  EXPECT_THAT(check(begin + "st.shared.u32 [%r4], %r7;\n"), kIsRace);
  EXPECT_THAT(check(begin + "bar.sync 0;\nst.shared.u32 [%r4], %r7;\n"), IsEmpty());
  EXPECT_THAT(check(begin + "bar.red.popc.u32 %r8, 0, %p1;\nst.shared.u32 [%r4], %r7;\n"), IsEmpty());
}

TEST_F(CheckTest, LanesOfAWarpAreOrderedBySyncOnly) {
  const std::string begin = "st.shared.u32 [%r4], %r1;\n", end = "ld.shared.u32 %r7, [%r6];\n";
  EXPECT_THAT(check(begin + end), kIsRace);
  EXPECT_THAT(check(begin + "bar.warp.sync 0xffffffff;\n" + end), IsEmpty());
  EXPECT_THAT(check(begin + "shfl.sync.idx.b32 %r8, %r1, 0, 31, -1;\n" + end), IsEmpty());
}

TEST_F(CheckTest, LanesThatComeToABarrierOfTheWarpApartMeetThere) {
  const std::string apart = "and.b32 %r9, %r1, 1;\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra EVEN;\n";
  const std::string odd = "st.shared.u32 [%r4], 1;\n", even = "st.shared.u32 [%r4], 2;\n";
  const auto with = [&](const std::string& sync) {
    return check(apart + odd + sync + "bra END;\nEVEN:\n" + even + sync + "END:\nld.shared.u32 %r7, [%r6];\n");
  };
  EXPECT_THAT(with(""), Each(HasSubstr("race on shared memory")));
  EXPECT_EQ(with("").size(), 2u);  // of either side with the read
  EXPECT_THAT(with("bar.warp.sync 0xffffffff;\n"), IsEmpty());
}

TEST_F(CheckTest, ABarrierOfOneWarpOrdersThatWarpAlone) {
  const std::string named = "shr.u32 %r9, %r1, 5;\nadd.u32 %r9, %r9, 1;\n";
  const std::string begin = named + "st.shared.u32 [%r4], %r1;\nbar.sync %r9, 32;\n";
  EXPECT_THAT(check(begin + "ld.shared.u32 %r7, [%r6];\n"), IsEmpty());
  EXPECT_THAT(check(begin + "bar.sync 3, 64;\nld.shared.u32 %r7, [%r5];\n"), IsEmpty());
  EXPECT_THAT(check("st.shared.u32 [%r4], %r1;\nbar.warp.sync -1;\nst.shared.u32 [%r5], %r1;\n"), kIsRace);
}

TEST_F(CheckTest, WhoeverWaitsHearsOfThoseThatArrived) {
  // The first warp produces and goes on, the second one waits for it.
  const std::string roles = "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra CONSUME;\n";
  const std::string produce = "st.shared.u32 [%r4], %r1;\nbar.arrive 1, 64;\nbra END;\n";
  const std::string consume = "CONSUME:\nbar.sync 1, 64;\nld.shared.u32 %r7, [%r5];\nEND:\n";
  EXPECT_THAT(check(roles + produce + consume), IsEmpty());
  const std::string late = "bar.arrive 1, 64;\nst.shared.u32 [%r4], %r1;\nbra END;\n";
  EXPECT_THAT(check(roles + late + consume), kIsRace);
}

TEST_F(CheckTest, AtomicsDoNotRaceWithOneAnother) {
  const std::string begin = "setp.ne.u32 %p1, %r1, 33;\n@!%p1 st.shared.u32 [%r3], 0;\n";
  const std::string add = "atom.shared.add.u32 %r7, [%r3], 1;\n";
  EXPECT_THAT(check(begin + "bar.sync 0;\n" + add), IsEmpty());
  EXPECT_THAT(check(begin + add), Contains(HasSubstr("race on shared memory")));
}

TEST_F(CheckTest, AFlagThatIsWaitedForOrdersWhatStandsBeforeIt) {
  const std::string begin =
      "setp.ne.u32 %p1, %r1, 0;\n@!%p1 st.shared.u32 [%r3], 0;\nbar.sync 0;\nsetp.ge.u32 %p1, %r1, 32;\n"
      "@%p1 bra WAIT;\nsetp.ne.u32 %p2, %r1, 7;\n@%p2 bra END;\nst.shared.u32 [%r3+8], 5;\n";
  const std::string wait =
      "bra END;\nWAIT:\nld.volatile.shared.u32 %r7, [%r3];\nsetp.eq.u32 %p2, %r7, 0;\n"
      "@%p2 bra WAIT;\nld.shared.u32 %r8, [%r3+8];\nEND:\n";
  EXPECT_THAT(check(begin + "st.volatile.shared.u32 [%r3], 1;\n" + wait), IsEmpty());
  EXPECT_THAT(check(begin + "st.shared.u32 [%r3], 1;\n" + wait).size(), 2u);  // of the flag, and of what it guards
}

TEST_F(CheckTest, WritesOfTheSameValueAreNoRace) {
  EXPECT_THAT(check("st.shared.u32 [%r3], 1;\n"), IsEmpty());
  EXPECT_THAT(check("st.shared.u32 [%r3], %r1;\n"), kIsRace);
}

TEST_F(CheckTest, BarriersInMemoryOrderThoseThatWait) {
  const std::string begin =
      "setp.ne.u32 %p1, %r1, 0;\n@!%p1 mbarrier.init.shared.b64 [%r3], 64;\nbar.sync 0;\n"
      "st.shared.u32 [%r4+8], %r1;\n";
  const std::string meet =
      "mbarrier.arrive.shared.b64 %d1, [%r3];\n"
      "WAIT:\nmbarrier.test_wait.shared.b64 %p2, [%r3], %d1;\n@!%p2 bra WAIT;\n";
  const std::string end = "setp.gt.u32 %p3, %r1, 31;\n@%p3 ld.shared.u32 %r7, [%r5+8];\n";
  EXPECT_THAT(check(".shared .b32 more[2];\n" + begin + meet + end), IsEmpty());
  EXPECT_THAT(check(".shared .b32 more[2];\n" + begin + end), Contains(HasSubstr("race on shared memory")));
}

TEST_F(CheckTest, MatricesOfAWarpAreReadAndWritten) {
  const std::string load =
      "and.b32 %r8, %r1, 7;\nshl.b32 %r8, %r8, 4;\nadd.u32 %r8, %r8, %r3;\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r8];\n";
  EXPECT_THAT(check(load), ElementsAre(HasSubstr("uninitialised shared memory")));
  EXPECT_THAT(check("st.shared.u32 [%r4], %r1;\nbar.sync 0;\n" + load), IsEmpty());
  EXPECT_THAT(check("st.shared.u32 [%r4], %r1;\nbar.sync 0;\n" + load + "st.shared.u32 [%r5], 0;\n"), kIsRace);
}

TEST_F(CheckTest, ReadsOfSharedMemoryThatNobodyWroteAreTold) {
  EXPECT_THAT(check("ld.shared.u32 %r7, [%r4];\n"),
              ElementsAre(HasSubstr("uninitialised shared memory at 0x0: kernel k, block 0,0,0: thread 0,0,0 reads 4 "
                                    "bytes (PTX line 18) that nobody wrote")));
  // A struct with padding.
  EXPECT_THAT(check("st.shared.u8 [%r4], %r1;\nld.shared.u32 %r7, [%r4];\n"), IsEmpty());
}

TEST_F(CheckTest, ReadsOfLocalMemoryThatTheThreadDidNotWriteAreTold) {
  const std::string begin = ".local .align 4 .b32 own[4];\nmov.u64 %d1, own;\ncvta.local.u64 %d2, %d1;\n";
  EXPECT_THAT(check(begin + "ld.local.u32 %r7, [%d1+4];\n"),
              ElementsAre(HasSubstr("uninitialised local memory at 0x4")));
  EXPECT_THAT(check(begin + "st.u32 [%d2+4], %r1;\nld.local.u32 %r7, [own+4];\n"), IsEmpty());
}

TEST_F(CheckTest, CallsPassWhatIsWrittenAndNothingElse) {
  const std::string functions =
      ".func (.param .b32 out) twice(.param .b32 in)\n{\n.reg .b32 %r<4>;\n.local .b32 own[2];\n"
      "ld.param.u32 %r1, [in];\nadd.u32 %r1, %r1, %r1;\nst.local.u32 [own], %r1;\nld.local.u32 %r2, [own];\n"
      "st.param.b32 [out], %r2;\nret;\n}\n"
      ".func (.param .b32 out) careless()\n{\n.reg .b32 %r<4>;\n.local .b32 own[2];\n"
      "ld.local.u32 %r2, [own];\nst.param.b32 [out], %r2;\nret;\n}\n";
  const std::string good =
      "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall (b), twice, (a);\nld.param.b32 %r7, [b];\n}\n";
  const std::string bad = "{\n.param .b32 b;\ncall (b), careless, ();\nld.param.b32 %r7, [b];\n}\n";
  EXPECT_THAT(check(good, functions), IsEmpty());
  EXPECT_THAT(check(good + bad, functions), ElementsAre(HasSubstr("uninitialised local memory")));
}

TEST_F(CheckTest, ReadsOfGlobalMemoryThatNobodyWroteAreTold) {
  const uint64_t buffer = machine_.allocate(64);
  const std::string at = "mov.u64 %d1, " + std::to_string(buffer) + ";\n";
  EXPECT_THAT(check(at + "ld.global.u32 %r7, [%d1+8];\n"), ElementsAre(HasSubstr("uninitialised global memory at")));
  EXPECT_THAT(check(at + "st.global.u32 [%d1+8], 1;\nld.global.u32 %r7, [%d1+8];\n"), IsEmpty());
  EXPECT_THAT(check(at + "red.global.add.u32 [%d1+8], 1;\n"), ElementsAre(HasSubstr("uninitialised global memory")));
}

TEST_F(CheckTest, FindingsNameTheSourceWhereThePtxDoes) {
  const Findings found =
      run(".visible .entry k()\n{\n.reg .b32 %r<4>;\n.shared .b32 word;\n.loc 1 41 3\nmov.u32 %r1, %tid.x;\n"
          ".loc 1 42 7\nst.shared.u32 [word], %r1;\nret;\n}\n.file 1 \"racy.cu\"\n");
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("thread 1,0,0 writes (PTX line 11, racy.cu:42)"),
                                       HasSubstr("thread 0,0,0 wrote (PTX line 11, racy.cu:42)"))));
}

// Doubles a word of one buffer into another one.
struct DeclaredAccessTest : CheckTest {
  Findings run_declared(const DeclaredAccess& declared) {
    machine_.load(std::string(kHead) +
                  ".visible .entry k(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
                  "ld.param.u64 %d1, [to];\nld.param.u64 %d2, [from];\nld.global.u32 %r1, [%d2];\n"
                  "add.u32 %r1, %r1, %r1;\nst.global.u32 [%d1], %r1;\nred.global.add.u32 [%d1], 1;\nret;\n}\n");
    Machine::Launch launch;
    launch.check = true;
    launch.declared = &declared;
    launch.written = Machine::kMemory;
    const auto outcome = machine_.run("k", launch, to, from);
    EXPECT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.fault.text << outcome.refusal;
    return outcome.findings;
  }
  const uint64_t to = machine_.put<uint32_t>({0, 0}), from = machine_.put<uint32_t>({21, 0});
};

TEST_F(DeclaredAccessTest, WhatIsDeclaredIsNotTold) {
  DeclaredAccess declared;
  declared.allow(to, 8, true, true);
  declared.allow(from, 4, true, false);
  EXPECT_THAT(run_declared(declared), IsEmpty());
  DeclaredAccess all;
  all.allow_all_reads();
  all.allow_all_writes();
  EXPECT_THAT(run_declared(all), IsEmpty());
}

TEST_F(DeclaredAccessTest, ADeclarationThatIsWrongShowsAtTheFirstAccessBeyondIt) {
  const auto undeclared = [](const char* what, uint64_t address, const char* line) {
    return AllOf(
        HasSubstr(stringf("undeclared %s of global memory at 0x%llx: kernel k, block 0,0,0: thread 0,0,0 "
                          "accesses 4 bytes (PTX line %s)",
                          what, static_cast<unsigned long long>(address), line)));
  };
  EXPECT_THAT(run_declared({}), ElementsAre(undeclared("read", from, "10"), undeclared("write", to, "12"),
                                            undeclared("write", to, "13")));
  DeclaredAccess reads;
  reads.allow(to, 8, true, false);
  reads.allow_all_reads();
  EXPECT_THAT(run_declared(reads), ElementsAre(undeclared("write", to, "12"), undeclared("write", to, "13")));
  DeclaredAccess writes;
  writes.allow(to, 8, false, true);
  EXPECT_THAT(run_declared(writes), ElementsAre(undeclared("read", from, "10"), undeclared("read", to, "13")));
  DeclaredAccess half;
  half.allow_all_reads();
  half.allow(to, 2, false, true);
  EXPECT_EQ(run_declared(half).size(), 2u);
}

TEST_F(CheckTest, WhatIsNoDeviceMemoryNeedsNoDeclaration) {
  machine_.load(std::string(kHead) +
                ".visible .entry k(.param .b32 number)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
                "mov.b64 %d1, number;\ncvta.param.u64 %d1, %d1;\nld.u32 %r1, [%d1];\nret;\n}\n");
  const DeclaredAccess nothing;
  Machine::Launch launch;
  launch.check = true;
  launch.declared = &nothing;
  EXPECT_THAT(machine_.run("k", launch, 5).findings, IsEmpty());
}

TEST(CheckLogTest, TellsEveryPairOfPlacesOnceAndNotTooMany) {
  Findings told;
  CheckLog log([&](std::string_view text) { told.emplace_back(text); });
  const auto text = [] { return std::string("found"); };
  log.find(CheckLog::Kind::kRace, "k", 3, 4, text);
  log.find(CheckLog::Kind::kRace, "k", 4, 3, text);
  EXPECT_EQ(told.size(), 1u);
  for (uint32_t line = 0; line < 1000; ++line) log.find(CheckLog::Kind::kUninitialised, "k", line, 0, text);
  EXPECT_EQ(told.size(), CheckLog::kMostFindings + 1);
  EXPECT_THAT(told.back(), HasSubstr("more are not told"));
}

TEST(ClocksTest, KnowWhoHasHeardOfWhom) {
  Clocks clocks(64);
  EXPECT_TRUE(clocks.has_heard(0, 0, clocks.now(0)));
  EXPECT_FALSE(clocks.has_heard(0, 1, clocks.now(1)));
  const uint32_t before = clocks.now(1);
  clocks.meet(0, 0b11, false);
  EXPECT_TRUE(clocks.has_heard(0, 1, before));
  EXPECT_FALSE(clocks.has_heard(2, 1, before));
  clocks.meet(0, ~0u, true);
  EXPECT_TRUE(clocks.has_heard(2, 1, before));
  EXPECT_FALSE(clocks.has_heard(40, 1, before));
  Clocks::Clock flag;
  clocks.release(5, flag);
  clocks.acquire(40, flag);
  EXPECT_TRUE(clocks.has_heard(40, 1, before));
  EXPECT_FALSE(clocks.has_heard(41, 1, before));
  clocks.meet_all();
  EXPECT_TRUE(clocks.has_heard(41, 1, before));
  EXPECT_FALSE(clocks.has_heard(41, 1, clocks.now(1)));
}

TEST(WrittenMemoryTest, KnowsEveryByte) {
  auto memory = WrittenMemory::create(4096, 4096);
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_FALSE(memory->any(4096, 4096));
  memory->mark(5003, 10);
  EXPECT_FALSE(memory->any(4096, 5003 - 4096));
  for (uint64_t at = 5003; at < 5013; ++at) EXPECT_TRUE(memory->any(at, 1));
  EXPECT_FALSE(memory->any(5013, 8192 - 5013));
  memory->forget(5004, 20);
  EXPECT_TRUE(memory->any(5000, 8));
  EXPECT_FALSE(memory->any(5004, 8));
  EXPECT_TRUE(memory->any(100, 1)) << "outside counts as written";
  memory->mark(0, 1 << 20);  // more than there is
  EXPECT_TRUE(memory->any(8191, 1));
}

}  // namespace
}  // namespace heddle::software
