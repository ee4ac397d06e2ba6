#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ptx_fatbin.h"
#include "target.h"

namespace heddle::conformance {

// The parameters of a launch, laid out as the compiler does it: each at a multiple of its size.
class Parameters {
 public:
  template <class... Values>
  explicit Parameters(const Values&... values) {
    (add(values), ...);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class Value>
  void add(const Value& value) {
    size_t at = round_up(bytes_.size(), sizeof value);
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  std::vector<std::byte> bytes_;
};

// One context with the suite's kernels loaded. What goes wrong on the way ends the test.
class ConformanceTest : public testing::TestWithParam<TargetKind> {
 protected:
  void SetUp() override;
  void TearDown() override;

  device::Context& context() { return *context_; }
  Target& target() { return *target_; }
  device::Module& module() { return *module_; }

  // Destroys the context and opens another one on the same device.
  void reopen();
  void close();
  // The test takes completions itself from here on.
  void stop_taking();
  // Maps fresh memory somewhere in the window.
  uint64_t map(uint64_t bytes);
  device::Kernel& kernel(std::string_view name);
  uint64_t variable(std::string_view name);

  device::Tag next_tag() { return ++last_tag_; }
  device::Tag launch(device::StreamIndex stream, std::string_view name, device::Dim3 grid, device::Dim3 block,
                     const Parameters& parameters, uint32_t dynamic_shared = 0);
  device::Tag to_device(device::StreamIndex stream, uint64_t to, const void* from, uint64_t bytes);
  device::Tag to_host(device::StreamIndex stream, void* to, uint64_t from, uint64_t bytes);
  device::Tag fill(device::StreamIndex stream, uint64_t to, uint32_t value, uint64_t bytes);
  device::Tag mark(device::StreamIndex stream);

  // Waits for the completion of that tag. Completions of others are kept for later calls.
  device::Completion wait_for(device::Tag tag);
  // Whether it has completed by now, as far as is known where another thread takes completions.
  bool completed(device::Tag tag);
  // Waits for all work of all streams that block, and expects it to have gone well.
  void finish();
  // The tags in the order in which they completed so far.
  std::vector<device::Tag> order() const;

  // Shorthands that wait.
  template <class T>
  void write(uint64_t to, const std::vector<T>& values) {
    EXPECT_EQ(wait_for(to_device(0, to, values.data(), values.size() * sizeof(T))).cuda_error, 0u);
  }
  template <class T>
  std::vector<T> read(uint64_t from, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(wait_for(to_host(0, values.data(), from, count * sizeof(T))).cuda_error, 0u);
    return values;
  }

  std::string printed();

 private:
  void take(Duration timeout);

  std::unique_ptr<Target> target_;
  std::unique_ptr<device::Context> context_;
  device::Module* module_ = nullptr;
  uint64_t next_address_ = 0;
  device::Tag last_tag_ = 0;
  mutable std::mutex taken_mutex_;
  std::condition_variable taken_;
  std::map<device::Tag, device::Completion> done_;
  std::vector<device::Tag> order_;
  std::thread taker_;  // where completions are taken apart
  std::atomic<bool> stop_{false};
  std::mutex printed_mutex_;
  std::string printed_;
};

inline std::string target_name(const testing::TestParamInfo<TargetKind>& info) {
  return info.param.name;
}

// Runs all tests of a fixture on every target.
#define HEDDLE_CONFORMANCE_SUITE(fixture) \
  INSTANTIATE_TEST_SUITE_P(On, fixture, testing::ValuesIn(heddle::conformance::targets()), target_name)

}  // namespace heddle::conformance
