#pragma once

// A device for tests. It executes at once, on the issuing thread, unless a stream is paused; a paused stream goes on at
// resume(). It keeps CUDA's stream order, the legacy default stream's rules included.

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"

namespace heddle::worker {

// What a kernel of the fake device does; returns a CUDA error.
using FakeKernel = std::function<uint32_t(std::span<const std::byte> parameters)>;

class FakeContext : public device::Context {
 public:
  std::atomic<uint64_t> fences{0};           // calls of fence()
  std::atomic<uint32_t> library_version{0};  // that every library has; 0: there are none
  // Set before the session starts.
  std::map<std::string, FakeKernel> kernels;
  std::map<std::string, Duration> takes;  // as the device tells; nothing: no time
  std::atomic<Duration> mib_takes{};      // to copy
  std::atomic<Duration> copy_lasts{};     // each of them, by the clock
  std::map<std::string, device::Variable> variables;
  device::FindingSink findings;                // of check_kernels(), once it was called
  std::function<void()> on_set_limit = [] {};  // on the issuer's thread

  void pause(device::StreamIndex stream);
  void resume(device::StreamIndex stream);
  // From now on no module can be loaded.
  void refuse_modules(const Error& error);
  // Tags in the order in which they were handed over.
  std::vector<device::Tag> handed_over();
  struct Stream {
    bool non_blocking = false;
    int priority = 0;
    bool operator==(const Stream&) const = default;
  };
  std::map<device::StreamIndex, Stream> streams();
  std::set<uint64_t> mapped();
  std::map<uint64_t, Texture> textures();
  std::map<device::Limit, uint64_t> limits();
  Bytes room();
  // The words of the calls that were carried out.
  std::vector<std::vector<uint64_t>> library_calls();
  // Device memory. Under the device's lock: the ring that orders the two threads is mapped twice in a test's process,
  // so that ThreadSanitizer cannot see the order.
  std::string read(uint64_t address, size_t bytes);

  Status map(uint64_t address, Bytes size, const Fd& memory, bool host) override;
  Status unmap(uint64_t address, Bytes size) override;
  Result<device::Module*> load(std::span<const std::byte> fatbin) override;
  Result<device::Kernel*> kernel(device::Module&, std::string_view name) override;
  Result<device::Variable> variable(device::Module&, std::string_view name) override;
  Status set_texture(uint64_t handle, const Texture& texture) override;
  Status remove_texture(uint64_t handle) override;
  Status check_kernels(const device::FindingSink& sink) override {
    findings = sink;
    return {};
  }
  Status set_limit(device::Limit limit, uint64_t bytes) override;
  void set_room(Bytes room) override;
  Result<uint32_t> open_library(library::Library) override;
  Status create_stream(device::StreamIndex, bool non_blocking, int priority) override;
  Status destroy_stream(device::StreamIndex) override;
  Status launch(device::StreamIndex, device::Kernel&, const device::LaunchConfig&, device::Tag) override;
  Status copy(device::StreamIndex, device::CopyDirection, const device::CopyShape&, device::Tag) override;
  Status fill(device::StreamIndex, const device::FillShape&, device::Tag) override;
  Status call(device::StreamIndex, const library::Call&, device::Tag) override;
  Status mark(device::StreamIndex, device::Tag) override;
  Status wait(device::StreamIndex, device::Tag awaited, device::Tag) override;
  Status hold(device::StreamIndex, device::Tag) override;
  Status release(device::Tag) override;
  void fence() override { ++fences; }
  size_t completions(std::span<device::Completion> out, Duration timeout) override;
  void wake() override;

 private:
  struct Operation {
    device::StreamIndex stream = 0;
    device::Tag tag = 0, awaited = 0;
    std::function<uint32_t()> run;
    bool holds = false, arrived = false;
    Duration takes{};
  };
  struct LoadedKernel : device::Kernel {
    FakeKernel run;
    Duration takes{};
  };
  struct LoadedModule : device::Module {};

  Status hand_over(Operation operation);
  bool ready(const std::deque<Operation>::iterator& operation);
  void pump();
  void complete(device::Tag tag, uint32_t cuda_error, Duration took);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> pending_;  // in issue order
  std::set<device::StreamIndex> paused_;
  std::map<device::StreamIndex, Stream> streams_;
  std::map<uint64_t, Bytes> mapped_;
  std::map<uint64_t, Texture> textures_;
  std::map<device::Limit, uint64_t> limits_;
  Bytes room_;
  std::vector<std::vector<uint64_t>> library_calls_;
  std::set<device::Tag> unfinished_;
  std::vector<device::Tag> handed_over_;
  std::deque<device::Completion> completions_;
  std::deque<LoadedKernel> loaded_;
  LoadedModule module_;
  std::optional<Error> load_error_;
  uint32_t sticky_ = 0;
  bool woken_ = false;
};

}  // namespace heddle::worker
