#include "cli/batch/concurrency.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "cli/batch/pool_view.h"
#include "policy/placement/table.h"

namespace heddle::cli {
namespace {

constexpr Duration kRecent = std::chrono::milliseconds(50);  // an answer of heddled is good for so long
constexpr uint32_t kJobsPerDevice = 5;                       // as many tasks JobAdmission wants there at least

// The most memory that the process has had so far; 0 where it has ended.
Bytes host_memory_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return Bytes{std::strtoull(line.c_str() + 6, nullptr, 10) * kKiB};
  }
  return {};
}

}  // namespace

Result<bool> Concurrency::admits() {
  if (!admission_) return running_.size() < number_;
  if (!looked_ || clock_.now() - *looked_ >= kRecent) HEDDLE_TRY(look());
  return link_ && admission_->admits(clock_.now());
}

Status Concurrency::look() {
  if (!link_) {
    auto link = connect_();
    if (!link) return tl::unexpected(std::move(link).error());
    link_.emplace(std::move(*link));
  }
  auto devices = link_->request({{"command", "devices"}});
  auto ps = devices ? link_->ps() : tl::unexpected(devices.error());
  if (!ps) {  // it is being restarted: jobs go on, and the next look goes by the new one
    link_.reset();
    looked_.reset();
    return {};
  }
  std::set<JobId> batch;
  for (const auto& [job, process] : running_) {
    batch.insert(job);
    admission_->needed(host_memory_of(process));
  }
  const PoolView view = pool_view(*devices, *ps, batch);
  for (const JobId job : view.with_task) admission_->announced(job);
  looked_ = clock_.now();
  admission_->look(view.use, *looked_);
  return {};
}

void Concurrency::started(uint64_t job, pid_t process) {
  running_[JobId{job}] = process;
  most_at_once_ = std::max(most_at_once_, static_cast<uint32_t>(running_.size()));
  if (admission_) admission_->started(JobId{job}, clock_.now());
}

void Concurrency::ended(uint64_t job, Bytes most) {
  running_.erase(JobId{job});
  looked_.reset();  // what heddled said is old
  if (!admission_) return;
  admission_->needed(most);
  admission_->ended(JobId{job});
}

Duration Concurrency::pause(Duration most) const {
  if (!admission_ || !link_) return most;
  const TimePoint now = clock_.now();
  return std::clamp(admission_->next(now) - now, kRecent, most);
}

policy::AdmissionLimits admission_limits(const std::string& policy, size_t devices, std::optional<uint32_t> most) {
  const auto placement = policy::make_placement(policy);
  const bool binds_jobs = placement && (*placement)->scope() == policy::Scope::kSession;
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  const uint32_t jobs = std::max(std::thread::hardware_concurrency(), static_cast<uint32_t>(devices) * kJobsPerDevice);
  return {most.value_or(jobs), Bytes{pages * page}, binds_jobs};
}

}  // namespace heddle::cli
