#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace heddle::software {

// What the checks of a context's kernels have found: each pair of places in a kernel's code is told once, and not more
// than kMostFindings in all. Thread-safe: blocks run on several threads.
class CheckLog {
 public:
  static constexpr size_t kMostFindings = 100;
  enum class Kind { kRace, kUninitialised, kUndeclaredRead, kUndeclaredWrite };

  // `tell` is called with one line, without its end; never by two threads at once.
  using Tell = std::function<void(std::string_view)>;
  explicit CheckLog(Tell tell) : tell_(std::move(tell)) {}

  // Tells what `text()` says unless these places (of the PTX; 0 where there is no other) were told of before.
  template <class Text>
  void find(Kind kind, std::string_view kernel, uint32_t line, uint32_t other_line, Text text) {
    const std::lock_guard lock(mutex_);
    if (is_new(kind, kernel, line, other_line)) tell_(text());
  }

 private:
  bool is_new(Kind kind, std::string_view kernel, uint32_t line, uint32_t other_line);

  const Tell tell_;
  std::mutex mutex_;
  std::set<std::tuple<Kind, std::string, uint32_t, uint32_t>> known_;
};

}  // namespace heddle::software
