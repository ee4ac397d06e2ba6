#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "device/software/declared.h"
#include "device/software/engine.h"
#include "device/software/libraries/libraries.h"
#include "device/software/simt/check/access_check.h"
#include "device/software/simt/texture_table.h"

namespace heddle::software {

// The software device's side of device::Context: checks what is handed over, and gives it to the engine.
class SoftwareContext : public device::Context {
 public:
  static Result<std::unique_ptr<SoftwareContext>> open(const device::ContextOptions& options, const Fd& board);

  Status map(uint64_t address, Bytes size, const Fd& memory, bool host) override;
  void lies_on_host(uint64_t address, Bytes size) override { memory_.lies_on_host(address, size); }
  Status unmap(uint64_t address, Bytes size) override;

  Result<device::Module*> load(std::span<const std::byte> fatbin) override;
  Result<device::Kernel*> kernel(device::Module& module, std::string_view name) override;
  Result<device::Variable> variable(device::Module& module, std::string_view name) override;

  Status set_texture(uint64_t handle, const Texture& texture) override;
  Status remove_texture(uint64_t handle) override;

  Status check_kernels(const device::FindingSink& sink) override;
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

  size_t completions(std::span<device::Completion> out, Duration timeout) override;
  void wake() override;

 private:
  SoftwareContext(const device::ContextOptions& options, DeviceMemory memory);
  Status start_engine(const Fd& board);
  TextureTable& own_textures();
  template <class Work>
  Status submit(device::StreamIndex stream, device::Tag tag, Work work);
  uint32_t capability() const { return options_.model.capability_major * 10 + options_.model.capability_minor; }

  const device::ContextOptions options_;
  std::unique_ptr<Checks> checks_;  // null: kernels are not checked
  MappedRanges mapped_;             // where they are
  DeviceMemory memory_;
  Libraries libraries_;
  CompletionQueue completions_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::shared_ptr<TextureTable> textures_ = std::make_shared<TextureTable>();
  bool textures_in_use_ = false;  // by launches: a change makes a new table
  uint32_t stack_bytes_ = kDefaultStackBytes;
  uint64_t next_grid_ = 1;
  std::unique_ptr<Engine> engine_;  // last: its threads use what stands above
};

}  // namespace heddle::software
