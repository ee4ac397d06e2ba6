#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "daemon/device_config.h"
#include "protocol/messages.h"
#include "protocol/ring_memory.h"

namespace heddle::daemon {

// What one peer may take of heddled itself. All protect the others, not the device.
struct Limits {
  uint32_t sessions = 512;
  uint32_t sessions_per_user = 256;
  uint32_t connections_per_user = 1024;
  uint32_t jobs_per_user = 1024;
  double weight_of_job = 100;
  double share_of_job = 1;          // what one job may request of a device, 0 to 1
  double share_per_user = 0;        // what all of a user's jobs may request together; 0: no limit
  bool user_facing = true;          // whether jobs may be of that class, which goes before batch
  Bytes device_memory_per_user{0};  // held by all tasks of one user; 0: no limit
  uint32_t segments_per_session = 4096;
  uint32_t modules_per_session = 512;
  Bytes module{256 * kMiB};            // one fat binary
  Bytes modules_of_session{1 * kGiB};  // all of a session's
  Bytes host_of_session{0};            // pinned memory; 0: as host_total
  Bytes host_total{0};                 // of all sessions; 0: half of the machine's memory
};

// first, first + 1, ...
struct UidRange {
  uint32_t first = 0, count = 0;
};

// Where cudaMallocManaged's memory lives: kAuto is the device's, on GPUs, for programs that see one device.
enum class ManagedMemory { kAuto, kHost, kDevice };

// Who of a device's programs may issue work when (policy/dispatch/, leases.h).
struct DispatchConfig {
  std::string policy = "open";
  Duration window = std::chrono::milliseconds(2);   // of a device's time that a lessee may have in flight; 0: any
  Duration return_limit = std::chrono::minutes(5);  // for a lease that is over to come back
  uint32_t batch_sms = 80;                          // percent of a device's SMs that are batch's...
  bool bounds_batch = false;                        // ...under this policy (batch_sms.h)
};

// Whether work that is under way outlives its worker (worker/epoch.h, docs/revocation.md).
struct DurabilityConfig {
  enum class Level { kOff, kLong, kAuto, kFull };
  static constexpr uint32_t kAutoPermille = 20;  // of a program's time that copies may take at kAuto
  Level level = Level::kAuto;
  Duration long_from = std::chrono::milliseconds(5);  // at kLong, what takes less is not protected
  Bytes undo{256 * kMiB};                             // of host memory, that a ring's open epoch may save at most

  // Of a control page.
  Bytes space() const { return level == Level::kOff ? Bytes{0} : undo; }
  Duration protects_from() const { return level == Level::kLong ? long_from : Duration::zero(); }
  uint32_t save_permille() const { return level == Level::kAuto ? kAutoPermille : 0; }
};

// Where the device memory of suspended jobs and of idle programs goes when others need the devices (swaps.h).
struct SwapConfig {
  std::optional<Bytes> host;  // of this machine's memory; 0: memory stays on its device
  // How much of that stays pinned for the next time when nobody uses it any more (swap_space.h); 0: none.
  std::optional<Bytes> pinned;
  // How long others wait, and a program does nothing with its device, before its memory leaves; 0: it never does.
  Duration idle = std::chrono::seconds(1);
};

struct Config {
  std::string policy = "mgb-warps";
  Duration age_limit = std::chrono::seconds(2);
  bool eager_launch = false;  // tasks may begin with a part of their memory on the host (eager_tasks.h)
  std::string log_level = "info";
  std::string log_file;                // empty: standard error
  std::string input_log;               // what the scheduler is told and decides, for heddle replay; empty: nowhere
  Bytes input_log_limit{1 * kGiB};     // of that file; 0: no limit
  std::string history = "auto";        // what policies learn, in a file (kept_history.h); empty: it is lost
  std::string worker_user;             // empty: heddled's own
  UidRange worker_uids;                // none: workers run as worker_user
  std::string gpu_locks = "/dev/shm";  // see gpu_locks.h; empty: nothing is locked
  uint32_t warm_workers = 1;           // for each device
  uint32_t kept_workers = 2;           // for each device at most, for the next task of the program that they served
  ManagedMemory managed_memory = ManagedMemory::kAuto;
  uint32_t trace_events = 65536;
  Duration worker_start_timeout = std::chrono::seconds(60);
  Duration worker_exit_grace = std::chrono::seconds(2);  // from Quit to SIGKILL
  Duration reconnect_grace = std::chrono::seconds(5);    // for workers, after a restart of heddled
  Duration worker_reconnect_for = std::chrono::seconds(10);
  DispatchConfig dispatch;
  DurabilityConfig durability;
  SwapConfig swap;
  protocol::RingSizes ring;
  std::vector<protocol::Window> windows;
  Limits limits;
  std::vector<DeviceConfig> devices;
  std::vector<GpuConfig> gpus;
  bool use_gpus = true;  // without [[device]] and [[gpu]] tables: the machine's GPUs are the pool, where there are any
  bool names_devices = false;  // the file has a [[device]] or [[gpu]] table: there is no default pool
};

// Without a file: two software devices that share half of this machine's memory, unpaced. Where there are GPUs they
// take the place of these (gpus.h).
Config default_config();
// `name` stands for the file in errors, which give line and key. Unknown keys are errors.
Result<Config> parse_config(std::string_view text, const std::string& name);
Result<Config> load_config(const std::string& path);

}  // namespace heddle::daemon
