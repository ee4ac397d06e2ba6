#include "keeper/gpu_list.h"

#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "core/fd.h"
#include "device/cuda/allocator.h"

namespace heddle::keeper {
namespace {

// A process that builds a context when told to, says so, and keeps it until told to end.
class Companion {
 public:
  static Result<Companion> start(uint32_t ordinal) {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) return fail_errno(-1, "cannot make a pipe");
    Companion companion;
    companion.pid_ = ::fork();
    if (companion.pid_ == 0) {
      ::close(to[1]);
      ::close(from[0]);
      live(ordinal, to[0], from[1]);
    }
    ::close(to[0]);
    ::close(from[1]);
    companion.to_ = Fd(to[1]);
    companion.from_ = Fd(from[0]);
    if (companion.pid_ < 0) return fail_errno(-1, "cannot start a process");
    return companion;
  }
  Companion(Companion&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), to_(std::move(other.to_)), from_(std::move(other.from_)) {}
  Companion& operator=(Companion&&) = delete;
  ~Companion() {
    to_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  Status build_context() {
    char word = 'b';
    if (::write(to_.get(), &word, 1) != 1 || ::read(from_.get(), &word, 1) != 1 || word != 'y')
      return fail(ErrorCode::kSystem, "a second context could not be built");
    return {};
  }

 private:
  Companion() = default;
  [[noreturn]] static void live(uint32_t ordinal, int in, int out) {
    char word = 0;
    if (::read(in, &word, 1) == 1) {
      const auto context = cuda::Allocator::open(ordinal);
      word = context ? 'y' : 'n';
      if (::write(out, &word, 1) == 1) (void)!::read(in, &word, 1);  // until the other end is closed
    }
    ::_exit(0);
  }

  pid_t pid_ = -1;
  Fd to_, from_;
};

}  // namespace

Result<ContextCost> measure_context(uint32_t ordinal) {
  auto companion = Companion::start(ordinal);  // ahead of the driver, which does not survive a fork
  if (!companion) return tl::unexpected(companion.error());
  const auto own = cuda::Allocator::open(ordinal);
  if (!own) return tl::unexpected(own.error());
  const auto before = (*own)->usage();
  if (!before) return tl::unexpected(before.error());
  HEDDLE_TRY(companion->build_context());
  const auto after = (*own)->usage();
  if (!after) return tl::unexpected(after.error());
  const uint64_t context = before->free > after->free ? before->free.value - after->free.value : 0;
  return ContextCost{before->free, Bytes{round_up(context, 2 * kMiB)}};
}

std::string gpu_line(const cuda::Gpu& gpu, const ContextCost& cost, int driver) {
  const DeviceModel& model = gpu.model;
  std::string line = "uuid=" + gpu.uuid + "\tpci=" + gpu.pci + "\tname=" + model.name + "\tmodel=" + model.model;
  const auto add = [&line](const char* key, uint64_t value) {
    line += stringf("\t%s=%llu", key, static_cast<unsigned long long>(value));
  };
  add("memory", model.memory_bytes);
  add("free", cost.free.value);
  add("context", cost.context.value);
  add("virtual_memory", gpu.virtual_memory);
  add("sms", model.sms);
  add("max_threads_per_sm", model.max_threads_per_sm);
  add("max_blocks_per_sm", model.max_blocks_per_sm);
  add("registers_per_sm", model.registers_per_sm);
  add("shared_bytes_per_sm", model.shared_bytes_per_sm);
  add("shared_bytes_per_block", model.shared_bytes_per_block);
  add("shared_bytes_per_block_optin", model.shared_bytes_per_block_optin);
  add("shared_bytes_reserved_per_block", model.shared_bytes_reserved_per_block);
  add("max_threads_per_block", model.max_threads_per_block);
  add("warp_size", model.warp_size);
  add("registers_per_block", model.registers_per_block);
  add("capability_major", model.capability_major);
  add("capability_minor", model.capability_minor);
  add("clock_khz", model.clock_khz);
  add("memory_clock_khz", model.memory_clock_khz);
  add("memory_bus_bits", model.memory_bus_bits);
  add("l2_bytes", model.l2_bytes);
  add("copy_engines", model.copy_engines);
  add("pci_bus", model.pci_bus);
  add("driver", static_cast<uint64_t>(driver));
  return line;
}

}  // namespace heddle::keeper
