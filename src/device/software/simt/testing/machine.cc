#include "device/software/simt/testing/machine.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "device/software/ptx/parser.h"
#include "device/software/simt/check/access_check.h"
#include "device/software/simt/check/checked_kernel.h"

namespace heddle::software {

Machine::Machine(const InstructionSet& instructions) : instructions_(instructions) {
  uint64_t bytes = kMemory + MemoryMap::kGranule;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  arena_ = Mapping(at, bytes);
  base_ = round_up(reinterpret_cast<uint64_t>(at), MemoryMap::kGranule);
  auto map = MemoryMap::create({{base_, kMemory}});
  EXPECT_TRUE(map.has_value());
  map_ = std::make_unique<MemoryMap>(std::move(*map));
  EXPECT_TRUE(map_->add(base_, kMemory).has_value());
  heap_ = std::make_unique<DeviceHeap>(allocate(kHeap), kHeap);
}

uint64_t Machine::allocate(uint64_t bytes) {
  uint64_t address = base_ + used_;
  used_ = round_up(used_ + bytes, 256);
  EXPECT_LE(used_, kMemory);
  return address;
}

void Machine::load(std::string_view ptx) {
  auto module = ptx::parse(ptx);
  ASSERT_TRUE(module.has_value()) << module.error().text;
  module_ = std::move(*module);
  variables_.clear();
  for (const ptx::Variable& variable : module_.variables)
    if (variable.space != ptx::Space::kShared) variables_.emplace_back(variable.name, allocate(variable.size));
  auto resolve = [&](std::string_view name) -> std::optional<uint64_t> {
    uint64_t address = address_of(name);
    return address ? std::optional(address) : function_address(module_, name);
  };
  for (const ptx::Variable& variable : module_.variables) {
    if (variable.space == ptx::Space::kShared) continue;
    std::span room(reinterpret_cast<std::byte*>(address_of(variable.name)), variable.size);
    auto written = ptx::write_initial_value(variable, resolve, room);
    ASSERT_TRUE(written.has_value()) << written.error().text;
  }
}

uint64_t Machine::address_of(std::string_view variable) const {
  for (const auto& [name, address] : variables_)
    if (name == variable) return address;
  return 0;
}

Result<std::unique_ptr<const CompiledKernel>> Machine::compile(std::string_view kernel) const {
  auto resolve = [&](std::string_view name) -> std::optional<uint64_t> {
    uint64_t address = address_of(name);
    return address ? std::optional(address) : std::nullopt;
  };
  return software::compile(module_, kernel, resolve, instructions_);
}

Machine::Outcome Machine::run_packed(std::string_view name, const Launch& launch,
                                     std::span<const std::byte> parameters) const {
  Outcome outcome;
  auto kernel = compile(name);
  if (!kernel) {
    outcome.refusal = kernel.error().text;
    return outcome;
  }
  auto memory = WrittenMemory::create(base_, kMemory);
  EXPECT_TRUE(memory.has_value()) << memory.error().text;
  Checks checks([&](std::string_view text) { outcome.findings.emplace_back(text); }, std::move(*memory));
  LaunchShape shape;
  if (launch.check) {
    kernel = with_checks(**kernel);
    checks.written.mark(base_, launch.written);
    shape.checks = &checks;
    shape.declared = launch.declared;
  }
  shape.grid = launch.grid;
  shape.block = launch.block;
  shape.dynamic_shared = launch.dynamic_shared;
  shape.stack_bytes = launch.stack_bytes;
  shape.parameters = parameters;
  shape.heap = heap_.get();
  shape.textures = &textures_;
  auto block = Block::create(**kernel, shape, *map_, [&](std::string_view text) { outcome.printed += text; });
  EXPECT_TRUE(block.has_value()) << block.error().text;
  if (!block) return outcome;
  for (uint64_t i = 0; i < launch.grid.count(); ++i) {
    auto x = static_cast<uint32_t>(i % launch.grid.x), y = static_cast<uint32_t>(i / launch.grid.x % launch.grid.y);
    (*block)->start({x, y, static_cast<uint32_t>(i / launch.grid.x / launch.grid.y)}, 0);
    uint64_t spent = 0;
    do {
      outcome.progress = (*block)->run(launch.slice);
      spent = (*block)->counters().warp_instructions;
    } while (outcome.progress == Block::Progress::kRunning && spent < launch.budget);
    EXPECT_NE(outcome.progress, Block::Progress::kRunning) << "the block hangs";
    if (outcome.progress != Block::Progress::kFinished) break;
  }
  outcome.fault = (*block)->fault();
  outcome.counters = (*block)->counters();
  return outcome;
}

}  // namespace heddle::software
