#include "simulator/replay.h"

#include <deque>
#include <istream>
#include <map>
#include <memory>

#include "policy/dispatch/table.h"
#include "policy/placement/table.h"
#include "policy/record/entry.h"

namespace heddle::simulator {
namespace {

using policy::EntryReader;
using policy::EntryWriter;

constexpr size_t kKeptDifferences = 10;

class Replayer {
 public:
  Status take(const std::string& line);
  ReplayOutcome finish(bool last_line_is_whole);

 private:
  using Handler = Status (Replayer::*)(EntryReader&);
  static const std::map<std::string_view, Handler>& handlers();

  void compare(const std::string& line);
  void missing_answers();
  void cut_off();
  void differ(std::string logged, std::string replayed);
  template <class... Values>
  void answer(TimePoint at, std::string_view event, const Values&... values) {
    answers_.push_back(EntryWriter(at, event)(values...).line());
  }
  // Reads all fields of the entry.
  template <class... Values>
  static Status read(EntryReader& entry, Values&... values) {
    entry(values...);
    if (entry.complete()) return {};
    return fail(ErrorCode::kInvalidArgument, "'%s' has other fields here: was it written by another version of heddle?",
                std::string(entry.event()).c_str());
  }
  Result<policy::Dispatch*> dispatch_of(DeviceId device);

  Status make_scheduler(EntryReader& entry);
  Status add_device(EntryReader& entry);
  Status make_dispatch(EntryReader& entry);

  Status open(EntryReader& entry);
  Status close(EntryReader& entry);
  Status arrive(EntryReader& entry);
  Status grow(EntryReader& entry);
  Status extend(EntryReader& entry);
  Status free(EntryReader& entry);
  Status end(EntryReader& entry);
  Status serve(EntryReader& entry);
  Status outside(EntryReader& entry);
  Status adopt(EntryReader& entry);
  Status assign(EntryReader& entry);
  Status decide(EntryReader& entry);

  Status joined(EntryReader& entry);
  Status served(EntryReader& entry);
  template <void (policy::Dispatch::*event)(policy::Lessee, TimePoint)>
  Status tell(EntryReader& entry);
  Status turn(EntryReader& entry);
  Status next(EntryReader& entry);

  ReplayOutcome outcome_;
  uint64_t line_ = 0;
  std::deque<std::string> answers_;  // that were decided, and that the log has not told of yet
  bool answered_ = false;            // it has told of some

