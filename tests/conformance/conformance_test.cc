#include "conformance_test.h"

#include "core/testing/patience.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kGranule = 2 * kMiB;
// Nothing in the suite takes so long; a test that waits for what never comes fails instead of hanging.
constexpr Duration kPatience = std::chrono::seconds(60);

}  // namespace

void ConformanceTest::SetUp() {
  target_ = GetParam().make();
  if (!target_) GTEST_SKIP() << "no such device on this machine";
  reopen();
}

void ConformanceTest::reopen() {
  close();
  auto context = target_->open([this](std::string_view text) {
    std::lock_guard lock(printed_mutex_);
    printed_ += text;
  });
  ASSERT_TRUE(context) << context.error().text;
  context_ = std::move(*context);
  if (GetParam().apart) {
    stop_ = false;
    taker_ = std::thread([this] {
      while (!stop_) take(Duration(-1));
    });
  }
  next_address_ = target_->window_base();
  std::string fatbin = kernels_from_ptx();
  auto module = context_->load(std::as_bytes(std::span(fatbin)));
  ASSERT_TRUE(module) << module.error().text;
  module_ = *module;
}

void ConformanceTest::close() {
  stop_taking();
  context_.reset();
}

void ConformanceTest::stop_taking() {
  if (!taker_.joinable()) return;
  stop_ = true;
  context_->wake();
  taker_.join();
}

void ConformanceTest::TearDown() {
  close();
}

uint64_t ConformanceTest::map(uint64_t bytes) {
  uint64_t address = next_address_, size = round_up(bytes, kGranule);
  next_address_ += size + kGranule;  // a hole behind it
  auto memory = target_->allocate(Bytes{size});
  EXPECT_TRUE(memory) << memory.error().text;
  if (!memory) return 0;
  auto mapped = context_->map(address, Bytes{size}, *memory, false);
  EXPECT_TRUE(mapped) << mapped.error().text;
  return address;
}

device::Kernel& ConformanceTest::kernel(std::string_view name) {
  auto found = context_->kernel(*module_, name);
  if (!found) throw std::runtime_error(found.error().text);
  return **found;
}

uint64_t ConformanceTest::variable(std::string_view name) {
  auto found = context_->variable(*module_, name);
  if (!found) throw std::runtime_error(found.error().text);
  return found->address;
}

device::Tag ConformanceTest::launch(device::StreamIndex stream, std::string_view name, device::Dim3 grid,
                                    device::Dim3 block, const Parameters& parameters, uint32_t dynamic_shared) {
  device::LaunchConfig config{grid, block, dynamic_shared, false, parameters.bytes()};
  device::Tag tag = next_tag();
  auto launched = context_->launch(stream, kernel(name), config, tag);
  EXPECT_TRUE(launched) << launched.error().text;
  return tag;
}

device::Tag ConformanceTest::to_device(device::StreamIndex stream, uint64_t to, const void* from, uint64_t bytes) {
  device::CopyShape shape{{to}, {reinterpret_cast<uintptr_t>(from)}, bytes};
  device::Tag tag = next_tag();
  EXPECT_TRUE(context_->copy(stream, device::CopyDirection::kToDevice, shape, tag));
  return tag;
}

device::Tag ConformanceTest::to_host(device::StreamIndex stream, void* to, uint64_t from, uint64_t bytes) {
  device::CopyShape shape{{reinterpret_cast<uintptr_t>(to)}, {from}, bytes};
  device::Tag tag = next_tag();
  EXPECT_TRUE(context_->copy(stream, device::CopyDirection::kToHost, shape, tag));
  return tag;
}

device::Tag ConformanceTest::fill(device::StreamIndex stream, uint64_t to, uint32_t value, uint64_t bytes) {
  device::FillShape shape;
  shape.to = {to};
  shape.width = bytes;
  shape.value = value;
  device::Tag tag = next_tag();
  EXPECT_TRUE(context_->fill(stream, shape, tag));
  return tag;
}

device::Tag ConformanceTest::mark(device::StreamIndex stream) {
  device::Tag tag = next_tag();
  EXPECT_TRUE(context_->mark(stream, tag));
  return tag;
}

void ConformanceTest::take(Duration timeout) {
  device::Completion batch[16];
  size_t count = context_->completions(batch, timeout);
  std::lock_guard lock(taken_mutex_);
  for (size_t i = 0; i < count; ++i) {
    order_.push_back(batch[i].tag);
    EXPECT_TRUE(done_.emplace(batch[i].tag, batch[i]).second) << "tag " << batch[i].tag << " completed twice";
  }
  taken_.notify_all();
}

device::Completion ConformanceTest::wait_for(device::Tag tag) {
  constexpr Duration kRound = std::chrono::milliseconds(500);
  Patience patience(kPatience);
  std::unique_lock lock(taken_mutex_);
  while (!done_.count(tag) && !patience.is_over()) {
    if (taker_.joinable()) {
      taken_.wait_for(lock, kRound);
      continue;
    }
    lock.unlock();
    take(kRound);
    lock.lock();
  }
  EXPECT_TRUE(done_.count(tag)) << "tag " << tag << " did not complete";
  return done_[tag];
}

bool ConformanceTest::completed(device::Tag tag) {
  if (!taker_.joinable()) take(Duration::zero());
  std::lock_guard lock(taken_mutex_);
  return done_.count(tag) > 0;
}

std::vector<device::Tag> ConformanceTest::order() const {
  std::lock_guard lock(taken_mutex_);
  return order_;
}

void ConformanceTest::finish() {
  device::Completion last = wait_for(mark(0));
  EXPECT_EQ(last.cuda_error, 0u) << last.text;
}

std::string ConformanceTest::printed() {
  std::lock_guard lock(printed_mutex_);
  return printed_;
}

}  // namespace heddle::conformance
