#pragma once

#include <vector>

#include "device/cuda/in_flight.h"
#include "device/cuda/libraries.h"
#include "device/cuda/textures.h"
#include "device/cuda/window.h"

namespace heddle::cuda {

// Gives operations to the driver, in the order that CUDA promises: each behind what its stream was given before, with
// the order of the legacy default stream kept by events between streams, and what stands behind a hold only once that
// was released.
//
// Thread safety: the owner's lock. A context must be current.
class Submission {
 public:
  // All of them outlive it.
  Submission(const Driver& driver, Window& window, InFlight& in_flight, Textures& textures, Libraries& libraries)
      : driver_(driver), window_(window), in_flight_(in_flight), textures_(textures), libraries_(libraries) {}

  Status submit(Stream& stream, Operation operation, Work work);
  // The holds that it stood behind were released.
  Status issue_unblocked();

 private:
  Status issue(Stream& stream, Operation operation, Work& work);
  Status issue_work(Stream& stream, Operation operation, LaunchWork& work);
  Status issue_work(Stream& stream, Operation operation, CopyWork& work);
  Status issue_work(Stream& stream, Operation operation, FillWork& work);
  Status issue_work(Stream& stream, Operation operation, LibraryWork& work);
  Status issue_work(Stream& stream, Operation operation, MarkWork& work);
  Status issue_work(Stream& stream, Operation operation, WaitWork& work);
  Status issue_work(Stream& stream, Operation operation, HoldWork& work);
  Status issue_mark(Stream& stream, Operation operation);
  CUresult launch(const Stream& stream, const LaunchWork& work);
  CUresult allow_shared(LoadedKernel& kernel, uint32_t bytes);
  Status refuse(Stream& stream, Operation operation, std::string problem);
  CUresult followed(const Stream& stream, CUresult result, const device::CopyEnd& to, uint64_t bytes);
  CUresult keep_legacy_order(Stream& stream);
  CUresult follow(Stream& stream, Stream& other, uint64_t& seen);

  const Driver& driver_;
  Window& window_;
  InFlight& in_flight_;
  Textures& textures_;
  Libraries& libraries_;
  std::vector<void*> arguments_;  // of the launch at hand
};

}  // namespace heddle::cuda
