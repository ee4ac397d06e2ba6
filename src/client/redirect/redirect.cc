// libheddle-redirect.so, which `heddle run` preloads: programs that have NVIDIA's CUDA runtime linked into them (nvcc's
// default) call heddle's instead.
//
// Before anything of the program runs (-z initfirst), every loaded object is looked at. In one that contains the
// runtime, each of its functions is overwritten with a jump to ours, found by the symbol table. An object whose symbols
// were stripped, or that uses cuDNN or NCCL, and NVIDIA's driver itself, ends the process with status 127 and a
// message, before main: its work would run beside the ledger. By its name alone the driver is heddle's libcuda, which
// lies where the runtimes lie; so it is by any name for programs that open it themselves (dlopen). Objects that come
// later, by dlopen, are treated before their constructors run: the loader calls an empty function (r_debug::r_brk,
// meant for debuggers) when it has mapped them, and that function jumps here too, or, where it has no space for a jump,
// its calls lead here.
//
// Rules: as in client/runtime.h. Nothing is loaded or changed in a process that contains no CUDA runtime.

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "client/redirect/calls.h"
#include "client/redirect/jump.h"
#include "client/redirect/scan.h"

namespace heddle::redirect {
namespace {

constexpr int kRefused = 127;  // as a shell says "cannot be run"

using OpenFunction = void* (*)(const char*, int);

// Made at the first use, never destroyed.
struct State {
  void* runtimes[2] = {};          // libcudart.so.12 and .13, ours
  std::set<const link_map*> seen;  // objects that were looked at; the loader's lock is held wherever this is used
  bool watching = false;
};
State& state() {
  static auto* const the_state = new State;
  return *the_state;
}

OpenFunction real_dlopen() {
  static const auto real = reinterpret_cast<OpenFunction>(::dlsym(RTLD_NEXT, "dlopen"));
  return real;
}

// Our own directory: the runtimes lie beside this library.
std::string directory() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<void*>(&state), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

void* load_runtime(int major) {
  void*& handle = state().runtimes[major - 12];
  if (!handle) {
    const std::string path = directory() + stringf("libcudart.so.%d", major);
    handle = real_dlopen()(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) std::fprintf(stderr, "heddle: %s\n", ::dlerror());
  }
  return handle;
}

constexpr const char* kProgram = "/proc/self/exe";

std::string path_of(const link_map* object) {
  return object->l_name && *object->l_name ? object->l_name : kProgram;
}

// For messages: the program by its own name.
std::string name_of(const std::string& path) {
  char program[4096];
  const ssize_t length = path == kProgram ? ::readlink(kProgram, program, sizeof program) : -1;
  return length > 0 ? std::string(program, static_cast<size_t>(length)) : path;
}

bool is_ours(const std::string& path) {
  const std::string own = directory();
  return !own.empty() && path.starts_with(own);
}

void redirect(const ElfFile& file, const link_map* object, void* runtime) {
  unsigned failed = 0;
  std::string why;
  file.functions([&](const ElfFile::Function& function) {
    if (!is_runtime_function(function.name)) return;
    const void* to = ::dlsym(runtime, function.name);
    if (!to) return;
    const Status written = write_jump(reinterpret_cast<void*>(object->l_addr + function.address), function.size, to);
    if (written) return;
    ++failed;
    why = std::string(function.name) + ": " + written.error().text;
  });
  if (failed > 0)
    std::fprintf(stderr, "heddle: %u CUDA functions of %s could not be redirected (%s)\n", failed,
                 name_of(path_of(object)).c_str(), why.c_str());
}

void say_refused(const std::string& path, const Finding& finding) {
  if (finding.kind == Finding::Kind::kStripped) {
    std::fprintf(stderr,
                 "heddle: %s contains NVIDIA's CUDA runtime but no symbols, so its calls cannot be redirected: "
                 "%srebuild it with nvcc -cudart shared, or without strip\n",
                 name_of(path).c_str(),
                 path == kProgram ? "" : "of NVIDIA's own libraries heddle serves cuBLAS and cuRAND; if it is yours, ");
    return;
  }
  std::fprintf(stderr,
               "heddle: %s uses %s, which heddle does not share (NVIDIA's driver, cuDNN and NCCL go past it): run it "
               "without heddle, on a device of its own\n",
               name_of(path).c_str(), finding.library.c_str());
}

void refuse(bool started) {
  if (!started) std::_Exit(kRefused);
  // What it does with CUDA from here on finds no device.
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
}

// Deals with one object. `started`: the program runs already.
void look_at(const link_map* object, bool started) {
  if (!state().seen.insert(object).second) return;
  const std::string path = path_of(object);
  if (is_ours(path)) return;
  if (goes_past_heddle(path)) {  // the loader was led there, past heddle's
    say_refused(kProgram, {Finding::Kind::kRefused, 0, path});
    return refuse(started);
  }
  const auto file = ElfFile::open(path);
  if (!file) return;  // the kernel's own, or a file that was replaced
  const Finding finding = scan(*file);
  switch (finding.kind) {
    case Finding::Kind::kNothing:
      return;
    case Finding::Kind::kRuntime:
      // While the loader works no library can be loaded; watch() has loaded them.
      if (void* runtime = started ? state().runtimes[finding.major - 12] : load_runtime(finding.major))
        return redirect(*file, object, runtime);
      std::_Exit(kRefused);
    case Finding::Kind::kStripped:
    case Finding::Kind::kRefused:
      say_refused(path, finding);
      return refuse(started);
  }
}

void look_at_all(bool started) {
  for (const link_map* object = _r_debug.r_map; object; object = object->l_next) look_at(object, started);
}

// In the place of the loader's empty function: called with the loader's lock, before and after it maps objects.
void loader_reports() {
  if (_r_debug.r_state != r_debug::RT_CONSISTENT) return;
  // An object that was unloaded may have left its place to another.
  std::set<const link_map*> loaded;
  for (const link_map* object = _r_debug.r_map; object; object = object->l_next) loaded.insert(object);
  std::erase_if(state().seen, [&](const link_map* object) { return !loaded.contains(object); });
  look_at_all(true);
}

// The function itself where it is empty and has space, with the padding behind it; else the loader's calls of it.
Status watch_loader() {
  auto* const function = reinterpret_cast<void*>(_r_debug.r_brk);
  auto* const ours = reinterpret_cast<void*>(&loader_reports);
  if (!function) return fail(ErrorCode::kNotSupported, "the loader tells nobody what it loads (r_debug::r_brk)");
  const uint64_t size = empty_function_size(function);
  const Status written = size != 0 ? write_jump(function, size, ours)
                                   : fail(ErrorCode::kNotSupported, "the loader's function for debuggers is not empty");
  if (written) return {};
  const auto calls = retarget_calls(function, ours);
  if (calls) return {};
  return fail(calls.error().code, "%s, and %s", written.error().text.c_str(), calls.error().text.c_str());
}

// From the first dlopen on.
void watch() {
  if (state().watching) return;
  state().watching = true;
  if (!load_runtime(12) || !load_runtime(13)) return;
  if (const Status watched = watch_loader(); !watched)
    std::fprintf(stderr, "heddle: CUDA in libraries that are loaded later will not be shared: %s\n",
                 watched.error().text.c_str());
}

// heddle's libcuda in the place of the driver that a program opens by its place: it has the same functions.
const char* shared_name(const char* name) {
  if (!name || !is_driver(name) || !goes_past_heddle(name) || is_ours(name)) return name;
  static const auto* const own = new std::string(directory() + "libcuda.so.1");
  return own->c_str();
}

bool refuses(const char* name) {
  if (!name || !goes_past_heddle(name) || is_ours(name)) return false;
  say_refused("this program", {Finding::Kind::kRefused, 0, name});
  return true;
}

// The loader hands every constructor the program's arguments. Before libc's own has run, environ is not set, and dlopen
// initialises libc without it and without the program's name.
[[gnu::constructor]] void start(int, char** arguments, char** environment) {
  if (!environ) environ = environment;
  look_at_all(false);
  if (!arguments || !arguments[0]) return;
  program_invocation_name = arguments[0];
  char* const slash = std::strrchr(arguments[0], '/');
  program_invocation_short_name = slash ? slash + 1 : arguments[0];
}

}  // namespace
}  // namespace heddle::redirect

// Ends in a jump to the loader's own dlopen (a tail call), which looks at its caller's address for the search path.
extern "C" __attribute__((visibility("default"), optimize("O2"))) void* dlopen(const char* name, int mode) {
  using namespace heddle::redirect;
  name = shared_name(name);
  if (refuses(name)) return nullptr;
  watch();
  return real_dlopen()(name, mode);
}
