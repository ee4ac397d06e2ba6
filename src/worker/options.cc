#include "worker/options.h"

#include <getopt.h>

#include <charconv>
#include <cstring>

namespace heddle::worker {
namespace {

const option kOptions[] = {{"socket", required_argument, nullptr, 's'},
                           {"daemon", required_argument, nullptr, 'd'},
                           {"reconnect-for", required_argument, nullptr, 'r'},
                           {"user", required_argument, nullptr, 'u'},
                           {"log-level", required_argument, nullptr, 'l'},
                           {"help", no_argument, nullptr, 'h'},
                           {}};

Result<int> parse_descriptor(const char* text) {
  int value = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0)
    return fail(ErrorCode::kInvalidArgument, "--socket '%s' is not a descriptor's number", text);
  return value;
}

Status take(Options& options, int name, const char* value) {
  if (name == 'd') options.daemon_path = value;
  if (name == 'u') options.user = value;
  if (name == 'l') options.log_level = value;
  if (name == 'h') options.help = true;
  if (name == 's') {
    const auto descriptor = parse_descriptor(value);
    if (!descriptor) return tl::unexpected(descriptor.error());
    options.socket = *descriptor;
  }
  if (name == 'r') {
    const auto duration = parse_duration(value);
    if (!duration) return tl::unexpected(duration.error());
    options.reconnect_for = *duration;
  }
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  ::optind = 0;  // so that it may be called again
  ::opterr = 0;
  for (int name; (name = ::getopt_long(argc, argv, ":", kOptions, nullptr)) != -1;) {
    if (name == '?' || name == ':')
      return fail(ErrorCode::kInvalidArgument, "'%s' %s: see heddle-worker --help", argv[::optind - 1],
                  name == '?' ? "is not an option" : "needs a value");
    HEDDLE_TRY(take(options, name, ::optarg));
  }
  if (::optind < argc) return fail(ErrorCode::kInvalidArgument, "'%s' is not an option", argv[::optind]);
  return options;
}

std::string help_text() {
  return R"(heddle-worker executes one program's GPU work on one device.

heddled starts workers and speaks to them; there is nothing to gain from starting one by hand. A worker waits warm,
with its device open, serves one session's task, and is never used again. Its end is an event, not an error: the
program's memory belongs to heddled.

  --socket FD           the connection to heddled (default 3)
  --daemon PATH         where to call when heddled was restarted (default: nowhere, end with it)
  --reconnect-for TIME  how long to call (default 10s)
  --user NAME           become this user first, or the uid of this number; only root can
  --log-level LEVEL     trace, debug, info, warn, error or off, to stderr (default info)
  --help                this text

Exit status: 0 when heddled said quit, 1 when the worker could not go on (the log says why), 2 for wrong arguments, 3
when the device took no new client.
)";
}

}  // namespace heddle::worker
