// heddle-worker: builds the parts in view and serves heddled until it says quit.
//
// Threads: this one (heddled's socket), the issuer and the completions thread of session.h, the one that carries output
// (output.h), and the device's own.

#include <cstdio>

#include "core/log.h"
#include "image/describe.h"
#include "image/effects.h"
#include "image/fatbin.h"
#include "worker/confinement.h"
#include "worker/link.h"
#include "worker/options.h"
#include "worker/output.h"
#include "worker/system_calls.h"

namespace heddle::worker {
namespace {

Result<std::vector<image::Image>> images_of(std::span<const std::byte> fatbin) {
  const auto fatbins = image::split_fatbins(fatbin);  // several where the program was compiled separately
  if (!fatbins) return tl::unexpected(fatbins.error());
  return image::read_fatbins(*fatbins);
}

Result<image::ModuleInfo> describe(std::span<const std::byte> fatbin, uint32_t arch) {
  const auto images = images_of(fatbin);
  if (!images) return tl::unexpected(images.error());
  return image::describe(*images, arch);
}

Result<std::vector<image::KernelEffects>> effects(std::span<const std::byte> fatbin, uint32_t arch) {
  const auto images = images_of(fatbin);
  if (!images) return tl::unexpected(images.error());
  return image::effects(*images, arch);
}

Result<std::unique_ptr<device::Context>> open_context(const device::ContextOptions& options, const Fd& board) {
  if (options.model.kind == DeviceKind::kSoftware) return device::open_software_context(options, board);
  return device::open_cuda_context(options);
}

Status serve(const Options& options, const Output& output) {
  HEDDLE_TRY(drop_privileges(options.user));
  auto outbox = Outbox::create();
  if (!outbox) return tl::unexpected(std::move(outbox).error());
  Worker worker(**outbox, open_context, {describe, effects});
  const OutputDrain drain(output.pipe(), worker.printer());
  Link link(protocol::Socket(Fd(options.socket)), {options.daemon_path, options.reconnect_for}, **outbox, worker);
  HEDDLE_TRY(link.run_until_warm());
  HEDDLE_TRY(restrict_system_calls(worker.device_kind()));
  return link.run();
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "heddle-worker: %s\n", options.error().text.c_str());
    return 2;
  }
  if (options->help) {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  if (const auto opened = open_log("", options->log_level); !opened) {
    std::fprintf(stderr, "heddle-worker: %s\n", opened.error().text.c_str());
    return 2;
  }
  const auto output = Output::capture();
  if (!output) {
    logger("worker")->error("{}", output.error().text);
    return 1;
  }
  const auto served = serve(*options, **output);
  if (served) return 0;
  logger("worker")->error("{}", served.error().text);
  // heddled asks MPS and drivers again that refused.
  return served.error().code == ErrorCode::kDeviceFault ? protocol::kDeviceRefuses : 1;
}

}  // namespace
}  // namespace heddle::worker

int main(int argc, char** argv) {
  return heddle::worker::run(argc, argv);
}
