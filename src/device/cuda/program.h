#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/device.h"
#include "image/image.h"

namespace heddle::cuda {

// A kernel that is loaded.
struct LoadedKernel : device::Kernel {
  CUfunction function = nullptr;
  std::string name;
  std::vector<size_t> offsets;   // of the parameters
  size_t parameter_bytes = 0;    // how many a launch must bring
  uint32_t dynamic_shared = 0;   // as much was allowed so far
  bool prints = false;           // its module may print
  bool writes_surfaces = false;  // its module may
};

// A program module, loaded by the driver: machine code for this device where the program has it, else its PTX, that of
// separately compiled units linked by the driver.
class Program : public device::Module {
 public:
  // A context must be current. Checks the fat binaries first, because the driver trusts the sizes in them. `arch`: of
  // the device, as image::Image::arch. kCorrupt, kNotFound (no code for this device), kNotSupported (what cannot be
  // linked here) and the driver's own words.
  static Result<std::unique_ptr<Program>> load(const Driver& driver, std::span<const std::byte> fatbin, uint32_t arch);
  // A context must be current and nothing of it in flight.
  ~Program() override;

  // Loads it, where it was not asked for before; errors name it. kNotFound.
  Result<LoadedKernel*> kernel(const std::string& name);
  Result<device::Variable> variable(const std::string& name) const;

 private:
  explicit Program(const Driver& driver) : driver_(driver) {}
  Status load(const std::vector<image::Image>& images, uint32_t arch);
  CUresult load_machine_code(const std::vector<image::Image>& images, uint32_t arch, std::string& tried);
  Status load_ptx(const std::vector<const image::Image*>& units);
  Status load_linked(const std::vector<const image::Image*>& units);
  CUresult load_bytes(std::span<const std::byte> bytes);
  void load_few();
  Status read_parameters(LoadedKernel& kernel) const;

  const Driver& driver_;
  CUmodule module_ = nullptr;
  bool prints_ = false, writes_surfaces_ = false;
  std::map<std::string, std::unique_ptr<LoadedKernel>, std::less<>> kernels_;
};

}  // namespace heddle::cuda
