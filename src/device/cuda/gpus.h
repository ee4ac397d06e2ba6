#pragma once

#include <string>
#include <vector>

#include "core/device_model.h"
#include "core/units.h"
#include "device/cuda/driver.h"

// The GPUs that the driver shows to this process.
namespace heddle::cuda {

struct Gpu {
  uint32_t ordinal = 0;
  std::string uuid;                  // "GPU-c0ffee00-...": CUDA_VISIBLE_DEVICES takes it
  std::string pci;                   // "0000:1b:00.0"
  DeviceModel model;                 // kind kCuda; its context's memory is not known yet
  bool virtual_memory = false;       // memory can be created, exported as a descriptor and mapped
  bool reaches_host_memory = false;  // kernels can use all memory of their process (HMM, ATS)
};

// Makes no context. kNotFound where there is no GPU.
Result<std::vector<Gpu>> list_gpus(const Driver& driver);

}  // namespace heddle::cuda
