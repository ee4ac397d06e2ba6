#include "core/log_budget.h"

#include <algorithm>
#include <cctype>
#include <chrono>

namespace heddle {
namespace {

constexpr size_t kMostKinds = 256;
constexpr size_t kLongestKind = 40;
// One kind for all that come when there are too many: whoever makes up kinds shares the budget of one.
constexpr const char* kOthers = "others";

}  // namespace

std::string LogBudget::kind_of(std::string_view line) {
  std::string kind;
  for (const char character : line) {
    if (kind.size() == kLongestKind) break;
    if (!std::isdigit(static_cast<unsigned char>(character))) kind += character;
  }
  return kind;
}

double LogBudget::left(const Kind& kind, TimePoint now) const {
  const std::chrono::duration<double> passed = now - kind.since;
  return std::min(rates_.burst, kind.left + passed.count() * rates_.per_second);
}

// A kind that has all of its budget again is as one that was never seen.
void LogBudget::forget_rested(TimePoint now) {
  std::erase_if(kinds_, [&](const auto& each) { return left(each.second, now) >= rates_.burst; });
}

LogBudget::Verdict LogBudget::ask(std::string_view line, TimePoint now) {
  std::string name = kind_of(line);
  if (!kinds_.contains(name) && kinds_.size() >= kMostKinds) forget_rested(now);
  if (!kinds_.contains(name) && kinds_.size() >= kMostKinds) name = kOthers;
  const auto [found, is_new] = kinds_.try_emplace(std::move(name), Kind{rates_.burst, now, 0});
  Kind& kind = found->second;
  kind.left = left(kind, now);
  kind.since = now;
  if (kind.left < 1) {
    ++kind.left_out;
    return {};
  }
  kind.left -= 1;
  return {true, std::exchange(kind.left_out, 0)};
}

}  // namespace heddle
