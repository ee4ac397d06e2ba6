#include "daemon/commands.h"

#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "daemon/batch_sms.h"
#include "daemon/descriptions.h"
#include "daemon/tenant.h"
#include "daemon/usage.h"
#include "policy/dispatch/table.h"
#include "policy/placement/table.h"

namespace heddle::daemon {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestName = 63;
// In one answer, which is to take no more than a millisecond or two of the loop.
constexpr uint64_t kTracePage = 64;

// Texts come from tenants: what is no UTF-8 is replaced, never thrown at.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t nanoseconds(Duration duration) {
  return duration.count();
}

Commands::Answer packed(const std::string& text) {
  Commands::Answer answer;
  answer.message.length = static_cast<uint32_t>(text.size());
  if (text.size() < sizeof answer.message.text) {
    protocol::set_text(answer.message.text, text);
    return answer;
  }
  auto memory = create_memfd("heddle-reply", Bytes{text.size()});
  auto mapping = memory ? map_shared(*memory, Bytes{text.size()}) : tl::unexpected(memory.error());
  if (!mapping) return packed(dump({{"error", mapping.error().text}}));
  std::memcpy(mapping->data(), text.data(), text.size());
  answer.memory = std::move(*memory);
  return answer;
}

}  // namespace

Result<uint64_t> Commands::number_in(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || !found->is_number_unsigned())
    return fail(ErrorCode::kInvalidArgument, "\"%s\" must be a number", key);
  return found->get<uint64_t>();
}

Commands::Commands(Shared& shared, Sessions& sessions, Tasks& tasks, const Executor& executor, Workers& workers,
                   const Leases& leases, Control control)
    : shared_(shared),
      sessions_(sessions),
      tasks_(tasks),
      executor_(executor),
      workers_(workers),
      leases_(leases),
      control_(std::move(control)),
      started_(shared.now()) {}

Commands::Answer Commands::answer(const protocol::Command& command, const protocol::PeerCredentials& peer,
                                  Connection& connection, std::set<JobId>& jobs) {
  if (command.version != protocol::kProtocolVersion)
    return packed(dump({{"error", stringf("heddled speaks protocol version %u, the command version %u",
                                          protocol::kProtocolVersion, command.version)}}));
  const size_t length = std::min<size_t>(command.length, sizeof command.text);
  const Json request = Json::parse(command.text, command.text + length, nullptr, false);
  if (!request.is_object()) return packed(dump({{"error", "a command is a JSON object"}}));
  Asker asker{peer, connection, jobs};
  const auto result = dispatch(request, asker);
  return packed(dump(result ? *result : Json{{"error", result.error().text}}));
}

Result<Json> Commands::dispatch(const Json& request, Asker& asker) {
  using Handler = Result<Json> (Commands::*)(const Json&, Asker&);
  static constexpr std::pair<std::string_view, Handler> kHandlers[] = {
      {"status", &Commands::status},     {"devices", &Commands::devices},    {"ps", &Commands::ps},
      {"policies", &Commands::policies}, {"job_open", &Commands::job_open},  {"job", &Commands::job},
      {"cancel", &Commands::cancel},     {"suspend", &Commands::suspend},    {"resume", &Commands::resume},
      {"trace", &Commands::trace},       {"shutdown", &Commands::shut_down}, {"set_policy", &Commands::set_policy}};
  const auto named = request.find("command");
  if (named == request.end() || !named->is_string())
    return fail(ErrorCode::kInvalidArgument, "\"command\" must be a text");
  const auto name = named->get<std::string>();
  if (name == "ping") return Json{{"pong", true}};
  for (const auto& [known, handler] : kHandlers) {
    if (known == name) return (this->*handler)(request, asker);
  }
  return fail(ErrorCode::kNotFound, "there is no command '%s'", name.c_str());
}

// What heddled is, in few words.
Commands::Json Commands::itself() const {
  return {{"version", HEDDLE_VERSION},
          {"pid", ::getpid()},
          {"uptime_ns", nanoseconds(shared_.now() - started_)},
          {"policy", shared_.config.policy},
          {"dispatch", shared_.config.dispatch.policy}};
}

Result<Json> Commands::status(const Json&, Asker&) {
  Json json = itself();
  json.update({{"protocol", protocol::kProtocolVersion},
               {"socket", shared_.places.control},
               {"worker_socket", shared_.places.worker},
               {"restarts", control_.restarts()},
               {"vault_replacements", shared_.vault.replacements()},
               {"devices", shared_.registry.devices.size()},
               {"jobs", shared_.registry.jobs.size()},
               {"sessions", shared_.registry.sessions.size()},
               {"workers", shared_.registry.workers.size()}});
  return json;
}

Descriptions Commands::descriptions_for(const Asker& asker) const {
  return {shared_, executor_, tasks_.scheduler(), leases_, asker.peer.uid};
}

Commands::Json Commands::swap_space() const {
  return {{"used", shared_.registry.swapped.value},
          {"limit", shared_.config.swap.host->value},
          {"kept", shared_.registry.swap_kept.value}};
}

