#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "device/cuda/program.h"
#include "device/cuda/staging.h"
#include "device/device.h"

namespace heddle::cuda {

// What an operation does.
struct LaunchWork {
  LoadedKernel* kernel;
  device::LaunchConfig config;
  std::vector<std::byte> owned;  // the parameters, where the launch has to wait for a hold

  void own() {
    owned.assign(config.parameters.begin(), config.parameters.end());
    config.parameters = owned;
  }
};
struct CopyWork {
  device::CopyDirection direction;
  device::CopyShape shape;
  uint64_t bytes;
};
struct FillWork {
  device::FillShape shape;
  uint64_t bytes;
};
struct LibraryWork {
  library::Library library;
  uint32_t function;
  std::vector<uint64_t> words;

  library::Call call() const { return {library, function, words}; }
};
struct MarkWork {};
struct WaitWork {
  device::Tag awaited;
};
struct HoldWork {};
using Work = std::variant<LaunchWork, CopyWork, FillWork, LibraryWork, MarkWork, WaitWork, HoldWork>;

// An operation that was handed over and has not completed.
struct Operation {
  device::Tag tag = 0;
  uint64_t sequence = 0;  // counts all operations of the context
  TimePoint issued{};
  const LoadedKernel* kernel = nullptr;  // of a launch
  bool mark = false;                     // whose time may be asked for
  bool computes = false;                 // kernels: a launch or a library's call, which the driver has taken
  std::unique_ptr<StagedCopy> staged;
  std::unique_ptr<std::string> problem;  // it never went to the device: a fault once its turn comes
};

// One that stands behind a hold, so that the driver does not know of it yet.
struct Deferred {
  Operation operation;
  Work work;
};

}  // namespace heddle::cuda
