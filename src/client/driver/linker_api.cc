// The linker (cuLinkCreate and what follows). Nothing is linked here: the units go on together as one image, and
// whoever executes them links their PTX, as that of programs that nvcc compiled with -rdc=true.

#include <mutex>
#include <set>

#include "client/driver/functions.h"
#include "client/driver/jit_options.h"
#include "client/driver/modules.h"
#include "image/loose_image.h"

namespace heddle::client {
namespace {

enum InputType : int { kCubin = 0, kPtx = 1, kFatbin = 2 };

struct Linker {
  std::vector<std::byte> units;  // fat binaries, one behind the other
  std::vector<std::byte> image;  // what cuLinkComplete gives
};

struct Linkers {
  std::mutex mutex;
  std::set<Linker*> live;
};
Linkers& linkers() {
  static auto* const all = new Linkers;
  return *all;
}

// Runs `body` on the linker. One linker is one thread's at a time.
template <class Body>
CUresult on_linker(CUlinkState handle, Body&& body) {
  return in_context([&]() -> Done {
    auto* const linker = reinterpret_cast<Linker*>(handle);
    {
      const std::lock_guard lock(linkers().mutex);
      if (!linkers().live.contains(linker)) return refuse(cudaErrorInvalidResourceHandle);
    }
    return body(*linker);
  });
}

CUresult create(unsigned count, const int* options, void** values, CUlinkState* to) {
  return in_context([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    JitLogs(count, options, values).write(nullptr);
    auto* const linker = new Linker;
    const std::lock_guard lock(linkers().mutex);
    linkers().live.insert(linker);
    *to = reinterpret_cast<CUlinkState>(linker);
    return {};
  });
}

Done add(Linker& linker, int type, std::string_view data) {
  if (type != kPtx && type != kFatbin)
    return refuse(cudaErrorNotSupported,
                  "cuLinkAddData: only PTX and fat binaries with PTX can be linked, no machine code and no libraries");
  const auto fatbin = image::loose_fatbin(data);
  if (!fatbin) return refuse(type == kPtx ? cudaErrorInvalidPtx : cudaErrorInvalidKernelImage, fatbin.error().text);
  linker.units.insert(linker.units.end(), fatbin->begin(), fatbin->end());
  return {};
}

CUresult add_data(CUlinkState state, int type, const void* data, size_t bytes, const char*, unsigned, const int*,
                  void**) {
  return on_linker(state, [&](Linker& linker) -> Done {
    if (!data || bytes == 0) return refuse(cudaErrorInvalidValue);
    return add(linker, type, {static_cast<const char*>(data), bytes});
  });
}

CUresult add_file(CUlinkState state, int type, const char* path, unsigned, const int*, void**) {
  return on_linker(state, [&](Linker& linker) -> Done {
    if (!path) return refuse(cudaErrorInvalidValue);
    const auto file = read_image(path);
    return file ? add(linker, type, *file) : Done(tl::unexpected(file.error()));
  });
}

CUresult complete(CUlinkState state, void** image, size_t* bytes) {
  return on_linker(state, [&](Linker& linker) -> Done {
    if (!image || linker.units.empty()) return refuse(cudaErrorInvalidValue);
    linker.image = image::bundle(linker.units);
    *image = linker.image.data();
    if (bytes) *bytes = linker.image.size();
    return {};
  });
}

CUresult destroy(CUlinkState state) {
  return on_linker(state, [](Linker& linker) -> Done {
    const std::lock_guard lock(linkers().mutex);
    linkers().live.erase(&linker);
    delete &linker;
    return {};
  });
}

}  // namespace

std::span<const DriverFunction> driver_linker_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuLinkCreate, 5050, create),     HEDDLE_DRIVER(cuLinkCreate_v2, 6050, create),
      HEDDLE_DRIVER(cuLinkAddData, 5050, add_data),  HEDDLE_DRIVER(cuLinkAddData_v2, 6050, add_data),
      HEDDLE_DRIVER(cuLinkAddFile, 5050, add_file),  HEDDLE_DRIVER(cuLinkAddFile_v2, 6050, add_file),
      HEDDLE_DRIVER(cuLinkComplete, 5050, complete), HEDDLE_DRIVER(cuLinkDestroy, 5050, destroy),
  };
  return rows;
}

}  // namespace heddle::client