Result<Json> Commands::devices(const Json&, Asker& asker) {
  return Json{{"devices", device_list(descriptions_for(asker))}, {"swap", swap_space()}};
}

Commands::Json Commands::device_list(const Descriptions& describe) const {
  Json list = Json::array();
  const auto views = tasks_.scheduler().devices();
  const auto usage = usage_by_device(shared_.registry, shared_.now());
  for (const auto& view : views) {
    DeviceState& device = shared_.registry.devices[view.id.value];
    const DeviceModel& model = device.config.model;
    const DispatchConfig& dispatch = shared_.config.dispatch;
    const bool restarts = workers_.recovering(view.id) && workers_.under_mps(view.id);
    const std::string state = restarts ? "faulted: its MPS is being started anew" : state_of(device);
    list.push_back({{"device", view.id.value},
                    {"node", device.node.value},
                    {"name", model.name},
                    {"model", model.model},
                    {"kind", model.kind == DeviceKind::kSoftware ? "software" : "cuda"},
                    {"sharing", model.sharing == Sharing::kConcurrent ? "concurrent" : "time-sliced"},
                    {"shared_faults", device.config.shared_faults},
                    {"mps", name_of(device.config.mps)},
                    {"sms", model.sms},
                    {"batch_sms", dispatch.bounds_batch ? Json(batch_sms(dispatch, model)) : Json()},
                    {"memory", view.capacity.value},
                    {"used", view.promised.value},
                    {"contexts", view.contexts.value},
                    {"outside", view.outside.value},
                    {"on_host", view.on_host.value},
                    {"free", view.free.value},
                    {"warps", view.warps},
                    {"max_warps", view.max_warps},
                    {"tasks", view.tasks},
                    {"workers", shared_.registry.workers_on(view.id, Worker::State::kBound)},
                    {"warm_workers", shared_.registry.workers_on(view.id, Worker::State::kWarm)},
                    {"kept_workers", shared_.registry.workers_on(view.id, Worker::State::kKept)},
                    {"policy", shared_.config.policy},
                    {"dispatch", shared_.config.dispatch.policy},
                    {"leases", describe.leases(view.id)},
                    {"revocation", describe.revocation(view.id)},
                    {"slowdown", model.slowdown},
                    {"copy_slowdown", model.copy_slowdown},
                    {"keeper_copies", device.copies},
                    {"keeper_copied", device.copied.value},
                    {"usage", usage_json(usage[view.id.value], device.told_busy_ns)},
                    {"state", state}});
  }
  return list;
}

namespace {

// The number behind the first `count` entries of a table from `from` on; the largest where there are no more.
template <class Table>
uint64_t end_of_page(const Table& table, uint64_t from, size_t count) {
  auto each = table.lower_bound(typename Table::key_type{from});
  for (; count > 0 && each != table.end(); --count) ++each;
  return each == table.end() ? UINT64_MAX : each->first.value;
}

Bytes swapped_of(const Job& job, Registry& registry) {
  Bytes sum;
  for (const SessionId id : job.sessions) {
    const Session* session = registry.find_session(id);
    if (!session) continue;
    for (const VirtualDevice& device : session->devices) sum += device.swapped;
  }
  return sum;
}

Json json_of(Job& job, Registry& registry, const protocol::Usage& usage) {
  Json json{{"job", job.id.value},
            {"name", job.name},
            {"uid", job.uid},
            {"memory", job.budget.value},
            {"sessions", job.sessions.size()},
            {"usage", usage_json(usage, job.told_busy_ns)},
            {"suspended", job.suspended},
            {"swapped", swapped_of(job, registry).value},
            {"cancelled", job.cancelled}};
  describe_tenant(job.tenant, json);
  describe_requests(job, json);
  if (Json revoked = revocations_json(job.sla); !revoked.is_null()) json["revocations"] = std::move(revoked);
  return json;
}

}  // namespace

// Answers a page of at most kPsPage sessions and jobs, counting those that the asker may not see; the asker repeats the
// command with `from` set to `next` while there is one. Sessions and jobs are numbered by one counter. With `whole` the
// devices and heddled itself stand beside them, as of the moment of that page: `heddle top` needs no other command.
Result<Json> Commands::ps(const Json& request, Asker& asker) {
  uint64_t from = 0;
  if (request.contains("from")) {
    const auto number = number_in(request, "from");
    if (!number) return tl::unexpected(number.error());
    from = *number;
  }
  const auto& [all_jobs, all_sessions] = std::tie(shared_.registry.jobs, shared_.registry.sessions);
  const uint64_t end = std::min(end_of_page(all_jobs, from, kPsPage), end_of_page(all_sessions, from, kPsPage));
  Json jobs = Json::array(), sessions = Json::array();
  uint64_t hidden = 0;
  for (auto each = all_jobs.lower_bound(JobId{from}); each != all_jobs.end() && each->first.value < end; ++each) {
    Job& job = each->second;
    if (asker.may_see(job.uid))
      jobs.push_back(json_of(job, shared_.registry, usage_of(job, shared_.registry, shared_.now())));
  }
  const Descriptions describe = descriptions_for(asker);
  for (auto each = all_sessions.lower_bound(SessionId{from}); each != all_sessions.end() && each->first.value < end;
       ++each) {
    if (asker.may_see(each->second.uid)) {
      sessions.push_back(describe.session(each->second));
    } else {
      ++hidden;
    }
  }
  Json answer{{"sessions", sessions}, {"jobs", jobs}, {"hidden_sessions", hidden}};
  if (request.value("whole", Json()) == true) {
    answer["devices"] = device_list(describe);
    answer["swap"] = swap_space();
    answer["heddled"] = itself();
    answer["time_ns"] = nanoseconds(shared_.now().time_since_epoch());
  }
  if (end != UINT64_MAX) answer["next"] = end;
  return answer;
}

