#include "device/software/simt/block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "device/software/simt/check/access_check.h"

namespace heddle::software {
namespace {

// Instructions of a warp's turn. Programs with races between warps assume that all of them advance together: with turns
// twenty times as long, some compute something else.
constexpr uint64_t kTurn = 100;
// Of each warp that runs, until the block leaves its place to others: what it waits for may be one of theirs.
constexpr uint32_t kPollingTurns = 20;
static_assert(kTurn <= Op::kWholeTurn);
constexpr uint32_t kMaxThreads = 1024;
constexpr uint64_t kLine = 64;

bool can_run(const Warp& warp) {
  if (warp.active) return !is_held(warp);
  return std::any_of(warp.parked, warp.parked + warp.parked_count,
                     [](const Path& path) { return path.wait == Wait::kNone; });
}

// The warp that is next in turn.
uint32_t next_of(uint32_t warps, uint32_t from) {
  uint32_t later = warps >> from << from;
  return static_cast<uint32_t>(std::countr_zero(later ? later : warps));
}

std::byte* aligned(std::byte* at) {
  return reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(at), kLine));
}

}  // namespace

Result<std::unique_ptr<Block>> Block::create(const CompiledKernel& kernel, const LaunchShape& launch,
                                             const MemoryMap& memory, PrintSink print) {
  uint64_t threads = launch.block.count();
  if (threads == 0 || threads > kMaxThreads)
    return fail(ErrorCode::kInvalidArgument, "kernel %s: a block of %u x %u x %u threads, at most %u are possible",
                kernel.name.c_str(), launch.block.x, launch.block.y, launch.block.z, kMaxThreads);
  if (launch.parameters.size() < kernel.parameter_bytes)
    return fail(ErrorCode::kInvalidArgument, "kernel %s takes %u bytes of parameters, %zu were given",
                kernel.name.c_str(), kernel.parameter_bytes, launch.parameters.size());
  try {
    std::unique_ptr<Block> block(new Block);
    block->prepare(kernel, launch, memory, std::move(print));
    return block;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "kernel %s: no host memory for a block of %llu threads", kernel.name.c_str(),
                static_cast<unsigned long long>(threads));
  }
}

void Block::prepare(const CompiledKernel& kernel, const LaunchShape& launch, const MemoryMap& memory, PrintSink print) {
  uint32_t threads = static_cast<uint32_t>(launch.block.count());
  uint32_t warps = (threads + kLanes - 1) / kLanes;
  state_.kernel = &kernel;
  state_.memory = &memory;
  state_.launch = launch;
  state_.print = std::move(print);
  state_.operands = kernel.operands.data();
  state_.parameters = launch.parameters.data();
  state_.shared_bytes = kernel.dynamic_shared_offset + launch.dynamic_shared;
  state_.local_bytes = kernel.local_bytes + (kernel.recursive ? launch.stack_bytes : 0);
  // One line more than needed, so that the threads' memories do not all fall into the same sets of the host's cache.
  state_.local_stride = state_.local_bytes ? static_cast<uint32_t>(round_up(state_.local_bytes, kLine) + kLine) : 0;
  uint64_t shared_room = round_up(state_.shared_bytes, kLine);
  uint64_t local_room = uint64_t{state_.local_stride} * kLanes;
  memory_ = std::make_unique<std::byte[]>(kLine + shared_room + local_room * warps);
  state_.shared = aligned(memory_.get());
  if (kernel.checked && launch.checks) check_ = std::make_unique<AccessCheck>(state_, *launch.checks);
  state_.check = check_.get();
  state_.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    Warp& warp = state_.warps[i];
    warp.block = &state_;
    warp.code = kernel.code.data();
    warp.index = i;
    warp.local = state_.shared + shared_room + i * local_room;
    warp.root = state_.frames.acquire(kernel.functions[0]);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint32_t thread = i * kLanes + lane;
      warp.tid[0][lane] = thread % launch.block.x;
      warp.tid[1][lane] = thread / launch.block.x % launch.block.y;
      warp.tid[2][lane] = thread / launch.block.x / launch.block.y;
    }
    run_prologue(warp);
  }
}

void Block::run_prologue(Warp& warp) {
  warp.frame = warp.root;
  warp.registers = warp.root->registers;
  warp.active = kAllLanes;
  for (const Op& op : state_.kernel->prologue) op.run(warp, op);
}

