#include "software_target.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace heddle::conformance {
namespace {

constexpr uint64_t kWindow = 1 * kGiB, kAlignment = 2 * kMiB;
constexpr uint32_t kHostThreads = 2;

template <class T>
T expect(Result<T> result, const char* what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s: %s\n", what, result.error().text.c_str());
  std::abort();
}

DeviceModel model() {
  DeviceModel model = expect(device_preset("V100"), "preset");
  model.sms = 4;
  model.slowdown = model.copy_slowdown = 0;
  return model;
}

// Addresses wherever there is room: sanitizers have opinions on that.
Mapping reserve_anywhere() {
  void* address = mmap(nullptr, kWindow + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? Mapping() : Mapping(address, kWindow + kAlignment);
}

class SoftwareTarget : public Target {
 public:
  explicit SoftwareTarget(const DeviceModel& model)
      : model_(model),
        board_(expect(create_memfd("board", device::software_board_bytes(model)), "board")),
        window_(reserve_anywhere()) {}

  Result<std::unique_ptr<device::Context>> open(device::PrintSink print) override {
    device::ContextOptions options;
    options.model = model_;
    options.window_base = window_base();
    options.window_bytes = window_bytes();
    options.host_threads = kHostThreads;
    options.print = std::move(print);
    return device::open_software_context(options, board_);
  }
  uint64_t window_base() const override { return round_up(reinterpret_cast<uintptr_t>(window_.data()), kAlignment); }
  uint64_t window_bytes() const override { return kWindow; }
  Result<Fd> allocate(Bytes size) override { return create_memfd("segment", size); }
  const DeviceModel& model() const override { return model_; }

 private:
  DeviceModel model_;
  Fd board_;
  Mapping window_;
};

}  // namespace

std::unique_ptr<Target> software_target(const DeviceModel& model) {
  return std::make_unique<SoftwareTarget>(model);
}

std::unique_ptr<Target> unpaced_software_target() {
  return software_target(model());
}

std::unique_ptr<Target> paced_software_target() {
  DeviceModel paced = model();
  paced.slowdown = 50;
  paced.copy_slowdown = 2;
  return software_target(paced);
}

std::unique_ptr<Target> time_sliced_software_target() {
  DeviceModel paced = model();
  paced.slowdown = 50;
  paced.copy_slowdown = 2;
  paced.sharing = Sharing::kTimeSliced;
  return software_target(paced);
}

}  // namespace heddle::conformance
