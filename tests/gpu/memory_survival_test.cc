// What becomes of device memory when whoever uses it ends: real keepers, MPS and processes, the device interface as
// workers use it. Each worker is a process of its own: this program again, with a role.
//
//   memory_survival_test --worker ROLE BASE     memory at descriptor 3
//     run     writes the pattern, says so, and then runs a kernel without end
//     check   says whether the pattern is there
//     fault   writes where nothing is mapped
// BASE is the window's; 0: the first that can be had. `--user NAME`: workers run as that user.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/log.h"
#include "daemon/mps.h"
#include "daemon/mps_commands.h"
#include "daemon/testing/keepers_loop.h"
#include "device/device.h"
#include "ptx_fatbin.h"

namespace heddle {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBases[] = {0x20000000000, 0x200000000000, 0x7e8000000000};  // heddled's
constexpr Bytes kWindow{1 * kGiB}, kSize{64 * kMiB};
constexpr uint64_t kFlag = 32 * kMiB;  // where the endless kernel looks; always zero
constexpr Duration kPatience = std::chrono::seconds(60);
constexpr int kAttempts = 40;  // of a worker after a shared fault: MPS takes a moment (HARDWARE.md, p6 retry)
std::string worker_user;

// ---- A worker ----

std::vector<uint32_t> pattern() {
  std::vector<uint32_t> words(kFlag / sizeof(uint32_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u + 17);
  return words;
}

struct Work {
  std::unique_ptr<device::Context> context;
  Mapping window;
  uint64_t base = 0;
  device::Tag last = 0;

  // CUDA's code.
  uint32_t wait(device::Tag tag) const {
    device::Completion done;
    for (;;) {
      if (context->completions(std::span(&done, 1), Duration(-1)) && done.tag == tag) return done.cuda_error;
    }
  }
  Status launch(std::string_view name, uint64_t argument) {
    static const std::string kernels = conformance::kernels_from_ptx();
    const auto module = context->load(std::as_bytes(std::span(kernels)));
    if (!module) return tl::unexpected(module.error());
    const auto kernel = context->kernel(**module, name);
    if (!kernel) return tl::unexpected(kernel.error());
    device::LaunchConfig config;
    config.parameters = std::as_bytes(std::span(&argument, 1));
    return context->launch(0, **kernel, config, ++last);
  }
  Status copy(device::CopyDirection direction, uint64_t to, uint64_t from) {
    device::CopyShape shape;
    shape.to.address = to;
    shape.from.address = from;
    shape.width = kFlag;
    HEDDLE_TRY(context->copy(0, direction, shape, ++last));
    if (const uint32_t error = wait(last)) return fail(ErrorCode::kDeviceFault, "a copy: CUDA error %u", error);
    return {};
  }
};

Result<Work> open_work(uint64_t base) {
  Work work;
  work.base = base;
  auto reserved = reserve_addresses(base, kWindow);
  if (!reserved) return tl::unexpected(reserved.error());
  work.window = std::move(*reserved);
  device::ContextOptions options;
  options.window_base = base;
  options.window_bytes = kWindow.value;
  auto context = device::open_cuda_context(options);
  if (!context) return tl::unexpected(context.error());
  work.context = std::move(*context);
  HEDDLE_TRY(work.context->map(base, kSize, Fd(::dup(3)), false));
  return work;
}

Result<Work> open_anywhere() {
  Result<Work> work = fail(ErrorCode::kLimitExceeded, "no window");
  for (const uint64_t base : kBases) {
    if ((work = open_work(base))) break;
  }
  return work;
}

uint64_t address_of(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

Status act(const std::string& role, uint64_t base) {
  auto work = base ? open_work(base) : open_anywhere();
  if (!work) return tl::unexpected(work.error());
  if (role == "check") {
    std::vector<uint32_t> found(kFlag / sizeof(uint32_t));
    HEDDLE_TRY(work->copy(device::CopyDirection::kToHost, address_of(found.data()), work->base));
    std::printf("%s\n", found == pattern() ? "intact" : "changed");
    return {};
  }
  if (role == "fault") {
    HEDDLE_TRY(work->launch("write_to", work->base + kSize.value));
    std::printf("faulted with %u\n", work->wait(work->last));
    return {};
  }
  HEDDLE_TRY(work->copy(device::CopyDirection::kToDevice, work->base, address_of(pattern().data())));
  HEDDLE_TRY(work->launch("wait_for_flag", work->base + kFlag));
  std::printf("running at %llu\n", static_cast<unsigned long long>(work->base));
  std::fflush(stdout);
  std::printf("ended with %u\n", work->wait(work->last));
  return {};
}

int be_worker(const std::string& role, uint64_t base, const char* user) {
  const passwd* entry = user ? ::getpwnam(user) : nullptr;
  if (user &&
      (!entry || ::setgroups(0, nullptr) != 0 || ::setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) != 0 ||
       ::setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0))
    return std::printf("cannot become %s\n", user), 1;
  const Status done = act(role, base);
  if (!done) std::printf("failed: %s\n", done.error().text.c_str());
  std::fflush(stdout);
  ::_exit(done ? 0 : 1);  // a context with a kernel without end is left to the process's end
}

// ---- The test ----

std::string first_gpu() {
  std::FILE* names = ::popen("'" HEDDLE_KEEPER_PROGRAM "' --names 2>/dev/null", "r");
  char line[128] = {};
  if (!names || !std::fgets(line, sizeof line, names)) line[0] = 0;
  if (names) ::pclose(names);
  line[std::strcspn(line, "\n")] = 0;
  return line;
}

class Worker {
 public:
  Worker(const std::string& role, uint64_t base, const Fd& memory, std::vector<std::string> environment) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    output_ = Fd(ends[0]);
    const Fd other(ends[1]);
    daemon::SpawnOptions options;
    options.program = "/proc/self/exe";
    options.arguments = {"--worker", role, std::to_string(base)};
    if (!worker_user.empty()) options.arguments.push_back(worker_user);
    options.descriptors = {memory.get()};
    options.output = other.get();
    options.apart = true;
    options.environment = std::move(environment);
    if (const char* kernels = std::getenv("HEDDLE_CONFORMANCE_PTX"))
      options.environment.push_back(std::string("HEDDLE_CONFORMANCE_PTX=") + kernels);
    if (auto child = daemon::spawn(options)) child_ = std::move(*child);
  }
  ~Worker() { kill(); }
  pid_t pid() const { return child_.pid; }
  void kill() const {
    if (!child_.pidfd) return;
    daemon::kill_process(child_.pidfd, SIGKILL);
    ::waitpid(child_.pid, nullptr, 0);
  }
  // What it says next; empty at its end.
  std::string line() const {
    std::string text;
    pollfd ready{output_.get(), POLLIN, 0};
    for (char c; ::poll(&ready, 1, static_cast<int>(kPatience / std::chrono::milliseconds(1))) == 1;) {
      if (::read(output_.get(), &c, 1) != 1 || c == '\n') break;
      text += c;
    }
    return text;
  }

 private:
  daemon::Child child_;
  Fd output_;
};

struct MemorySurvival : testing::Test {
  void SetUp() override {
#ifdef HEDDLE_TEST_DRIVER
    // Where there is no GPU: the driver for tests. It has no MPS.
    if (first_gpu().empty()) ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
#endif
    uuid = first_gpu();
    ASSERT_FALSE(uuid.empty());
    char name[] = "/tmp/heddle-survival-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    directory = name;
    ::chmod(name, 0755);
    memory = make_memory();
    mps = std::make_unique<daemon::Mps>(daemon::Mps::Options{daemon::Mps::find_control(), directory, -1});
  }
  void TearDown() override {
    if (mps) mps->end();
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
  }
  Fd make_memory() {
    auto made = keepers.allocate(kDevice, uuid, kSize);
    EXPECT_TRUE(made) << made.error().text;
    return made ? std::move(*made) : Fd();
  }
  bool start_mps() {
    if (!mps->installed() || std::getenv("HEDDLE_CUDA_LIBRARY")) return false;
    const auto started = mps->start(kDevice, uuid);
    EXPECT_TRUE(started) << started.error().text;
    return static_cast<bool>(started);
  }
  Worker worker(const std::string& role, uint64_t base, const Fd& of) {
    auto environment = daemon::gpu_environment(uuid);
    for (std::string& each : mps->environment(kDevice)) environment.push_back(std::move(each));
    return {role, base, of, std::move(environment)};
  }
  void take_off(const Worker& runner) {
    daemon::MpsCommands commands(*keepers.loop, keepers.clock, *mps, logger("test"));
    bool done = false;
    const auto answered = [&](bool in_time) {
      EXPECT_TRUE(in_time);
      done = true;
    };
    ASSERT_TRUE(commands.terminate(kDevice, runner.pid(), std::chrono::seconds(5), answered));
    EXPECT_TRUE(keepers.run_until([&] { return done; }));
  }
  // Where its memory is; 0 where it does not come so far.
  static uint64_t running(const Worker& runner) {
    const std::string said = runner.line();
    EXPECT_THAT(said, HasSubstr("running at "));
    return std::strtoull(said.c_str() + std::min(said.size(), std::strlen("running at ")), nullptr, 10);
  }
  // By another worker, at the same address.
  std::string found(uint64_t base) {
    std::string said;
    for (int i = 0; i < kAttempts; ++i) {
      said = worker("check", base, memory).line();
      if (said == "intact" || said == "changed") break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return said;
  }

  static constexpr DeviceId kDevice{0};
  std::string uuid, directory;
  daemon::testing::KeepersLoop keepers{HEDDLE_KEEPER_PROGRAM};
  std::unique_ptr<daemon::Mps> mps;
  Fd memory;
};

TEST_F(MemorySurvival, WorkerKilledInMidKernel) {
  const Worker runner = worker("run", 0, memory);
  const uint64_t base = running(runner);
  runner.kill();
  EXPECT_EQ(found(base), "intact");
}

TEST_F(MemorySurvival, KeeperAndWorkerKilled) {
  const Worker runner = worker("run", 0, memory);
  const uint64_t base = running(runner);
  ::kill(keepers.keepers.process(kDevice), SIGKILL);
  runner.kill();
  EXPECT_EQ(found(base), "intact");
  EXPECT_TRUE(make_memory()) << "the keeper's successor serves";
}

TEST_F(MemorySurvival, WorkerTerminatedThroughMpsInMidKernel) {
  if (!start_mps()) GTEST_SKIP() << "no MPS on this machine";
  const Fd own = make_memory();
  const Worker runner = worker("run", 0, memory), neighbour = worker("run", 0, own);
  const uint64_t base = running(runner);
  running(neighbour);
  take_off(runner);
  EXPECT_THAT(runner.line(), HasSubstr("ended with"));
  EXPECT_EQ(found(base), "intact");
  // Taking one off leaves the others alone.
  take_off(neighbour);
  EXPECT_EQ(neighbour.line(), "ended with 810");
}

TEST_F(MemorySurvival, NeighbourFaultsUnderMpsAndTheKeeperIsKilled) {
  if (!start_mps()) GTEST_SKIP() << "no MPS on this machine";
  const Fd other = make_memory();
  const Worker runner = worker("run", 0, memory);
  const uint64_t base = running(runner);
  const Worker faulty = worker("fault", 0, other);
  EXPECT_THAT(faulty.line(), HasSubstr("faulted with 700"));
  EXPECT_THAT(runner.line(), HasSubstr("ended with 700")) << "a fault is every client's under MPS";
  ::kill(keepers.keepers.process(kDevice), SIGKILL);
  runner.kill();
  faulty.kill();
  EXPECT_EQ(found(base), "intact");
  EXPECT_TRUE(make_memory()) << "the keeper's successor serves";
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc >= 4 && std::string(argv[1]) == "--worker")
    return heddle::be_worker(argv[2], std::strtoull(argv[3], nullptr, 10), argc > 4 ? argv[4] : nullptr);
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--user") heddle::worker_user = argv[2];
  return RUN_ALL_TESTS();
}
