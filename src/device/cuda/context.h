#pragma once

#include <memory>
#include <vector>

#include "device/cuda/engine.h"

namespace heddle::cuda {

// A CUDA device's side of device::Context: checks what is handed over, and gives it to the engine.
//
// It holds the device's primary context: contexts of one process share it, and with it a fault. A worker is a process
// of its own and opens one.
class CudaContext : public device::Context {
 public:
  static Result<std::unique_ptr<CudaContext>> open(const device::ContextOptions& options);
  ~CudaContext() override;

  Status map(uint64_t address, Bytes size, const Fd& memory, bool host) override;
  Status unmap(uint64_t address, Bytes size) override;
  void set_room(Bytes room) override { engine_->set_room(room); }
  void pin_later(uint64_t address, Bytes size) override { window_->pin_later(address, size); }
  void unpin(uint64_t address) override;

  Result<device::Module*> load(std::span<const std::byte> fatbin) override;
  Result<device::Kernel*> kernel(device::Module& module, std::string_view name) override;
  Result<device::Variable> variable(device::Module& module, std::string_view name) override;

  Status set_texture(uint64_t handle, const Texture& texture) override;
  Status remove_texture(uint64_t handle) override;

  Status set_limit(device::Limit limit, uint64_t bytes) override;

  Result<uint32_t> open_library(library::Library library) override;

  Status create_stream(device::StreamIndex index, bool non_blocking, int priority) override;
  Status destroy_stream(device::StreamIndex index) override;

  Status launch(device::StreamIndex stream, device::Kernel& kernel, const device::LaunchConfig& config,
                device::Tag tag) override;
  Status copy(device::StreamIndex stream, device::CopyDirection direction, const device::CopyShape& shape,
              device::Tag tag) override;
  Status fill(device::StreamIndex stream, const device::FillShape& shape, device::Tag tag) override;
  Status call(device::StreamIndex stream, const library::Call& call, device::Tag tag) override;
  Status mark(device::StreamIndex stream, device::Tag tag) override;
  Status wait(device::StreamIndex stream, device::Tag awaited, device::Tag tag) override;
  Status hold(device::StreamIndex stream, device::Tag tag) override;
  Status release(device::Tag tag) override;
  bool flush() override;
  void fence() override;
  void awaited_by(const IsAwaited& is_awaited) override { engine_->awaited_by(is_awaited); }
  void report_to(device::ProgressWords words, Bytes size) override;
  void reports(bool on) override { engine_->reports(on); }

  size_t completions(std::span<device::Completion> out, Duration timeout) override;
  void wake() override;

 private:
  explicit CudaContext(const Driver& driver) : driver_(driver) {}
  Status build(const device::ContextOptions& options, LiftedHold& hold);
  Status submit(device::StreamIndex stream, device::Tag tag, Work work);

  const Driver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  uint32_t arch_ = 0;  // 90 for 9.0
  // In this order: the engine uses the window and the programs' kernels.
  std::unique_ptr<Window> window_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace heddle::cuda
