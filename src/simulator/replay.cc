#include "simulator/replay.h"

#include <algorithm>
#include <istream>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>

#include "core/input_log.h"
#include "policy/dispatch/table.h"
#include "policy/eager.h"
#include "policy/learning.h"
#include "policy/placement/table.h"
#include "policy/record/entry.h"
#include "policy/record/recorded_scheduler.h"
#include "policy/swapping.h"
#include "simulator/replay_answers.h"

namespace heddle::simulator {
namespace {

using policy::EntryReader;
using policy::EntryWriter;

class Replayer {
 public:
  Status take(const std::string& line);
  ReplayOutcome finish(bool last_line_is_whole);

 private:
  using Handler = Status (Replayer::*)(EntryReader&);
  static const std::map<std::string_view, Handler>& handlers();

  template <class... Values>
  void answer(TimePoint at, std::string_view event, const Values&... values) {
    answers_.decided(EntryWriter(at, event)(values...).line());
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

  Status format(EntryReader& entry);
  Status full(EntryReader& entry);
  Status make_scheduler(EntryReader& entry);
  Status add_device(EntryReader& entry);
  Status make_dispatch(EntryReader& entry);

  Status open(EntryReader& entry);
  Status arrive(EntryReader& entry);
  // An event of the scheduler's, or of a part of it: what it is told, then when.
  template <class Part, auto event, class... Told>
  Status pass_on(EntryReader& entry);
  Status serve(EntryReader& entry);
  Status learned(EntryReader& entry);
  Status computed(EntryReader& entry);
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
  ReplayAnswers answers_{outcome_};
  bool formatted_ = false;  // the log has said its format

  std::unique_ptr<policy::Placement> placement_;  // of a scheduler whose devices are still to come
  policy::Options options_;
  uint64_t devices_wanted_ = 0;
  std::vector<policy::DeviceSpec> devices_;
  std::unique_ptr<policy::Scheduler> scheduler_;
  std::map<DeviceId, std::unique_ptr<policy::Dispatch>> dispatches_;
};

const std::map<std::string_view, Replayer::Handler>& Replayer::handlers() {
  using policy::Eager;
  using policy::Scheduler;
  using policy::Swapping;
  static const std::map<std::string_view, Handler> all{
      {"format", &Replayer::format},
      {"full", &Replayer::full},
      {"scheduler", &Replayer::make_scheduler},
      {"device", &Replayer::add_device},
      {"dispatch", &Replayer::make_dispatch},
      {"open", &Replayer::open},
      {"close", &Replayer::pass_on<Scheduler, &Scheduler::session_closed, SessionId>},
      {"arrive", &Replayer::arrive},
      {"grow", &Replayer::pass_on<Scheduler, &Scheduler::compute_grew, TaskId, policy::ComputeNeed>},
      {"extend", &Replayer::pass_on<Scheduler, &Scheduler::extension_requested, TaskId, Bytes>},
      {"free", &Replayer::pass_on<Scheduler, &Scheduler::memory_freed, TaskId, Bytes>},
      {"end", &Replayer::pass_on<Scheduler, &Scheduler::task_ended, TaskId>},
      {"swapped_out", &Replayer::pass_on<Swapping, &Swapping::swapped_out, TaskId>},
      {"resume", &Replayer::pass_on<Swapping, &Swapping::resume_requested, TaskId>},
      {"withdraw", &Replayer::pass_on<Swapping, &Swapping::resume_withdrawn, TaskId>},
      {"stay", &Replayer::pass_on<Swapping, &Swapping::stays, TaskId, std::string>},
      {"launch", &Replayer::pass_on<Eager, &Eager::launched, TaskId, DeviceId, Bytes>},
      {"promote", &Replayer::pass_on<Eager, &Eager::promoted, TaskId, Bytes>},
      {"demote", &Replayer::pass_on<Eager, &Eager::returned_to_host, TaskId, Bytes>},
      {"free_host", &Replayer::pass_on<Eager, &Eager::host_memory_freed, TaskId, Bytes>},
      {"serve", &Replayer::serve},
      {"learned", &Replayer::learned},
      {"computed", &Replayer::computed},
      {"outside", &Replayer::pass_on<Scheduler, &Scheduler::outside_memory, DeviceId, Bytes>},
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
    answers_.logged(line, line_);
    return {};
  }
  static constexpr std::string_view kFrame[] = {"format", "full", "scheduler", "device", "dispatch"};
  const bool is_input = std::find(std::begin(kFrame), std::end(kFrame), entry.event()) == std::end(kFrame);
  if (!is_input) answers_.cut_off();  // whoever wrote it ended before the answers, and another one went on
  answers_.end(line_);
  const auto handler = handlers().find(entry.event());
  if (handler == handlers().end())
    return fail(ErrorCode::kInvalidArgument, "'%.40s' is no line of an input log", line.c_str());
  if (!formatted_ && entry.event() != "format")
    return fail(ErrorCode::kInvalidArgument,
                "the log begins without the number of its format: it is from before format 1, and this heddle replays "
                "format %u",
                kInputLogFormat);
  if (is_input && !scheduler_)
    return fail(ErrorCode::kInvalidArgument, "'%s' comes before a scheduler and its devices",
                std::string(entry.event()).c_str());
  if (is_input) ++outcome_.inputs;
  return (this->*handler->second)(entry);
}

ReplayOutcome Replayer::finish(bool last_line_is_whole) {
  if (last_line_is_whole) {
    answers_.cut_off();
    answers_.end(line_);
  }
  outcome_.cut |= !last_line_is_whole;
  return std::move(outcome_);
}

Status Replayer::format(EntryReader& entry) {
  uint32_t number = 0;
  HEDDLE_TRY(read(entry, number));
  formatted_ = number == kInputLogFormat;
  if (formatted_) return {};
  return fail(ErrorCode::kInvalidArgument,
              "here begins format %u, and this heddle replays format %u: use a heddle like the one that wrote it",
              number, kInputLogFormat);
}

Status Replayer::full(EntryReader& entry) {
  HEDDLE_TRY(read(entry, outcome_.full_at));
  return {};
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

Status Replayer::arrive(EntryReader& entry) {
  policy::TaskRequest request;
  HEDDLE_TRY(read(entry, request));
  scheduler_->task_arrived(request, entry.at());
  return {};
}

template <class Part, auto event, class... Told>
Status Replayer::pass_on(EntryReader& entry) {
  std::tuple<Told...> told;
  HEDDLE_TRY(std::apply([&](auto&... each) { return read(entry, each...); }, told));
  const auto tell = [&](auto&& part) {
    std::apply([&](const auto&... each) { (part.*event)(each..., entry.at()); }, told);
  };
  if constexpr (std::is_same_v<Part, policy::Scheduler>) {
    tell(*scheduler_);
  } else {
    tell(Part(*scheduler_));
  }
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

Status Replayer::learned(EntryReader& entry) {
  policy::KnownApp app;
  HEDDLE_TRY(read(entry, app));
  policy::Learning(*scheduler_).remember(app);
  return {};
}

Status Replayer::computed(EntryReader& entry) {
  SessionId session;
  Duration since_last;
  HEDDLE_TRY(read(entry, session, since_last));
  policy::Learning(*scheduler_).computed(session, since_last);
  return {};
}

Status Replayer::adopt(EntryReader& entry) {
  policy::TaskRequest request;
  DeviceId device;
  HEDDLE_TRY(read(entry, request, device));
  // Where it failed, it fails again.
  (void)(device == policy::RecordedScheduler::kSwappedOut ? policy::Swapping(*scheduler_).adopt(request, entry.at())
                                                          : scheduler_->adopt(request, device, entry.at()));
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
