#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing/fake_heddled.h"
#include "client/testing/program.h"

namespace heddle::client::testing {

// The library has one session for the life of a process, so each file of tests is a program of its own; its tests
// share the session and leave no memory behind.
inline FakeHeddled* the_heddled = nullptr;

class Environment : public ::testing::Environment {
 public:
  explicit Environment(FakeOptions options) : options_(options) {}
  void SetUp() override { the_heddled = new FakeHeddled(options_); }
  void TearDown() override { delete the_heddled; }

 private:
  FakeOptions options_;
};

inline Program& program() {
  static auto* const the_program = new Program;
  return *the_program;
}

// Launches the program's kernel `add`(pointer, number, pointer).
inline cudaError_t launch_add(void* to, int number, void* from, cudaStream_t stream = nullptr, unsigned blocks = 1) {
  void* arguments[] = {&to, &number, &from};
  return cudaLaunchKernel(&program().add, {blocks, 1, 1}, {32, 1, 1}, arguments, 0, stream);
}

// What a launch of `add` carried.
struct AddParameters {
  int* to;
  int number, padding;
  int* from;
};
inline AddParameters add_parameters(const char* parameters) {
  AddParameters read;
  std::memcpy(&read, parameters, sizeof read);
  return read;
}
// From now on launches do what `add` does: to[0] = from[0] + number, where both pointers are there.
inline void let_kernels_add() {
  the_heddled->set_kernel([](const protocol::LaunchRecord&, const char* parameters) {
    const AddParameters add = add_parameters(parameters);
    if (add.to && add.from) *add.to = *add.from + add.number;
  });
}

}  // namespace heddle::client::testing
