// What a grant of device memory costs at a GPU's keeper, as heddled sees it: from the request to the descriptor. Made
// anew, cleared while heddled waits, and from what came back and is cleared already. Medians.
//
//   keeper_grants [SIZE...]     default: 2M 64M 1G. Each takes nine times its size of the GPU's memory.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "core/clock.h"
#include "daemon/testing/keepers_loop.h"

namespace heddle {
namespace {

constexpr DeviceId kDevice{0};
constexpr size_t kRounds = 9;

double median_us(std::vector<Duration> times) {
  std::sort(times.begin(), times.end());
  return std::chrono::duration<double, std::micro>(times[times.size() / 2]).count();
}

class Grants {
 public:
  explicit Grants(std::string uuid) : uuid_(std::move(uuid)) {}

  // One grant that does not count: the keeper has built its context behind it.
  Status warm_up() {
    HEDDLE_TRY(grant(Bytes{2 * kMiB}));
    held_.clear();
    return {};
  }

  Status measure(Bytes size) {
    std::vector<Duration> anew, waiting, ready;
    for (size_t i = 0; i < kRounds; ++i) HEDDLE_TRY(timed_grant(size, anew));
    for (size_t i = 0; i < kRounds; ++i) {
      HEDDLE_TRY(give_back(size, 1));
      HEDDLE_TRY(timed_grant(size, waiting));
    }
    HEDDLE_TRY(give_back(size, held_.size()));
    HEDDLE_TRY(await_clearing());
    for (size_t i = 0; i < kRounds; ++i) HEDDLE_TRY(timed_grant(size, ready));
    held_.clear();
    std::printf(
        "grant of %s: %.1f us made anew, %.1f us with clearing what came back, %.1f us when that is cleared: "
        "%.1f times as fast as anew\n",
        to_string(size).c_str(), median_us(anew), median_us(waiting), median_us(ready),
        median_us(anew) / median_us(ready));
    return {};
  }

 private:
  Status grant(Bytes size) {
    auto made = keepers_.allocate(kDevice, uuid_, size);
    if (!made) return tl::unexpected(std::move(made).error());
    held_.push_back(std::move(*made));
    return {};
  }
  Status timed_grant(Bytes size, std::vector<Duration>& times) {
    const TimePoint begin = clock_.now();
    HEDDLE_TRY(grant(size));
    times.push_back(clock_.now() - begin);
    return {};
  }
  Status give_back(Bytes size, size_t pieces) {
    for (; pieces > 0; --pieces) {
      keepers_.keepers.take_back(kDevice, std::move(held_.back()), size);
      held_.pop_back();
    }
    return keepers_.loop->run_once(Duration{});
  }
  // Between two of its words a keeper has nothing else to do.
  Status await_clearing() {
    return keepers_.run_until([this, until = keepers_.reports + 2] { return keepers_.reports >= until; });
  }

  const std::string uuid_;
  MonotonicClock clock_;
  daemon::testing::KeepersLoop keepers_{HEDDLE_KEEPER_PROGRAM};
  std::vector<Fd> held_;
};

std::string first_gpu() {
  std::FILE* names = ::popen("'" HEDDLE_KEEPER_PROGRAM "' --names", "r");
  char line[128] = {};
  if (!names || !std::fgets(line, sizeof line, names)) line[0] = 0;
  if (names) ::pclose(names);
  line[std::strcspn(line, "\n")] = 0;
  return line;
}

Status run(std::vector<std::string> sizes) {
  const std::string uuid = first_gpu();
  if (uuid.empty()) return fail(ErrorCode::kNotFound, "there is no GPU");
  if (sizes.empty()) sizes = {"2M", "64M", "1G"};
  Grants grants(uuid);
  HEDDLE_TRY(grants.warm_up());
  for (const std::string& text : sizes) {
    const auto size = parse_bytes(text);
    if (!size) return tl::unexpected(size.error());
    HEDDLE_TRY(grants.measure(*size));
  }
  return {};
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const heddle::Status done = heddle::run({argv + 1, argv + argc});
  if (!done) std::fprintf(stderr, "keeper_grants: %s\n", done.error().text.c_str());
  return done ? 0 : 1;
}
