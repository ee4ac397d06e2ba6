#include "worker/gate.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

TEST(Gate, IsShutUntilAllMemoryIsHere) {
  Gate gate;
  EXPECT_FALSE(gate.open());
  EXPECT_TRUE(gate.serving());
  gate.memory_ready();
  EXPECT_TRUE(gate.open());
}

TEST(Gate, ATaskThatHasEndedIsNotServed) {
  Gate gate;
  gate.memory_ready();
  gate.end_task();
  EXPECT_FALSE(gate.open());
  EXPECT_FALSE(gate.serving());
  gate.memory_ready();
  EXPECT_FALSE(gate.open()) << "it was on its way when the task ended";
}

TEST(Gate, TheNextTaskWaitsForItsOwnMemory) {
  Gate gate;
  gate.memory_ready();
  gate.end_task();
  gate.begin_task();
  EXPECT_TRUE(gate.serving());
  EXPECT_FALSE(gate.open());
  gate.memory_ready();
  EXPECT_TRUE(gate.open());
}

TEST(Gate, BehindTheTasksLastRecordNothingIsTaken) {
  Gate gate;
  gate.memory_ready();
  gate.close();
  EXPECT_FALSE(gate.open());
  EXPECT_TRUE(gate.serving()) << "what was taken is still at work";
  gate.memory_ready();
  EXPECT_FALSE(gate.open());
  gate.end_task();
  gate.close();
  EXPECT_FALSE(gate.serving());
}

}  // namespace
}  // namespace heddle::worker
