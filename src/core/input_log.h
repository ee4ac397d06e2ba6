#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/result.h"

namespace heddle {

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
// for a last line that was not finished. Between two flushes a reader finds all lines of the first or of both.
class InputLogFile : public InputLog {
 public:
  // kInvalidArgument for what is no ordinary file of the caller's, and while another process writes to it.
  // `failed` is called when the file cannot be written to: nothing more goes there.
  using Failed = std::function<void(const Error&)>;
  static Result<std::unique_ptr<InputLogFile>> open(const std::string& path, Failed failed);
  ~InputLogFile() override { flush(); }

  void write(std::string_view line) override;
  void flush() override;

 private:
  InputLogFile(std::string path, Fd file, off_t size, Failed failed)
      : path_(std::move(path)), file_(std::move(file)), size_(size), failed_(std::move(failed)) {}

  std::string path_;
  Fd file_;
  off_t size_;  // of what is whole in the file
  Failed failed_;
  std::string lines_;  // not yet in the file
};

}  // namespace heddle
