#include <cstdlib>

#include "client/link/session.h"
#include "protocol/socket_path.h"

namespace heddle::client {
Result<SessionSettings> SessionSettings::from_environment() {
  SessionSettings settings;
  settings.socket_path = protocol::control_socket_path();
  if (const char* job = std::getenv("HEDDLE_JOB"); job && *job) {
    char* end = nullptr;
    settings.job = std::strtoull(job, &end, 10);
    if (*end == ':') settings.job_secret = std::strtoull(end + 1, &end, 10);
    if (*end != '\0') return fail(ErrorCode::kInvalidArgument, "HEDDLE_JOB is not id:secret; `heddle run` sets it");
  }

  const char* lost_after = std::getenv("HEDDLE_LOST_AFTER");
  auto parsed = parse_duration(lost_after && *lost_after ? lost_after : "30s");
  if (!parsed) return fail(ErrorCode::kInvalidArgument, "HEDDLE_LOST_AFTER: %s", parsed.error().text.c_str());
  settings.lost_after = *parsed;
  if (const char* check = std::getenv("HEDDLE_CHECK"); check && *check) {
    settings.check = std::string_view(check) == "1";
    if (!settings.check && std::string_view(check) != "0")
      return fail(ErrorCode::kInvalidArgument, "HEDDLE_CHECK is '%.40s': 1 checks kernels, 0 or nothing does not",
                  check);
  }
  if (const char* managed = std::getenv("HEDDLE_MANAGED"); managed && *managed) {
    const std::string_view place(managed);
    if (place != "host" && place != "device")
      return fail(ErrorCode::kInvalidArgument, "HEDDLE_MANAGED is '%.40s': managed memory lives on the host or device",
                  managed);
    settings.managed = place == "host" ? Managed::kHost : Managed::kDevice;
  }
  return settings;
}

}  // namespace heddle::client
