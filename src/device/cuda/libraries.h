#pragma once

#include <cuda.h>

#include <map>
#include <optional>
#include <vector>

#include "device/cuda/fourier_plans.h"
#include "library/curand.h"

// NVIDIA's cuBLAS, cuRAND and cuFFT, found at run time as the driver is: the worker calls them for its program, with
// the context that is current, on the stream that the program meant. Types are NVIDIA's in effect, not in name: their
// headers are not needed to build.
//
// One handle of cuBLAS for each stream, so that work on different streams shares no workspace; a generator of cuRAND
// for each of the program's. A generator of the host makes its numbers while it is called. They live as long as the
// process: destroying them waits for the device.
//
// Thread safety: none; the engine's lock guards it.
namespace heddle::cuda {

class Libraries {
 public:
  // As device::Context::open_library().
  Result<uint32_t> open(library::Library library);
  // Gives the call to the library. The words name scalars, which it reads before it returns. What it refuses is an
  // error that names the function and its status.
  Status call(const library::Call& call, uint32_t stream_index, CUstream stream);
  // Where the call has the processor write, at once: generators of the host do.
  static std::optional<library::Operand> written_on_host(const library::Call& call);

 private:
  using Handle = void*;
  struct Generator {
    Handle handle = nullptr;
    int type = 0;
    bool host = false;
    uint32_t changed = 0;
  };
  struct Loaded {
    void* library = nullptr;
    uint32_t version = 0;
  };

  Status load(library::Library library, Loaded& into);
  Status call_cublas(const library::Call& call, uint32_t stream_index, CUstream stream);
  Result<Handle> handle_of(uint32_t stream_index);
  void* cublas_function(uint32_t function, bool wide);
  Status call_curand(const library::Call& call, CUstream stream);
  Result<Handle> generator_of(const library::Call& call);
  Status set_generator(Handle generator, const library::curand::Draw& draw);
  Status copy_table(const library::Call& call);

  Loaded cublas_, curand_, cufft_;
  FourierPlans plans_;
  std::map<uint32_t, Handle> handles_;        // by stream
  std::map<uint32_t, Generator> generators_;  // by the program's number
  std::vector<void*> cublas_functions_[2];    // by number: plain and _64; null: not looked up yet
};

}  // namespace heddle::cuda
