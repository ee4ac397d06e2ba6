#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "device/device.h"

namespace heddle::software {

class Grid;
struct Stream;

// Why an operation failed while it ran.
struct Problem {
  uint32_t cuda_error = 0;
  std::string text;
};

struct CopyWork {
  device::CopyDirection direction = device::CopyDirection::kOnDevice;
  device::CopyShape shape;
};
struct FillWork {
  device::FillShape shape;
};
struct LaunchWork {
  std::shared_ptr<Grid> grid;
};
struct LibraryWork {
  library::Library library{};
  uint32_t function = 0;
  std::vector<uint64_t> words;
  library::Demand demand;

  library::Call call() const { return {library, function, words}; }
};
struct MarkWork {};
struct WaitWork {
  device::Tag awaited = 0;
};
struct HoldWork {};

// One operation of a stream, from its handing over until it has completed. Owned by its stream.
struct Operation {
  device::Tag tag = 0;
  std::variant<MarkWork, CopyWork, FillWork, LaunchWork, LibraryWork, WaitWork, HoldWork> work;
  TimePoint enqueued{};

  // Set by the stream table.
  Stream* stream = nullptr;
  uint64_t sequence = 0;  // over all streams, in the order of handing over
  bool started = false;
  bool paced = false;  // its end is the pacer's to tell
  TimePoint ready{};   // when everything that it waits for had ended

  // What came of it.
  uint32_t cuda_error = 0;
  std::string text;
  TimePoint began{}, ended{};
  uint64_t overrun_ns = 0;
};

}  // namespace heddle::software
