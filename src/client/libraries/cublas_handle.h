#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "client/libraries/runtime_link.h"
#include "library/cublas.h"

// What a cublasHandle_t points to: settings, and the device memory that the handle's calls need.
namespace heddle::client {

using library::cublas::Outcome;

class CublasHandle {
 public:
  explicit CublasHandle(const heddle_library_functions& runtime) : runtime_(runtime) {}

  // Gives the workspaces back that no graph needs; waits for the device, as cudaFree does.
  void release();

  // The call's words as its entry packed them: what they lack (scalars, a place for the answer, the handle's settings)
  // is filled in, and what the function answers to the host is fetched.
  struct Words {
    library::cublas::Number number;
    bool wide = false;
    uint64_t values[library::kMostWords];
    uint32_t count = library::cublas::Setting::kWords;
  };
  Outcome call(Words& words);
  // Whether the arguments that the words have so far make sense.
  static Outcome check(Words& words);

  // Settings, each guarded by `mutex`.
  std::mutex mutex;
  void* stream = nullptr;
  bool scalars_on_device = false, atomics = false;
  int math_mode = 0, sm_count_target = 0;
  void set_workspace(void* workspace, size_t bytes) { user_workspace_ = workspace, user_bytes_ = bytes; }
  void forget_workspace() { set_workspace(nullptr, 0); }

  bool valid() const { return mark_ == kMark; }
  const heddle_library_functions& runtime() const { return runtime_; }

 private:
  static constexpr uint64_t kMark = 0x6865'6464'6c65'4231;

  // Device memory for the calls of one stream: NVIDIA's library's workspace, and space for answers. Graphs share it
  // with the handle: each capture has memory of its own, since its graph may run beside the stream's calls.
  struct Scratch {
    const heddle_library_functions& runtime;
    const uint64_t capture;  // 0: of none
    uint64_t address = 0, workspace_bytes = 0;

    Scratch(const heddle_library_functions& from, uint64_t of) : runtime(from), capture(of) {}
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    uint64_t answers() const { return address + workspace_bytes; }
  };
  // The stream's, which `scratch` then is.
  Outcome find_scratch(std::shared_ptr<Scratch>& scratch);
  static int* take_info(const library::cublas::Function& function, Words& words);
  Outcome pack_scalars(const library::cublas::Function& function, Words& words);
  using SharedScratch = std::shared_ptr<Scratch>;
  Outcome call_with_host_values(const library::cublas::Function& function, Words& words, const SharedScratch& scratch);
  Outcome call_rotation(const library::cublas::Function& function, Words& words, const SharedScratch& scratch);
  Outcome hand_over(const Words& words, const SharedScratch& scratch);
  Outcome fetch(void* to, uint64_t from, size_t bytes);

  uint64_t mark_ = kMark;
  const heddle_library_functions& runtime_;
  bool open_ = false;
  // By stream, and whether it is that of a capture, the stream's latest.
  std::map<std::pair<void*, bool>, SharedScratch> scratches_;
  void* user_workspace_ = nullptr;
  size_t user_bytes_ = 0;
};

Outcome outcome_of(int cuda_error);

}  // namespace heddle::client
