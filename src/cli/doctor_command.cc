// heddle doctor: what this machine offers and lacks, and what to do about it. Every check is one function.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/gpu_checks.h"
#include "cli/output.h"
#include "core/fd.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

Finding check_programs() {
  for (const char* name : {"heddled", "heddle-vault", "heddle-worker"}) {
    if (auto found = find_program(name); !found) return {"programs", Verdict::kBad, found.error().text};
  }
  return {"programs", Verdict::kOk, "heddled, heddle-vault and heddle-worker are installed"};
}

Finding check_libraries() {
  auto directory = library_directory();
  if (!directory) return {"runtime", Verdict::kBad, directory.error().text};
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12",
                           "libcuda.so.1", "libheddle-redirect.so"}) {
    const std::string path = *directory + "/" + name;
    if (::access(path.c_str(), R_OK) != 0)
      return {"runtime", Verdict::kBad, path + " is missing: install heddle again"};
  }
  return {"runtime", Verdict::kOk, "CUDA 12 and 13 runtimes in " + *directory};
}

Finding check_memory_files() {
  auto memory = create_memfd("heddle-doctor", Bytes{4096});
  if (!memory) return {"memfd", Verdict::kBad, memory.error().text};
  return {"memfd", Verdict::kOk, "sealed memory files work"};
}

Finding check_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto most = static_cast<unsigned long>(limit.rlim_max);
  if (most < 4096)
    return {"descriptors", Verdict::kBad,
            stringf("a process may open %lu files; every segment of device memory is one: raise the hard limit of "
                    "RLIMIT_NOFILE to 65536 or more",
                    most)};
  return {"descriptors", Verdict::kOk, stringf("up to %lu open files", most)};
}

Finding check_host() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kilobytes = 0;
  while (file >> key >> kilobytes && key != "MemAvailable:") file.ignore(256, '\n');
  return {"host", Verdict::kOk,
          stringf("%u cores, %s of memory available: software devices live on these",
                  std::thread::hardware_concurrency(), to_string(Bytes{kilobytes * kKiB}).c_str())};
}

Finding check_daemon() {
  const std::string path = protocol::control_socket_path();
  auto link = DaemonLink::connect(path);
  if (!link) return {"daemon", Verdict::kNote, "none at " + path + "; 'heddle run' starts one"};
  auto answer = link->request({{"command", "status"}});
  if (!answer) return {"daemon", Verdict::kBad, answer.error().text};
  const std::string version = string_of(*answer, "version");
  if (version != HEDDLE_VERSION)
    return {"daemon", Verdict::kBad,
            "heddled at " + path + " is version " + version +
                ", this command is " HEDDLE_VERSION ": restart it with 'heddle daemon stop' and 'heddle daemon start'"};
  return {"daemon", Verdict::kOk, "heddled " + version + " answers at " + path};
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kBad:
      return "BAD";
  }
  return "";
}

int doctor(bool as_json) {
  std::vector<Finding> found;
  for (const auto& check : {check_programs, check_libraries, check_memory_files, check_descriptors, check_host})
    found.push_back(check());
  for (Finding& finding : check_gpus()) found.push_back(std::move(finding));
  found.push_back(check_daemon());
  bool healthy = true;
  Table table({"CHECK", "", "FOUND"});
  Json findings = Json::array();
  for (const Finding& finding : found) {
    healthy = healthy && finding.verdict != Verdict::kBad;
    table.add({finding.check, word(finding.verdict), finding.text});
    findings.push_back({{"check", finding.check}, {"verdict", word(finding.verdict)}, {"text", finding.text}});
  }
  if (as_json) {
    print_json({{"healthy", healthy}, {"findings", findings}});
  } else {
    print(table.text());
  }
  return healthy ? kSuccess : kFailure;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& chosen) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Check this machine and say what is wrong");
  command->add_flag("--json", *as_json, "As JSON");
  command->footer("Exit status 1 when something has to be done.");
  command->callback([as_json, &chosen] { chosen = [as_json] { return doctor(*as_json); }; });
}

}  // namespace heddle::cli
