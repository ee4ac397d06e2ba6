// heddle replay: what a heddled's scheduler was told, told to another one.

#include <cstdio>
#include <fstream>

#include "cli/commands.h"
#include "cli/output.h"
#include "simulator/replay.h"

namespace heddle::cli {
namespace {

constexpr char kExplanation[] =
    "heddled writes an input log where its configuration says so:\n"
    "  [daemon]\n"
    "  input_log = \"/var/log/heddle-inputs\"\n"
    "  input_log_limit = \"1G\"\n"
    "and 'heddle sim SCENARIO --log FILE' writes one of a simulation. It has all that the scheduler and the dispatch\n"
    "policies were told and what they decided, so that a decision can be looked into later and elsewhere: under a\n"
    "debugger, or with a changed policy, whose first different decisions are shown. A line is a time in nanoseconds,\n"
    "what happened, and its fields; one that begins with = is an answer.\n"
    "Exit status 1 when a decision differs, 2 when the log cannot be read.";

constexpr int kUnreadable = 2;

struct ReplayOptions {
  std::string file;
  bool as_json = false;
};

using simulator::ReplayOutcome;

unsigned long number(uint64_t value) {
  return static_cast<unsigned long>(value);
}

std::string text_of(const std::string& file, const ReplayOutcome& outcome) {
  std::string text = stringf("%s: %lu inputs of %lu scheduler(s) and %lu dispatch policies; ", file.c_str(),
                             number(outcome.inputs), number(outcome.schedulers), number(outcome.dispatches));
  text += outcome.different == 0
              ? stringf("all %lu answers are the same\n", number(outcome.answers))
              : stringf("of %lu answers %lu differ\n", number(outcome.answers), number(outcome.different));
  if (outcome.full_at.value > 0)
    text += stringf("it ended at its limit (input_log_limit) of %s: what came then is not in it\n",
                    to_string(outcome.full_at).c_str());
  if (outcome.cut) text += "a decision without its answers was left out: whoever wrote the log ended there\n";
  for (const auto& [line, logged, replayed] : outcome.differences) {
    text += stringf("line %lu\n  logged    %s\n  replayed  %s\n", number(line),
                    logged.empty() ? "nothing" : logged.c_str(), replayed.empty() ? "nothing" : replayed.c_str());
  }
  return text;
}

Json json_of(const ReplayOutcome& outcome) {
  Json json{{"schedulers", outcome.schedulers}, {"dispatches", outcome.dispatches}, {"inputs", outcome.inputs},
            {"answers", outcome.answers},       {"different", outcome.different},   {"cut", outcome.cut},
            {"full_at", outcome.full_at.value}, {"differences", Json::array()}};
  for (const auto& [line, logged, replayed] : outcome.differences)
    json["differences"].push_back({{"line", line}, {"logged", logged}, {"replayed", replayed}});
  return json;
}

int replay_and_show(const ReplayOptions& options) {
  std::ifstream file(options.file);
  if (!file) {
    report(fail_errno(-1, "cannot read the input log '%s'", options.file.c_str()).value());
    return kUnreadable;
  }
  const auto outcome = simulator::replay(file, options.file);
  if (!outcome) {
    report(outcome.error());
    return kUnreadable;
  }
  if (options.as_json) {
    print_json(json_of(*outcome));
  } else {
    print(text_of(options.file, *outcome));
  }
  return outcome->different == 0 ? kSuccess : kFailure;
}

}  // namespace

void add_replay_command(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Tell an input log to the policies of this heddle, and compare what they decide with what it says");
  command->add_option("log", options->file, "The input log")->required();
  command->add_flag("--json", options->as_json, "As JSON");
  command->footer(kExplanation);
  command->callback([options, &chosen] { chosen = [options] { return replay_and_show(*options); }; });
}

}  // namespace heddle::cli