Result<Json> Commands::policies(const Json&, Asker&) {
  Json list = Json::array();
  for (const auto& entry : policy::placement_table()) {
    std::string name(entry.name);
    if (!entry.argument.empty()) name += ":" + std::string(entry.argument);
    list.push_back({{"name", name}, {"description", std::string(entry.description)}});
  }
  Json dispatch = Json::array();
  for (const auto& entry : policy::dispatch_table()) {
    dispatch.push_back({{"name", policy::text_of(entry)}, {"description", std::string(entry.description)}});
  }
  return Json{{"current", shared_.config.policy},
              {"policies", list},
              {"dispatch", {{"current", shared_.config.dispatch.policy}, {"policies", dispatch}}}};
}

Result<Json> Commands::job_open(const Json& request, Asker& asker) {
  const auto name = request.find("name");
  if (name != request.end() && !name->is_string()) return fail(ErrorCode::kInvalidArgument, "\"name\" must be a text");
  Bytes memory;
  if (request.contains("memory")) {
    const auto bytes = number_in(request, "memory");
    if (!bytes) return tl::unexpected(bytes.error());
    memory = Bytes{*bytes};
  }
  const std::string text = name == request.end() ? "" : name->get<std::string>().substr(0, kLongestName);
  const auto tenant = read_tenant(request);
  if (!tenant) return tl::unexpected(tenant.error());
  auto job = sessions_.open_job(text, memory, *tenant, asker.peer, &asker.connection);
  if (!job) return tl::unexpected(job.error());
  asker.jobs.insert((*job)->id);
  return Json{{"job", (*job)->id.value}, {"secret", (*job)->secret}};
}

namespace {

Json json_of(const TraceEvent& event) {
  return {{"number", event.number},
          {"time_ns", event.time.time_since_epoch().count()},
          {"kind", event.kind},
          {"job", event.job.value},
          {"session", event.session.value},
          {"task", event.task.value},
          {"device", event.device},
          {"memory", event.memory.value},
          {"blocks", event.need.blocks},
          {"threads", event.need.threads_per_block},
          {"registers", event.need.registers_per_thread},
          {"shared", event.need.shared_per_block.value},
          {"reason", event.reason},
          {"launches", event.usage.launches},
          {"kernel_ns", event.usage.kernel_ns},
          {"busy_ns", event.usage.busy_ns},
          {"copies", event.usage.copies},
          {"copied_bytes", event.usage.copied_bytes},
          {"copy_ns", event.usage.copy_ns},
          {"overrun_ns", event.usage.overrun_ns}};
}

}  // namespace

// A page of it: so many events are looked at, whosever they are, and the asker comes again from `next` on until `end`.
Result<Json> Commands::trace(const Json& request, Asker& asker) {
  const Trace& trace = shared_.trace;
  Json events = Json::array();
  Json answer{{"first", trace.first()}, {"next", trace.next()}, {"end", trace.next()}};
  if (request.contains("since") && !request["since"].is_null()) {
    const auto since = number_in(request, "since");
    if (!since) return tl::unexpected(since.error());
    const uint64_t begin = std::min(std::max(*since, trace.first()), trace.next());
    const uint64_t end = std::min(begin + kTracePage, trace.next());
    for (uint64_t number = begin; number < end; ++number) {
      const TraceEvent& event = trace.events()[number - trace.first()];
      if (asker.may_see(event.uid)) events.push_back(json_of(event));
    }
    answer["next"] = end;
  }
  answer["events"] = events;
  return answer;
}

Result<Json> Commands::shut_down(const Json&, Asker& asker) {
  if (!asker.may_see(::geteuid()))
    return fail(ErrorCode::kPermission, "only user %u or root may end this heddled", ::geteuid());
  shared_.loop.defer(control_.shut_down);
  return Json{{"ending", true}};
}

Result<Json> Commands::set_policy(const Json& request, Asker& asker) {
  if (!asker.may_see(::geteuid()))
    return fail(ErrorCode::kPermission, "only user %u or root may change the policy", ::geteuid());
  const auto name = request.find("policy");
  if (name == request.end() || !name->is_string())
    return fail(ErrorCode::kInvalidArgument, "\"policy\" must be a text");
  HEDDLE_TRY(control_.set_policy(name->get<std::string>()));
  return Json{{"policy", shared_.config.policy}};
}

}  // namespace heddle::daemon