Block::Block() = default;
Block::~Block() = default;

void Block::start(Dim3 block_index, uint32_t sm) {
  state_.index = block_index;
  state_.sm = sm;
  state_.fault = {};
  forget_barriers();
  state_.live = static_cast<uint32_t>(state_.launch.block.count());
  state_.alive = state_.running = kAllLanes >> (32 - state_.warps.size());
  std::memset(state_.shared, 0, state_.shared_bytes);
  bool abandoned =
      std::any_of(state_.warps.begin(), state_.warps.end(), [](const Warp& warp) { return warp.live != 0; });
  for (Warp& warp : state_.warps) start_warp(warp);
  if (abandoned) state_.frames.release_calls();
  if (check_) check_->begin();
  next_warp_ = 0;
}

void Block::start_warp(Warp& warp) {
  auto threads = static_cast<uint32_t>(state_.launch.block.count());
  uint32_t mine = std::min(threads - warp.index * kLanes, kLanes);
  warp.frame = warp.root;
  warp.registers = warp.root->registers;
  warp.live = mine == kLanes ? kAllLanes : (1u << mine) - 1;
  warp.frame->lanes = warp.live;
  warp.active = warp.live;
  warp.pc = state_.kernel->functions[0].entry;
  warp.limit = Warp::kNoLimit;
  warp.parked_count = 0;
  warp.turn = warp.patience = warp.polls = 0;
}

// Those that the last block left open.
void Block::forget_barriers() {
  if (!state_.barriers_in_use) return;
  std::fill(std::begin(state_.barriers), std::end(state_.barriers), Barrier{});
  std::fill(std::begin(state_.held), std::end(state_.held), 0);
  for (Warp& warp : state_.warps) std::fill(std::begin(warp.arrived), std::end(warp.arrived), 0);
  state_.barriers_in_use = 0;
}

Block::Progress Block::progress() const {
  if (state_.fault.cuda_error) return Progress::kFaulted;
  return state_.live == 0 ? Progress::kFinished : Progress::kRunning;
}

Block::Progress Block::run(uint64_t max_warp_instructions) {
  auto run_warp = state_.kernel->instructions->run_warp();
  auto count = static_cast<uint32_t>(state_.warps.size());
  uint32_t idle = 0;     // warps in a row that could not run
  uint32_t polling = 0;  // turns in a row in which memory was polled
  waiting_ = false;
  while (max_warp_instructions > 0 && state_.running && idle < count && !waiting_ && !state_.fault.cuda_error) {
    uint32_t turn = next_of(state_.running, next_warp_);
    Warp& warp = state_.warps[turn];
    next_warp_ = turn + 1 == count ? 0 : turn + 1;
    uint64_t done = run_warp(warp, std::min(kTurn, max_warp_instructions));
    idle = done ? 0 : idle + 1;
    counters_.warp_instructions += done;
    max_warp_instructions -= std::min(max_warp_instructions, done);
    polling = warp.polls ? polling + 1 : 0;
    waiting_ = state_.running && polling >= kPollingTurns * static_cast<uint32_t>(std::popcount(state_.running));
    if (warp.parked_count) yield_if_polling(warp);
    warp.polls = 0;
  }
  take_counts();
  if ((idle == count || !state_.running) && progress() == Progress::kRunning) report_deadlock();
  return progress();
}

// What the warps have counted themselves since the last time.
void Block::take_counts() {
  for (Warp& warp : state_.warps) {
    counters_.warp_instructions -= warp.refunded;
    counters_.global_bytes += warp.global_bytes;
    counters_.host_bytes += warp.host_bytes;
    warp.refunded = warp.global_bytes = warp.host_bytes = 0;
  }
}

// Threads that wait for each other for ever would hang a device; here they are told what they wait at.
void Block::report_deadlock() {
  for (const Warp& warp : state_.warps)
    if (can_run(warp)) return;
  for (Warp& warp : state_.warps) {
    if (!warp.live) continue;
    const bool held = is_held(warp);
    const Op& op = warp.code[held ? warp.pc - 1 : warp.parked[0].pc];
    const uint32_t lanes = held ? warp.active : warp.parked[0].lanes;
    raise(warp, op, static_cast<uint32_t>(std::countr_zero(lanes)), kCudaLaunchFailure,
          "deadlock: every thread of the block waits at a barrier or .sync instruction that others never reach");
    return;
  }
}

}  // namespace heddle::software
