#include "core/log_sink.h"

#include "core/printable.h"

namespace heddle {

void GuardedSink::sink_it_(const spdlog::details::log_msg& message) {
  const std::string text = printable({message.payload.data(), message.payload.size()});
  const LogBudget::Verdict verdict = budget_.ask(text, clock_.now());
  if (!verdict.write) return;
  if (verdict.left_out != 0)
    write(message,
          stringf("%llu lines like the next were left out", static_cast<unsigned long long>(verdict.left_out)));
  write(message, text);
}

void GuardedSink::write(const spdlog::details::log_msg& like, const std::string& text) {
  spdlog::details::log_msg copy = like;
  copy.payload = spdlog::string_view_t(text.data(), text.size());
  inner_->log(copy);
}

}  // namespace heddle