  std::unique_ptr<policy::Placement> placement_;  // of a scheduler whose devices are still to come
  policy::Options options_;
  uint64_t devices_wanted_ = 0;
  std::vector<policy::DeviceSpec> devices_;
  std::unique_ptr<policy::Scheduler> scheduler_;
  std::map<DeviceId, std::unique_ptr<policy::Dispatch>> dispatches_;
};

const std::map<std::string_view, Replayer::Handler>& Replayer::handlers() {
  static const std::map<std::string_view, Handler> all{
      {"scheduler", &Replayer::make_scheduler},
      {"device", &Replayer::add_device},
      {"dispatch", &Replayer::make_dispatch},
      {"open", &Replayer::open},
      {"close", &Replayer::close},
      {"arrive", &Replayer::arrive},
      {"grow", &Replayer::grow},
      {"extend", &Replayer::extend},
      {"free", &Replayer::free},
      {"end", &Replayer::end},
      {"serve", &Replayer::serve},
      {"outside", &Replayer::outside},
      {"adopt", &Replayer::adopt},
      {"assign", &Replayer::assign},
      {"decide", &Replayer::decide},
      {"joined", &Replayer::joined},
      {"served", &Replayer::served},
      {"left", &Replayer::tell<&policy::Dispatch::left>},
      {"pending", &Replayer::tell<&policy::Dispatch::pending>},
      {"drained", &Replayer::tell<&policy::Dispatch::drained>},
      {"returned", &Replayer::tell<&policy::Dispatch::returned>},
      {"turn", &Replayer::turn},
      {"next", &Replayer::next},
  };
  return all;
}

Status Replayer::take(const std::string& line) {
  ++line_;
  EntryReader entry(line);
  if (entry.event().starts_with('=')) {
    compare(line);
    return {};
  }
  const bool begins = entry.event() == "scheduler" || entry.event() == "device" || entry.event() == "dispatch";
  if (begins) cut_off();  // whoever wrote it ended before the answers, and another one went on
  missing_answers();
  const auto handler = handlers().find(entry.event());
  if (handler == handlers().end())
    return fail(ErrorCode::kInvalidArgument, "'%.40s' is no line of an input log", line.c_str());
  if (!begins && !scheduler_)
    return fail(ErrorCode::kInvalidArgument, "'%s' comes before a scheduler and its devices",
                std::string(entry.event()).c_str());
  if (!begins) ++outcome_.inputs;
  return (this->*handler->second)(entry);
}

void Replayer::compare(const std::string& line) {
  ++outcome_.answers;
  answered_ = true;
  const std::string replayed = answers_.empty() ? "" : answers_.front();
  if (!answers_.empty()) answers_.pop_front();
  if (replayed != line) differ(line, replayed);
}

void Replayer::differ(std::string logged, std::string replayed) {
  ++outcome_.different;
  if (outcome_.differences.size() < kKeptDifferences)
    outcome_.differences.push_back({line_, std::move(logged), std::move(replayed)});
}

void Replayer::missing_answers() {
  while (!answers_.empty()) {
    differ("", answers_.front());
    answers_.pop_front();
  }
  answered_ = false;
}

// The answers to a decision are written at once, but not together with the question. Of those of which some are there,
// the others are missing.
void Replayer::cut_off() {
  if (answered_) return;
  outcome_.cut |= !answers_.empty();
  answers_.clear();
}

ReplayOutcome Replayer::finish(bool last_line_is_whole) {
  if (last_line_is_whole) {
    cut_off();
    missing_answers();
  }
  outcome_.cut |= !last_line_is_whole;
  return std::move(outcome_);
}

Status Replayer::make_scheduler(EntryReader& entry) {
  std::string name;
  options_ = {};
  HEDDLE_TRY(read(entry, name, options_, devices_wanted_));
  auto placement = policy::make_placement(name);
  if (!placement) return tl::unexpected(std::move(placement).error());
  placement_ = std::move(*placement);
  devices_.clear();
  scheduler_.reset();
  return {};
}

Status Replayer::add_device(EntryReader& entry) {
  policy::DeviceSpec device;
  HEDDLE_TRY(read(entry, device));
  if (!placement_ || device.id.value != devices_.size())
    return fail(ErrorCode::kInvalidArgument, "device %lu is not the scheduler's next",
                static_cast<unsigned long>(device.id.value));
  devices_.push_back(std::move(device));
  if (devices_.size() < devices_wanted_) return {};
  scheduler_ = std::make_unique<policy::Scheduler>(std::move(placement_), devices_, options_);
  ++outcome_.schedulers;
  return {};
}

Status Replayer::make_dispatch(EntryReader& entry) {
  DeviceId device;
  std::string name;
  HEDDLE_TRY(read(entry, device, name));
  auto made = policy::make_dispatch(name);
  if (!made) return tl::unexpected(std::move(made).error());
  dispatches_[device] = std::move(*made);
  ++outcome_.dispatches;
  return {};
}

Status Replayer::open(EntryReader& entry) {
  SessionId session;
  JobId job;
  std::string model, app;
  Bytes budget;
  UserId user;
  HEDDLE_TRY(read(entry, session, job, model, budget, user, app));
  scheduler_->session_opened(session, job, std::move(model), budget, entry.at(), user, app);
  return {};
}

Status Replayer::close(EntryReader& entry) {
  SessionId session;
  HEDDLE_TRY(read(entry, session));
  scheduler_->session_closed(session, entry.at());
  return {};
}

Status Replayer::arrive(EntryReader& entry) {
  policy::TaskRequest request;
  HEDDLE_TRY(read(entry, request));
  scheduler_->task_arrived(request, entry.at());
  return {};
}

Status Replayer::grow(EntryReader& entry) {
  TaskId task;
  policy::ComputeNeed need;
  HEDDLE_TRY(read(entry, task, need));
  scheduler_->compute_grew(task, need, entry.at());
  return {};
}

Status Replayer::extend(EntryReader& entry) {
  TaskId task;
  Bytes more;
  HEDDLE_TRY(read(entry, task, more));
  scheduler_->extension_requested(task, more, entry.at());
  return {};
}

Status Replayer::free(EntryReader& entry) {
  TaskId task;
  Bytes less;
  HEDDLE_TRY(read(entry, task, less));
  scheduler_->memory_freed(task, less, entry.at());
  return {};
}

Status Replayer::end(EntryReader& entry) {
  TaskId task;
  HEDDLE_TRY(read(entry, task));
  scheduler_->task_ended(task, entry.at());
  return {};
}

Status Replayer::serve(EntryReader& entry) {
  SessionId session;
  DeviceId device;
  policy::Service service;
  HEDDLE_TRY(read(entry, session, device, service));
  scheduler_->served(session, device, service);
  return {};
}

Status Replayer::outside(EntryReader& entry) {
  DeviceId device;
  Bytes used;
  HEDDLE_TRY(read(entry, device, used));
  scheduler_->outside_memory(device, used, entry.at());
  return {};
}

Status Replayer::adopt(EntryReader& entry) {
  policy::TaskRequest request;
  DeviceId device;
  HEDDLE_TRY(read(entry, request, device));
  (void)scheduler_->adopt(request, device, entry.at());  // where it failed, it fails again
  return {};
}

Status Replayer::assign(EntryReader& entry) {
  SessionId session;
  uint32_t virtual_device = 0;
  DeviceId device;
  HEDDLE_TRY(read(entry, session, virtual_device, device));
  (void)scheduler_->adopt_assignment(session, virtual_device, device, entry.at());
  return {};
}

Status Replayer::decide(EntryReader& entry) {
  HEDDLE_TRY(read(entry));
  for (const policy::Decision& decision : scheduler_->decisions(entry.at())) answer(entry.at(), "=decided", decision);
  return {};
}

Result<policy::Dispatch*> Replayer::dispatch_of(DeviceId device) {
  const auto found = dispatches_.find(device);
  if (found == dispatches_.end())
    return fail(ErrorCode::kInvalidArgument, "device %lu has no dispatch policy",
                static_cast<unsigned long>(device.value));
  return found->second.get();
}

Status Replayer::joined(EntryReader& entry) {
  DeviceId device;
  policy::Lessee lessee;
  policy::Tenant tenant;
  HEDDLE_TRY(read(entry, device, lessee, tenant));
  const auto dispatch = dispatch_of(device);
  if (!dispatch) return tl::unexpected(dispatch.error());
  (*dispatch)->joined(lessee, tenant, entry.at());
  return {};
}

Status Replayer::served(EntryReader& entry) {
  DeviceId device;
  policy::Lessee lessee;
  policy::Service service;
  HEDDLE_TRY(read(entry, device, lessee, service));
  const auto dispatch = dispatch_of(device);
  if (!dispatch) return tl::unexpected(dispatch.error());
  (*dispatch)->served(lessee, service, entry.at());
  return {};
}

template <void (policy::Dispatch::*event)(policy::Lessee, TimePoint)>
Status Replayer::tell(EntryReader& entry) {
  DeviceId device;
  policy::Lessee lessee;
  HEDDLE_TRY(read(entry, device, lessee));
  const auto dispatch = dispatch_of(device);
  if (!dispatch) return tl::unexpected(dispatch.error());
  ((*dispatch)->*event)(lessee, entry.at());
  return {};
}

Status Replayer::turn(EntryReader& entry) {
  DeviceId device;
  HEDDLE_TRY(read(entry, device));
  const auto dispatch = dispatch_of(device);
  if (!dispatch) return tl::unexpected(dispatch.error());
  std::vector<policy::LeaseOrder> orders;
  (*dispatch)->decide(entry.at(), orders);
  for (const policy::LeaseOrder& order : orders) {
    if (const auto* lend = std::get_if<policy::Lend>(&order)) answer(entry.at(), "=lend", device, *lend);
    if (const auto* withdraw = std::get_if<policy::Withdraw>(&order))
      answer(entry.at(), "=withdraw", device, *withdraw);
  }
  return {};
}

Status Replayer::next(EntryReader& entry) {
  DeviceId device;
  HEDDLE_TRY(read(entry, device));
  const auto dispatch = dispatch_of(device);
  if (!dispatch) return tl::unexpected(dispatch.error());
  answer(entry.at(), "=next", device, (*dispatch)->next(entry.at()).value_or(TimePoint::max()));
  return {};
}

}  // namespace

Result<ReplayOutcome> replay(std::istream& log, const std::string& name) {
  Replayer replayer;
  bool whole = true;
  uint64_t number = 0;
  for (std::string line; std::getline(log, line);) {
    ++number;
    whole = !log.eof();
    if (!whole) break;  // whoever wrote it ended in the middle of the line
    if (const Status taken = replayer.take(line); !taken)
      return fail(taken.error().code, "%s:%lu: %s", name.c_str(), static_cast<unsigned long>(number),
                  taken.error().text.c_str());
  }
  if (number == 0) return fail(ErrorCode::kInvalidArgument, "%s: it is empty", name.c_str());
  return replayer.finish(whole);
}

}  // namespace heddle::simulator
