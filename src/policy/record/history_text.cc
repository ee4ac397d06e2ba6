#include "policy/record/history_text.h"

#include "policy/record/entry.h"

namespace heddle::policy {
namespace {

constexpr uint32_t kHistoryFormat = 2;

std::string line_of(const EntryWriter& entry) {
  return entry.line() + '\n';
}

// Reads all fields of a line of that kind.
template <class Value>
bool reads(EntryReader& entry, std::string_view event, Value& value) {
  return entry.event() == event && entry(value).complete();
}

tl::unexpected<Error> makes_no_sense(size_t line, const char* why) {
  return fail(ErrorCode::kCorrupt, "line %zu %s", line, why);
}

}  // namespace

std::string write_history(const std::vector<KnownApp>& apps) {
  std::string text = line_of(EntryWriter({}, "history")(kHistoryFormat));
  for (const KnownApp& app : apps) text += line_of(EntryWriter({}, "learned")(app));
  return text + line_of(EntryWriter({}, "end")(apps.size()));
}

Result<std::vector<KnownApp>> read_history(std::string_view text) {
  std::vector<KnownApp> apps;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return makes_no_sense(line, "has no end");
    EntryReader entry(text.substr(0, end));
    text.remove_prefix(end + 1);
    uint64_t number = 0;
    if (line == 1) {
      if (!reads(entry, "history", number) || number != kHistoryFormat)
        return makes_no_sense(line, "does not begin a history of format 2");
      continue;
    }
    if (reads(entry, "end", number)) {
      if (number == apps.size() && text.empty()) return apps;
      return makes_no_sense(line, "ends it with another number of applications, or not at all");
    }
    KnownApp app;
    if (!reads(entry, "learned", app) || !app.entry.is_possible())
      return makes_no_sense(line, "says nothing that could be known of an application");
    apps.push_back(std::move(app));
  }
  return fail(ErrorCode::kCorrupt, "it is cut off");
}

}  // namespace heddle::policy
