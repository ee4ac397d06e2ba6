// Feeds bytes to the parser, compiles every kernel that comes out and runs it for a while: whatever a tenant's module
// holds must end in an error or a fault, never in a crash.

#include <sys/mman.h>

#include <array>
#include <cstdint>

#include "device/software/ptx/parser.h"
#include "device/software/simt/block.h"
#include "device/software/simt/check/access_check.h"
#include "device/software/simt/check/checked_kernel.h"

namespace {

using namespace heddle;
using namespace heddle::software;

constexpr uint64_t kInstructions = 2000;
constexpr uint64_t kMemory = MemoryMap::kGranule;

struct Device {
  uint64_t base = 0;
  MemoryMap map;
};

Device& device() {
  static Device device = [] {
    void* at = mmap(nullptr, 2 * kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Device made;
    made.base = round_up(reinterpret_cast<uint64_t>(at), kMemory);
    made.map = std::move(*MemoryMap::create({{made.base, kMemory}}));
    if (!made.map.add(made.base, kMemory)) abort();
    return made;
  }();
  return device;
}

void run(const CompiledKernel& kernel) {
  if (kernel.parameter_bytes > 4096 || kernel.local_bytes > 65536) return;  // keeps the fuzzer fast
  if (kernel.functions[0].register_bytes > (1u << 20)) return;
  std::array<uint64_t, 512> parameters;
  parameters.fill(device().base);
  LaunchShape shape;
  shape.block = {40, 1, 1};
  shape.dynamic_shared = 128;
  shape.parameters = std::as_bytes(std::span(parameters));
  auto written = WrittenMemory::create(device().base, kMemory);
  if (!written) abort();
  Checks checks([](std::string_view) {}, std::move(*written));
  shape.checks = &checks;
  auto block = Block::create(kernel, shape, device().map, [](std::string_view) {});
  if (!block) return;
  (*block)->start({}, 0);
  (*block)->run(kInstructions);
  (*block)->start({}, 0);  // also after a block that was left half-way
  (*block)->run(kInstructions / 10);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = ptx::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module) return 0;
  auto resolve = [](std::string_view) -> std::optional<uint64_t> { return device().base; };
  for (const ptx::Function& function : module->functions) {
    if (!function.entry) continue;
    if (auto kernel = compile(*module, function.name, resolve)) {
      run(**kernel);
      run(*with_checks(**kernel));
    }
  }
  return 0;
}
