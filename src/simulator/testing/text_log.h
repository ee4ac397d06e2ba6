#pragma once

#include <string>
#include <string_view>

#include "core/input_log.h"

namespace heddle::simulator {

// An input log in memory.
class TextLog : public InputLog {
 public:
  void write(std::string_view line) override { (text_ += line) += '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = input_log_format() + "\n";
};

}  // namespace heddle::simulator
