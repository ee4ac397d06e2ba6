#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "device/software/simt/block.h"
#include "device/software/simt/device_heap.h"
#include "device/software/simt/texture_table.h"

namespace heddle::software {

// A small device for tests: some memory, modules whose variables lie in it, launches that run block by block.
class Machine {
 public:
  static constexpr uint64_t kMemory = 16 * kMiB, kHeap = 64 * kKiB;

  explicit Machine(const InstructionSet& instructions = best_instruction_set());

  // Space in device memory, 256-byte aligned, holding these values.
  template <class T>
  uint64_t put(const std::vector<T>& values) {
    uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  uint64_t allocate(uint64_t bytes);
  template <class T>
  std::vector<T> get(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }

  // Parses and loads a module; fails the test on an error.
  void load(std::string_view ptx);
  Result<std::unique_ptr<const CompiledKernel>> compile(std::string_view kernel) const;

  struct Outcome {
    Block::Progress progress = Block::Progress::kFaulted;
    Fault fault;
    Counters counters;
    std::string printed;
    std::vector<std::string> findings;  // of the checks
    std::string refusal;                // of the compiler of kernels
  };
  struct Launch {
    Dim3 grid, block{32, 1, 1};
    uint32_t dynamic_shared = 0;
    uint32_t stack_bytes = 1024;
    bool check = false;                        // for races and uninitialised reads
    const DeclaredAccess* declared = nullptr;  // then accesses beyond it are told; null: none are
    uint64_t written = 0;                      // then so many bytes from the start of memory count as written
    uint64_t slice = 1'000'000;                // instructions for each call of Block::run
    uint64_t budget = 200'000'000;             // after so many a block counts as hung
  };
  // Runs all blocks of a kernel. Parameters are packed as PTX lays them out.
  template <class... T>
  Outcome run(std::string_view kernel, const Launch& launch, T... parameters) const {
    std::vector<std::byte> packed;
    (pack(packed, parameters), ...);
    return run_packed(kernel, launch, packed);
  }
  uint64_t address_of(std::string_view variable) const;
  const MemoryMap& memory() const { return *map_; }
  void lies_on_host(uint64_t address, uint64_t bytes) { (void)map_->set_on_host(address, bytes); }
  TextureTable& textures() { return textures_; }

 private:
  template <class T>
  static void pack(std::vector<std::byte>& packed, const T& value) {
    packed.resize(round_up(packed.size(), alignof(T)));
    auto bytes = reinterpret_cast<const std::byte*>(&value);
    packed.insert(packed.end(), bytes, bytes + sizeof(T));
  }
  Outcome run_packed(std::string_view kernel, const Launch& launch, std::span<const std::byte> parameters) const;

  const InstructionSet& instructions_;
  Mapping arena_;
  uint64_t base_ = 0, used_ = 0;
  std::unique_ptr<MemoryMap> map_;
  std::unique_ptr<DeviceHeap> heap_;
  ptx::Module module_;
  TextureTable textures_;
  std::vector<std::pair<std::string, uint64_t>> variables_;
};

}  // namespace heddle::software
