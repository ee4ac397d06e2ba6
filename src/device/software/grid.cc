#include "device/software/grid.h"

#include <algorithm>

#include "core/cuda_error.h"

namespace heddle::software {

Grid::Grid(const ProgramKernel& kernel, const device::LaunchConfig& config, const SmShare& block_share,
           const Setting& setting)
    : code_(setting.checks ? *kernel.checked : *kernel.code),
      memory_(setting.memory->map()),
      print_(setting.print),
      textures_(setting.textures),
      parameters_(config.parameters.begin(), config.parameters.end()),
      declared_(setting.declared),
      block_share_(block_share),
      blocks_(config.grid.count()) {
  parameters_.resize(std::max<size_t>(parameters_.size(), code_.parameter_bytes));
  shape_.grid = {config.grid.x, config.grid.y, config.grid.z};
  shape_.block = {config.block.x, config.block.y, config.block.z};
  shape_.dynamic_shared = config.dynamic_shared_bytes;
  shape_.parameters = parameters_;
  shape_.sm_count = setting.sm_count;
  shape_.grid_id = setting.id;
  shape_.workspace = setting.workspace;
  shape_.heap = setting.memory->heap();
  shape_.stack_bytes = setting.stack_bytes;
  shape_.textures = textures_.get();
  shape_.checks = setting.checks;
  shape_.declared = &declared_;
}

Dim3 Grid::block_index(uint64_t number) const {
  uint64_t row = number / shape_.grid.x;
  return {static_cast<uint32_t>(number % shape_.grid.x), static_cast<uint32_t>(row % shape_.grid.y),
          static_cast<uint32_t>(row / shape_.grid.y)};
}

Result<std::unique_ptr<Block>> Grid::interpreter() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto block = std::move(idle_.back());
      idle_.pop_back();
      return block;
    }
  }
  return Block::create(code_, shape_, memory_, print_);
}

void Grid::recycle(std::unique_ptr<Block> block) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

BlockRun::Outcome BlockRun::run(uint64_t warp_instructions, uint32_t sm_count) {
  uint64_t budget = warp_instructions;
  while (next < end) {
    if (budget == 0) return Outcome::kPreempted;
    if (!block && !begin()) return Outcome::kFaulted;
    Counters before = block->counters();
    Block::Progress progress = block->run(budget);
    uint64_t used = block->counters().warp_instructions - before.warp_instructions;
    counters.warp_instructions += used;
    counters.global_bytes += block->counters().global_bytes - before.global_bytes;
    counters.host_bytes += block->counters().host_bytes - before.host_bytes;
    budget -= std::min(budget, std::max<uint64_t>(used, 1));
    if (progress == Block::Progress::kRunning && block->is_waiting()) return Outcome::kPreempted;
    if (progress == Block::Progress::kRunning) continue;
    if (progress == Block::Progress::kFaulted) {
      fault = block->fault();
      return Outcome::kFaulted;
    }
    grid->recycle(std::move(block));
    ++finished;
    ++next;
    sm = (sm + 1) % sm_count;
  }
  return Outcome::kFinished;
}

bool BlockRun::begin() {
  auto taken = grid->interpreter();
  if (!taken) {
    fault = {kCudaLaunchOutOfResources, taken.error().text};
    return false;
  }
  block = std::move(*taken);
  block->start(grid->block_index(next), sm);
  counters = {};
  return true;
}

}  // namespace heddle::software
