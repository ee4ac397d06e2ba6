// What keeping epochs costs a launch in its worker's issuer (src/worker/epoch.h): finding what it touches and whether
// that must be saved, where all work is protected, of segments and of buffers that share them; telling that it is
// short, where long work alone is.

#include <benchmark/benchmark.h>

#include <cstring>

#include "core/fd.h"
#include "worker/epoch_memory.h"
#include "worker/long_work.h"

namespace heddle::worker {
namespace {

constexpr uint64_t kSegments = 32, kBytes = 2 * kMiB, kBase = 0x20000000000;

// Where buffers lie: 64 KiB each, with gaps.
protocol::BufferTable make_table(const Mapping& memory) {
  protocol::BufferTable table({static_cast<char*>(memory.data()), memory.size()}, kBase);
  for (uint64_t segment = kBase; segment < kBase + kSegments * kBytes; segment += kBytes) {
    table.share({segment, segment + kBytes});
    for (uint64_t at = 0; at + 65 * kKiB < kBytes; at += 65 * kKiB) table.add(segment + at, 64 * kKiB);
  }
  return table;
}

protocol::BufferTable known_buffers() {
  constexpr Bytes kSize{protocol::BufferTable::kBytes};
  static const Mapping memory = std::move(*map_shared(*create_memfd("table", kSize), kSize));
  static const protocol::BufferTable table = make_table(memory);
  return table;
}

// c[i] = a[i] + b[i], all of them in other segments; or c[i] += b[i].
struct Launch {
  Launch(bool in_place, bool by_buffer) : memory(by_buffer ? known_buffers() : protocol::BufferTable()) {
    for (uint64_t i = 0; i < kSegments; ++i) (void)memory.segment_mapped(i, kBase + i * kBytes, kBytes, false);
    effects.name = "add";
    effects.read = in_place ? 6 : 3;
    effects.written = 4;
    for (uint32_t i = 0; i < 4; ++i) parameters.push_back({8 * i, 8});
    use.effects = &effects;
    use.parameters = parameters;
    const uint64_t words[4] = {kBase, kBase + 8 * kBytes + 65 * kKiB, kBase + 16 * kBytes + 650 * kKiB, 1000};
    std::memcpy(block, words, sizeof block);
  }
  EpochMemory memory;
  image::KernelEffects effects;
  std::vector<image::Parameter> parameters;
  KernelUse use;
  std::byte block[32];
};

// Behind the first of an epoch, which may save. Arguments: whether in place; whether buffers are known.
void protected_launch(benchmark::State& state) {
  Launch launch(state.range(0) != 0, state.range(1) != 0);
  device::Tag tag = 0;
  for (auto _ : state) {
    const RecordEffects effects = effects_of_launch(launch.use, launch.block, launch.memory.regions());
    const Precautions needed = launch.memory.before(effects, 1);
    launch.memory.handed_over(effects, needed, 1, ++tag);
    benchmark::DoNotOptimize(needed);
  }
}
BENCHMARK(protected_launch)->ArgsProduct({{0, 1}, {0, 1}});

// A program that waits for each launch: an epoch each.
void launch_and_commit(benchmark::State& state) {
  Launch launch(state.range(0) != 0, state.range(1) != 0);
  device::Tag tag = 0;
  for (auto _ : state) {
    launch.memory.committed();
    const RecordEffects effects = effects_of_launch(launch.use, launch.block, launch.memory.regions());
    const Precautions needed = launch.memory.before(effects, 1);
    launch.memory.handed_over(effects, needed, 1, ++tag);
    benchmark::DoNotOptimize(needed);
  }
}
BENCHMARK(launch_and_commit)->ArgsProduct({{0, 1}, {0, 1}});

// Of a kind that takes so many microseconds.
void short_launch(benchmark::State& state) {
  LongWork work(std::chrono::milliseconds(5));
  protocol::Record record{};
  record.header.type = protocol::RecordType::kLaunch;
  record.bytes.resize(sizeof(protocol::LaunchRecord));
  for (auto _ : state) {
    ++record.header.sequence;
    benchmark::DoNotOptimize(work.is_long(record));
    const WorkKind timed = work.timed(record.header.sequence);
    const LongWork::Took took{timed, std::chrono::microseconds(state.range(0))};
    if (timed.what != 0) work.took(std::span(&took, 1));
  }
}
BENCHMARK(short_launch)->Arg(5)->Arg(500);

}  // namespace
}  // namespace heddle::worker

BENCHMARK_MAIN();
