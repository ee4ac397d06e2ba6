#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/result.h"
#include "core/units.h"

namespace heddle {

// What lines of an input log say, as a number, for whoever reads it later: one more with each change to policy/record/.
inline constexpr uint32_t kInputLogFormat = 6;
// The line with which whoever writes an input log begins: "0 format N".
std::string input_log_format();

// Takes the lines of an input log: all that a scheduler and dispatch policies were told, and what they decided
// (policy/record/). Who is told the same decides the same, so that a decision can be looked into later, elsewhere
// (simulator/replay.h).
class InputLog {
 public:
  virtual ~InputLog() = default;
  // `line` has no end of its own.
  virtual void write(std::string_view line) = 0;
  // What was written so far is to outlast the process. Called before each decision and behind its answers.
  virtual void flush() {}
};

// An input log in a file that only its owner may read, and that nobody else writes to. What it holds already stays, but
// for a last line that was not finished. Between two flushes a reader finds all lines of the first or of both. Each
// that opens it writes its format first. Where the next lines would take the file beyond a limit it ends with "0 full
// LIMIT", and who opens it again with no larger a limit writes nothing.
class InputLogFile : public InputLog {
 public:
  // kInvalidArgument for what is no ordinary file of the caller's, and while another process writes to it.
  // `most`: the file's size in bytes; 0: no limit. `ended` is called once, when nothing more goes there, maybe at once:
  // kLimitExceeded for a file that is full, else it cannot be written to.
  using Ended = std::function<void(const Error&)>;
  static Result<std::unique_ptr<InputLogFile>> open(const std::string& path, Bytes most, Ended ended);
  ~InputLogFile() override { flush(); }

  void write(std::string_view line) override;
  void flush() override;

 private:
  InputLogFile(std::string path, Fd file, off_t size, Bytes most, Ended ended)
      : path_(std::move(path)), file_(std::move(file)), size_(size), most_(most), ended_(std::move(ended)) {}

  bool has_room_for(size_t bytes) const;
  void write_lines();
  void end(const Error& error);
  void end_full();
  Error full() const;

  std::string path_;
  Fd file_;
  off_t size_;  // of what is whole in the file
  Bytes most_;
  Ended ended_;
  std::string lines_;  // not yet in the file
};

}  // namespace heddle
