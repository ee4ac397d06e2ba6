#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device_model.h"
#include "core/units.h"
#include "policy/lessee.h"
#include "policy/task.h"

namespace heddle::simulator {

// Memory of a task that lies in one place as a whole: on its device, or, of a task that is launched eagerly, on the
// host.
struct Buffer {
  Bytes size;
  Bytes touched;  // that the kernels of each burst which uses it read and write in it
  // The first and the last burst of a task whose kernels use it, counted from 1.
  uint32_t from = 1, until = UINT32_MAX;
};

// What a job does. A job is one process that uses one device: `tasks` one after the other, each with `memory` and
// `bursts` bursts; a burst is a time on the host, then a copy, then kernels back to back. Times are those of a device
// without slowdown that nobody else uses, and of a processor that nobody else does.
struct JobShape {
  std::string name;
  std::string app;    // what it is known by in the history; empty: its name
  std::string model;  // of the devices that it asks for; empty: the first device's
  double weight = 1, request = 0, limit = 1;
  policy::JobClass kind = policy::JobClass::kBatch;
  Duration slo = policy::kDefaultSlo;  // of a user-facing job's bursts
  Bytes memory;
  Bytes more;                   // asked for besides, in the middle of each task; 0: nothing
  uint32_t more_at = 1;         // before its burst of that number, counted from 1
  std::vector<Buffer> buffers;  // what `memory` consists of, in the order of their allocation; none: it is one
  policy::ComputeNeed need;
  uint32_t tasks = 1;
  uint32_t bursts = 1;
  Duration before{}, behind{};  // on the host, before the first task and behind the last
  Duration host{};
  Duration copy{};
  Duration busy{};
  Duration busy_most{};  // above `busy`: each burst's is drawn evenly between the two
  Duration kernel{};     // one of them: how long a device that is taken back waits at most; 0: the whole burst
};

// Jobs alike: `count` of them, the first at `start`, each further one `every` later, or that on average (`random`, a
// Poisson process).
struct JobLine {
  JobShape shape;
  uint32_t count = 1;
  Duration start{}, every{};
  bool random = false;
  bool repeats = false;  // each begins anew when it has ended, until the horizon
};

// Jobs at once.
struct Workers {
  uint32_t most = 0;       // 0: all
  bool automatic = false;  // as many as policy::JobAdmission admits, whatever `most` says
};

// What it costs to take a device back by force.
struct RevocationCosts {
  Duration terminate = std::chrono::milliseconds(15);  // until a terminated worker is gone
  Duration resume = std::chrono::milliseconds(30);     // until another one goes on, when the device is lent anew
  // Work commits at the end of the first kernel after so long, so that it is not run again; 0: at each kernel's end.
  Duration epoch{};
};

// As in heddled's configuration.
struct SwapSpace {
  Bytes host;  // of the host's memory; 0: there is none
  // How long others wait, and a job computes on the host, before its memory leaves its device; 0: it never does.
  Duration idle = std::chrono::seconds(1);
};

struct Scenario {
  std::string policy = "mgb-warps";
  std::string dispatch = "open";
  Duration age_limit = std::chrono::seconds(2);
  Duration window = std::chrono::milliseconds(2);  // of work in flight under exclusive dispatch, on the device's clock
  uint32_t batch_sms = 80;  // percent of a device's SMs that are batch's, where the dispatch policy says so
  RevocationCosts revocation;
  bool eager_launch = false;  // tasks may begin with a part of their memory on the host (policy/eager.h)
  bool eager_free = false;    // a buffer is freed behind the last burst that uses it, and not with its task
  SwapSpace swap;
  Workers workers;          // jobs that come later wait in line
  uint32_t processors = 0;  // the host's, which jobs share; 0: as many as they want
  Duration horizon{};       // the end; 0: when all jobs have ended
  uint32_t seed = 1;        // of random arrivals
  std::vector<DeviceModel> devices;
  std::vector<JobLine> jobs;
};

// Reads a scenario. `name` stands for the file in errors, which give line and key. Unknown keys are errors.
Result<Scenario> parse_scenario(const std::string& text, const std::string& name);
Result<Scenario> load_scenario(const std::string& path);

// "auto" or a number; none: it is neither. text_of() is the way back.
std::optional<Workers> parse_workers(const std::string& text);
std::string text_of(const Workers& workers);

}  // namespace heddle::simulator
