#include "client/libraries/runtime_link.h"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

namespace heddle::client {
namespace {

using Api = const heddle_library_functions* (*)();

const heddle_library_functions* table_of(const char* name, int mode) {
  void* const library = ::dlopen(name, RTLD_NOW | mode);
  if (!library) return nullptr;
  const auto api = reinterpret_cast<Api>(::dlsym(library, "heddle_library_api"));
  const heddle_library_functions* table = api ? api() : nullptr;
  return table && table->version == kHeddleLibraryVersion ? table : nullptr;
}

const heddle_library_functions* find() {
  const heddle_library_functions* loaded = nullptr;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    const auto* const table = table_of(name, RTLD_NOLOAD);
    if (table && table->in_use()) return table;
    if (!loaded) loaded = table;
  }
  return loaded ? loaded : table_of("libcudart.so.13", 0);
}

}  // namespace

const heddle_library_functions* library_runtime() {
  static std::mutex mutex;
  static const heddle_library_functions* found = nullptr;
  const std::lock_guard lock(mutex);
  // Not final before the program has used one: it may load another first.
  if (!found || !found->in_use()) found = find();
  if (!found) {
    static bool said = false;
    if (!said)
      std::fputs("heddle: no libcudart of heddle's is to be found beside its libcublas and libcurand\n", stderr);
    said = true;
  }
  return found;
}

void say_unsupported(const char* function) {
  char line[128];
  std::snprintf(line, sizeof line, "%s is not supported", function);
  if (const auto* const runtime = library_runtime()) runtime->say(line);
}

}  // namespace heddle::client

// By this the worker tells heddle's libraries from NVIDIA's.
HEDDLE_LIBRARY_EXPORT void heddle_library_client() {}
