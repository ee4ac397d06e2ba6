#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "client/libraries/runtime_link.h"
#include "library/cufft.h"

// cuFFT's plans. A cufftHandle is a number; graphs that have captured a plan's transforms share it, with its work area.
namespace heddle::client {

using library::cufft::Function;
using library::cufft::Outcome;
using library::cufft::Transform;

struct FourierPlan {
  explicit FourierPlan(const heddle_library_functions& of) : runtime(of) {}
  ~FourierPlan();
  FourierPlan(const FourierPlan&) = delete;
  FourierPlan& operator=(const FourierPlan&) = delete;

  // What the worker says that the transform needs for its work area. On software devices nothing.
  Outcome ask_size(const Transform& of, uint64_t& bytes);
  Outcome make(const Transform& of, size_t* work_bytes);
  // `shared` is this plan.
  Outcome execute(const std::shared_ptr<FourierPlan>& shared, Function function, void* input, void* output,
                  int direction);

  const heddle_library_functions& runtime;
  std::mutex mutex;  // guards what follows
  bool made = false, allocates = true, open = false;
  Transform transform;
  void* stream = nullptr;
  void* own_area = nullptr;   // allocated here
  void* work_area = nullptr;  // the one that is used
  uint64_t work_bytes = 0;    // what it has to have
};

// By handle.
class FourierPlans {
 public:
  Outcome add(const heddle_library_functions& runtime, int& handle);
  std::shared_ptr<FourierPlan> find(int handle);
  Outcome remove(int handle);

 private:
  std::mutex mutex_;
  int next_ = 1;
  std::map<int, std::shared_ptr<FourierPlan>> plans_;
};
FourierPlans& fourier_plans();

}  // namespace heddle::client
