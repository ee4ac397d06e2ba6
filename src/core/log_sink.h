#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>

#include "core/clock.h"
#include "core/log_budget.h"

namespace heddle {

// In front of the sink that writes: lines that tenants cause are kept to a budget, and no text of a tenant's can end a
// line or steer a terminal.
class GuardedSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  GuardedSink(spdlog::sink_ptr inner, LogBudget::Rates rates) : inner_(std::move(inner)), budget_(rates) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override { inner_->flush(); }
  void set_pattern_(const std::string& pattern) override { inner_->set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    inner_->set_formatter(std::move(formatter));
  }

 private:
  void write(const spdlog::details::log_msg& like, const std::string& text);

  spdlog::sink_ptr inner_;
  LogBudget budget_;
  MonotonicClock clock_;
};

}  // namespace heddle
