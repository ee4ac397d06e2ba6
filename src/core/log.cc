#include "core/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdio>

#include "core/log_descriptor.h"
#include "core/log_sink.h"

namespace heddle {
namespace {

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%f%z %l %n[%P] %v";

void log_into(const spdlog::sink_ptr& sink, spdlog::level::level_enum level) {
  spdlog::drop_all();
  auto root = std::make_shared<spdlog::logger>("heddle", std::make_shared<GuardedSink>(sink, LogBudget::Rates{}));
  root->set_pattern(kPattern);
  root->set_level(level);
  root->flush_on(spdlog::level::info);
  spdlog::set_default_logger(root);
}

}  // namespace

Status open_log(const std::string& path, const std::string& level, Bytes most) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off")
    return fail(ErrorCode::kInvalidArgument, "log level '%s' is none of trace, debug, info, warn, error, off",
                level.c_str());
  try {
    spdlog::sink_ptr sink;
    if (path.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, most.value, 1);
    }
    log_into(sink, parsed);
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::kSystem, "cannot open log '%s': %s", path.c_str(), error.what());
  }
  return {};
}

Result<int> move_log(const Fd& fd) {
  auto copy = fd.duplicate();
  if (!copy) return tl::unexpected(std::move(copy).error());
  std::FILE* const file = ::fdopen(copy->get(), "a");
  if (!file) return fail_errno(-1, "cannot open the log's descriptor");
  using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;
  log_into(std::make_shared<Sink>(file), spdlog::default_logger()->level());
  return copy->release();
}

std::shared_ptr<spdlog::logger> logger(const std::string& room) {
  if (auto known = spdlog::get(room)) return known;
  return spdlog::default_logger()->clone(room);
}

}  // namespace heddle
