#include "device/cuda/gpus.h"

#include <array>
#include <cstdio>

namespace heddle::cuda {
namespace {

struct AttributeOf {
  CUdevice_attribute attribute;
  uint32_t DeviceModel::*field;
};
constexpr AttributeOf kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &DeviceModel::sms},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &DeviceModel::max_threads_per_sm},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &DeviceModel::max_blocks_per_sm},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &DeviceModel::registers_per_sm},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &DeviceModel::shared_bytes_per_sm},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &DeviceModel::shared_bytes_per_block},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &DeviceModel::shared_bytes_per_block_optin},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &DeviceModel::shared_bytes_reserved_per_block},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &DeviceModel::max_threads_per_block},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &DeviceModel::warp_size},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &DeviceModel::registers_per_block},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &DeviceModel::capability_major},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &DeviceModel::capability_minor},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &DeviceModel::clock_khz},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &DeviceModel::memory_clock_khz},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &DeviceModel::memory_bus_bits},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &DeviceModel::l2_bytes},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &DeviceModel::copy_engines},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &DeviceModel::pci_bus},
};

uint32_t attribute_of(const Driver& driver, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  driver.cuDeviceGetAttribute(&value, attribute, device);
  return value > 0 ? static_cast<uint32_t>(value) : 0;
}

std::string uuid_of(const Driver& driver, CUdevice device) {
  CUuuid uuid{};
  driver.cuDeviceGetUuid(&uuid, device);
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += stringf("%02x", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// "NVIDIA H200" is the model; sessions move among devices of one model.
DeviceModel model_of(const Driver& driver, CUdevice device) {
  DeviceModel model;
  model.kind = DeviceKind::kCuda;
  model.slowdown = model.copy_slowdown = 1;
  driver.cuDeviceGetName(model.name, sizeof model.name, device);
  std::snprintf(model.model, sizeof model.model, "%s", model.name);
  for (const AttributeOf& each : kAttributes) model.*each.field = attribute_of(driver, device, each.attribute);
  size_t bytes = 0;
  driver.cuDeviceTotalMem(&bytes, device);
  model.memory_bytes = bytes / (2 * kMiB) * (2 * kMiB);
  model.issue_per_cycle = 4;
  // Two transfers a clock over the whole bus.
  model.memory_bytes_per_s = uint64_t{model.memory_clock_khz} * 1000 * 2 * (model.memory_bus_bits / 8);
  return model;
}

}  // namespace

Result<std::vector<Gpu>> list_gpus(const Driver& driver) {
  int count = 0;
  HEDDLE_TRY(driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return fail(ErrorCode::kNotFound, "the NVIDIA driver shows no GPU");
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    HEDDLE_TRY(driver.check(driver.cuDeviceGet(&device, i), "cuDeviceGet"));
    Gpu gpu;
    gpu.ordinal = static_cast<uint32_t>(i);
    gpu.uuid = uuid_of(driver, device);
    std::array<char, 32> pci{};
    driver.cuDeviceGetPCIBusId(pci.data(), pci.size(), device);
    gpu.pci = pci.data();
    gpu.model = model_of(driver, device);
    gpu.virtual_memory =
        attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
        attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    gpu.reaches_host_memory = attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace heddle::cuda
