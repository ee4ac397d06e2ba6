// heddle-keeper: keeps one GPU's memory for heddled, or says what GPUs there are.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "keeper/confinement.h"
#include "keeper/gpu_list.h"
#include "keeper/serve.h"

namespace {

using namespace heddle;

int complain(const Error& error) {
  std::fprintf(stderr, "heddle-keeper: %s\n", error.text.c_str());
  return 1;
}

// Never an MPS client: what MPS loses in a fault must not be what keeps the memory.
void leave_mps() {
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
}

int print_names() {
  const auto driver = cuda::Driver::load();
  if (!driver) return complain(driver.error());
  const auto gpus = cuda::list_gpus(*driver);
  if (!gpus) return complain(gpus.error());
  for (const cuda::Gpu& gpu : *gpus) std::printf("%s\n", gpu.uuid.c_str());
  return 0;
}

// One process for each GPU: a process that has used the driver cannot fork one that will.
int list(const char* program) {
  std::FILE* names = ::popen(("'" + std::string(program) + "' --names").c_str(), "r");
  if (!names) return complain({ErrorCode::kSystem, "cannot start itself"});
  int status = 0, ordinal = 0;
  char uuid[128];
  while (std::fgets(uuid, sizeof uuid, names)) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(program, program, "--measure", std::to_string(ordinal).c_str(), nullptr);
      ::_exit(1);
    }
    int ended = 1;
    ::waitpid(child, &ended, 0);
    status |= ended;
    ++ordinal;
  }
  return ::pclose(names) == 0 && status == 0 && ordinal > 0 ? 0 : 1;
}

// The companion is forked before the driver is loaded here; the GPU's own data is read afterwards.
int measure(uint32_t ordinal) {
  const auto cost = keeper::measure_context(ordinal);
  if (!cost) return complain(cost.error());
  const auto driver = cuda::Driver::load();
  if (!driver) return complain(driver.error());
  const auto gpus = cuda::list_gpus(*driver);
  if (!gpus) return complain(gpus.error());
  int version = 0;
  driver->cuDriverGetVersion(&version);
  std::printf("%s\n", keeper::gpu_line((*gpus)[ordinal], *cost, version).c_str());
  return 0;
}

// A restarted heddled repeats the copies that were under way: this process must not go on with its own, behind the
// back of a program that was told that all is copied. Where heddled has ended already, the socket says so.
void end_with_heddled() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int keep(int socket, uint32_t ordinal) {
  if (const Status dropped = keeper::drop_privileges(); !dropped) return complain(dropped.error());
  end_with_heddled();
  const auto allocator = cuda::Allocator::open(ordinal);
  if (!allocator) return complain(allocator.error());
  const Status served = keeper::serve(protocol::Socket(Fd(socket)), **allocator);
  return served ? 0 : complain(served.error());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"heddle-keeper creates and keeps the device memory of one GPU. heddled starts it."};
  int socket = -1, measured = -1;
  uint32_t ordinal = 0;
  bool listing = false, naming = false;
  app.add_option("--socket", socket, "by heddled: descriptor of its socket");
  app.add_option("--device", ordinal, "which GPU, of those that this process sees")->capture_default_str();
  app.add_flag("--list", listing, "what GPUs there are, one line each, and what a context takes of each");
  app.add_flag("--names", naming, "their UUIDs, one a line");
  app.add_option("--measure", measured, "the line of one GPU")->group("");
  CLI11_PARSE(app, argc, argv);
  leave_mps();
  ::signal(SIGPIPE, SIG_IGN);
  if (naming) return print_names();
  if (listing) return list(argv[0]);
  if (measured >= 0) return measure(static_cast<uint32_t>(measured));
  if (socket < 0) return complain({ErrorCode::kInvalidArgument, "nothing to do: see --help"});
  return keep(socket, ordinal);
}
