#include "simulator/replay_answers.h"

namespace heddle::simulator {
namespace {

constexpr size_t kKeptDifferences = 10;

}  // namespace

void ReplayAnswers::logged(const std::string& answer, uint64_t line) {
  ++outcome_.answers;
  answered_ = true;
  const std::string replayed = due_.empty() ? "" : due_.front();
  if (!due_.empty()) due_.pop_front();
  if (replayed != answer) differ(answer, replayed, line);
}

void ReplayAnswers::end(uint64_t line) {
  while (!due_.empty()) {
    differ("", due_.front(), line);
    due_.pop_front();
  }
  answered_ = false;
}

void ReplayAnswers::cut_off() {
  if (answered_) return;
  outcome_.cut |= !due_.empty();
  due_.clear();
}

void ReplayAnswers::differ(std::string logged, std::string replayed, uint64_t line) {
  ++outcome_.different;
  if (outcome_.differences.size() < kKeptDifferences)
    outcome_.differences.push_back({line, std::move(logged), std::move(replayed)});
}

}  // namespace heddle::simulator
