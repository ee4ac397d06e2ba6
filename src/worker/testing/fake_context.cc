#include "worker/testing/fake_context.h"

#include <sys/mman.h>

#include <thread>

#include "core/clock.h"

namespace heddle::worker {
namespace {

char* at(const device::CopyEnd& end, uint64_t row, uint64_t slice) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers in this interface
  return reinterpret_cast<char*>(end.address + row * end.pitch + slice * end.slice);
}

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void FakeContext::pause(device::StreamIndex stream) {
  std::lock_guard lock(mutex_);
  paused_.insert(stream);
}

void FakeContext::resume(device::StreamIndex stream) {
  std::lock_guard lock(mutex_);
  paused_.erase(stream);
  pump();
}

void FakeContext::refuse_modules(const Error& error) {
  std::lock_guard lock(mutex_);
  load_error_ = error;
}

std::vector<device::Tag> FakeContext::handed_over() {
  std::lock_guard lock(mutex_);
  return handed_over_;
}

std::map<device::StreamIndex, FakeContext::Stream> FakeContext::streams() {
  std::lock_guard lock(mutex_);
  return streams_;
}

std::set<uint64_t> FakeContext::mapped() {
  std::lock_guard lock(mutex_);
  std::set<uint64_t> addresses;
  for (const auto& [address, size] : mapped_) addresses.insert(address);
  return addresses;
}

std::map<uint64_t, Texture> FakeContext::textures() {
  std::lock_guard lock(mutex_);
  return textures_;
}

std::map<device::Limit, uint64_t> FakeContext::limits() {
  std::lock_guard lock(mutex_);
  return limits_;
}

Bytes FakeContext::room() {
  std::lock_guard lock(mutex_);
  return room_;
}

std::vector<std::vector<uint64_t>> FakeContext::library_calls() {
  std::lock_guard lock(mutex_);
  return library_calls_;
}

std::string FakeContext::read(uint64_t address, size_t bytes) {
  std::lock_guard lock(mutex_);
  return std::string(static_cast<const char*>(pointer(address)), bytes);
}

Status FakeContext::map(uint64_t address, Bytes size, const Fd& memory, bool) {
  std::lock_guard lock(mutex_);
  if (::mmap(pointer(address), size.value, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.get(), 0) ==
      MAP_FAILED)
    return fail_errno(-1, "fake device: cannot map");
  mapped_[address] = size;
  return {};
}

Status FakeContext::unmap(uint64_t address, Bytes size) {
  std::lock_guard lock(mutex_);
  if (mapped_.erase(address) == 0) return fail(ErrorCode::kNotFound, "fake device: nothing is mapped there");
  if (::mmap(pointer(address), size.value, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return fail_errno(-1, "fake device: cannot unmap");
  return {};
}

Result<device::Module*> FakeContext::load(std::span<const std::byte>) {
  std::lock_guard lock(mutex_);
  if (load_error_) return tl::unexpected(*load_error_);
  return &module_;
}

Result<device::Kernel*> FakeContext::kernel(device::Module&, std::string_view name) {
  const auto time = takes.find(std::string(name));
  LoadedKernel& loaded = loaded_.emplace_back();
  loaded.run = kernels.at(std::string(name));
  if (time != takes.end()) loaded.takes = time->second;
  return &loaded_.back();
}

Result<device::Variable> FakeContext::variable(device::Module&, std::string_view name) {
  return variables.at(std::string(name));
}

Status FakeContext::set_texture(uint64_t handle, const Texture& texture) {
  HEDDLE_TRY(check(texture));
  std::lock_guard lock(mutex_);
  textures_[handle] = texture;
  return {};
}

Status FakeContext::remove_texture(uint64_t handle) {
  std::lock_guard lock(mutex_);
  if (textures_.erase(handle) > 0) return {};
  return fail(ErrorCode::kNotFound, "fake device: no texture %lu", static_cast<unsigned long>(handle));
}

Status FakeContext::set_limit(device::Limit limit, uint64_t bytes) {
  on_set_limit();
  std::lock_guard lock(mutex_);
  limits_[limit] = bytes;
  return {};
}

void FakeContext::set_room(Bytes room) {
  std::lock_guard lock(mutex_);
  room_ = room;
}

Status FakeContext::create_stream(device::StreamIndex stream, bool non_blocking, int priority) {
  std::lock_guard lock(mutex_);
  if (!streams_.emplace(stream, Stream{non_blocking, priority}).second)
    return fail(ErrorCode::kInvalidArgument, "fake device: stream %u exists", stream);
  return {};
}

Status FakeContext::destroy_stream(device::StreamIndex stream) {
  std::lock_guard lock(mutex_);
  for (const Operation& operation : pending_) {
    if (operation.stream == stream) return fail(ErrorCode::kInvalidArgument, "fake device: stream %u is busy", stream);
  }
  if (streams_.erase(stream) == 0) return fail(ErrorCode::kInvalidArgument, "fake device: no stream %u", stream);
  return {};
}

Status FakeContext::launch(device::StreamIndex stream, device::Kernel& kernel, const device::LaunchConfig& config,
                           device::Tag tag) {
  std::vector<std::byte> parameters(config.parameters.begin(), config.parameters.end());
  const auto& loaded = static_cast<LoadedKernel&>(kernel);
  Operation operation{stream, tag, 0, [run = loaded.run, parameters] { return run(parameters); }};
  operation.takes = loaded.takes;
  return hand_over(std::move(operation));
}

Status FakeContext::copy(device::StreamIndex stream, device::CopyDirection, const device::CopyShape& shape,
                         device::Tag tag) {
  Operation copy{stream, tag, 0, [shape, lasts = copy_lasts.load()] {
                   std::this_thread::sleep_for(lasts);
                   for (uint64_t z = 0; z < shape.depth; ++z)
                     for (uint64_t y = 0; y < shape.height; ++y)
                       std::memcpy(at(shape.to, y, z), at(shape.from, y, z), shape.width);
                   return 0u;
                 }};
  copy.takes = mib_takes.load() * static_cast<int64_t>(shape.width * shape.height * shape.depth) / int64_t{kMiB};
  return hand_over(std::move(copy));
}

Status FakeContext::fill(device::StreamIndex stream, const device::FillShape& shape, device::Tag tag) {
  return hand_over({stream, tag, 0, [shape] {
                      for (uint64_t z = 0; z < shape.depth; ++z)
                        for (uint64_t y = 0; y < shape.height; ++y)
                          for (uint64_t x = 0; x < shape.width; x += shape.element_bytes)
                            std::memcpy(at(shape.to, y, z) + x, &shape.value, shape.element_bytes);
                      return 0u;
                    }});
}

Result<uint32_t> FakeContext::open_library(library::Library) {
  if (const uint32_t version = library_version) return version;
  return fail(ErrorCode::kNotFound, "fake device: no library");
}

Status FakeContext::call(device::StreamIndex stream, const library::Call& call, device::Tag tag) {
  std::vector<uint64_t> words(call.words.begin(), call.words.end());
  return hand_over({stream, tag, 0, [this, words] {
                      library_calls_.push_back(words);
                      return 0u;
                    }});
}

Status FakeContext::mark(device::StreamIndex stream, device::Tag tag) {
  return hand_over({stream, tag, 0, [] { return 0u; }});
}

Status FakeContext::wait(device::StreamIndex stream, device::Tag awaited, device::Tag tag) {
  return hand_over({stream, tag, awaited, [] { return 0u; }});
}

Status FakeContext::hold(device::StreamIndex stream, device::Tag tag) {
  return hand_over({stream, tag, 0, [] { return 0u; }, true});
}

Status FakeContext::release(device::Tag tag) {
  std::lock_guard lock(mutex_);
  for (auto operation = pending_.begin(); operation != pending_.end(); ++operation) {
    if (operation->tag != tag || !operation->arrived) continue;
    unfinished_.erase(tag);
    pending_.erase(operation);
    pump();
    return {};
  }
  return fail(ErrorCode::kNotFound, "fake device: nothing is held by %lu", static_cast<unsigned long>(tag));
}

Status FakeContext::hand_over(Operation operation) {
  std::lock_guard lock(mutex_);
  if (operation.stream != 0 && !streams_.contains(operation.stream))
    return fail(ErrorCode::kInvalidArgument, "fake device: no stream %u", operation.stream);
  handed_over_.push_back(operation.tag);
  unfinished_.insert(operation.tag);
  pending_.push_back(std::move(operation));
  pump();
  return {};
}

bool FakeContext::ready(const std::deque<Operation>::iterator& operation) {
  const auto blocking = [this](device::StreamIndex stream) { return stream == 0 || !streams_[stream].non_blocking; };
  if (operation->arrived || paused_.contains(operation->stream)) return false;
  if (operation->awaited && unfinished_.contains(operation->awaited)) return false;
  for (auto earlier = pending_.begin(); earlier != operation; ++earlier) {
    if (earlier->stream == operation->stream) return false;
    const bool legacy = earlier->stream == 0 || operation->stream == 0;
    if (legacy && blocking(earlier->stream) && blocking(operation->stream)) return false;
  }
  return true;
}

void FakeContext::pump() {
  for (auto operation = pending_.begin(); operation != pending_.end();) {
    if (!ready(operation)) {
      ++operation;
      continue;
    }
    const uint32_t error = sticky_ ? sticky_ : operation->run();
    if (error) sticky_ = error;
    const device::Tag tag = operation->tag;
    const Duration took = operation->takes;
    if (operation->holds) {
      operation->arrived = true;
    } else {
      unfinished_.erase(tag);
      pending_.erase(operation);
    }
    complete(tag, error, took);
    operation = pending_.begin();
  }
}

void FakeContext::complete(device::Tag tag, uint32_t cuda_error, Duration took) {
  const TimePoint now = MonotonicClock().now();
  const bool failed = cuda_error != 0;
  completions_.push_back({tag, cuda_error, failed ? "fake fault" : "", now - took, now, 0, failed});
  changed_.notify_all();
}

size_t FakeContext::completions(std::span<device::Completion> out, Duration) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return woken_ || !completions_.empty(); });
  woken_ = false;
  size_t count = 0;
  for (; count < out.size() && !completions_.empty(); ++count) {
    out[count] = std::move(completions_.front());
    completions_.pop_front();
  }
  return count;
}

void FakeContext::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace heddle::worker
