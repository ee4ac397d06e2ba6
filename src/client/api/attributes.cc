// cudaDeviceGetAttribute. Texture and surface limits are those of compute capability 6.0 and later.

#include "client/api/properties.h"

namespace heddle::client {
namespace {

struct Fixed {
  int attribute, value;
};

// What is the same on every device here: the architecture's constants, and what heddle does and does not do.
constexpr Fixed kFixed[] = {
    {2, 1024},         // MaxBlockDimX
    {3, 1024},         // MaxBlockDimY
    {4, 64},           // MaxBlockDimZ
    {5, 0x7fffffff},   // MaxGridDimX
    {6, 65535},        // MaxGridDimY
    {7, 65535},        // MaxGridDimZ
    {9, 65536},        // TotalConstantMemory
    {11, 0x7fffffff},  // MaxPitch
    {14, 512},         // TextureAlignment
    {15, 1},           // GpuOverlap
    {17, 0},           // KernelExecTimeout
    {18, 0},           // Integrated
    {19, 1},           // CanMapHostMemory
    {20, 0},           // ComputeMode: default
    {21, 131072},      // MaxTexture1DWidth
    {22, 131072},      // MaxTexture2DWidth
    {23, 65536},       // MaxTexture2DHeight
    {24, 16384},       // MaxTexture3DWidth
    {25, 16384},       // MaxTexture3DHeight
    {26, 16384},       // MaxTexture3DDepth
    {27, 32768},       // MaxTexture2DLayeredWidth
    {28, 32768},       // MaxTexture2DLayeredHeight
    {29, 2048},        // MaxTexture2DLayeredLayers
    {30, 512},         // SurfaceAlignment
    {31, 1},           // ConcurrentKernels
    {32, 0},           // EccEnabled
    {34, 0},           // PciDeviceId
    {35, 0},           // TccDriver
    {41, 1},           // UnifiedAddressing
    {42, 32768},       // MaxTexture1DLayeredWidth
    {43, 2048},        // MaxTexture1DLayeredLayers
    {45, 32768},       // MaxTexture2DGatherWidth
    {46, 32768},       // MaxTexture2DGatherHeight
    {47, 8192},        // MaxTexture3DWidthAlt
    {48, 8192},        // MaxTexture3DHeightAlt
    {49, 32768},       // MaxTexture3DDepthAlt
    {50, 0},           // PciDomainId
    {51, 32},          // TexturePitchAlignment
    {52, 32768},       // MaxTextureCubemapWidth
    {53, 32768},       // MaxTextureCubemapLayeredWidth
    {54, 2046},        // MaxTextureCubemapLayeredLayers
    {55, 32768},       // MaxSurface1DWidth
    {56, 131072},      // MaxSurface2DWidth
    {57, 65536},       // MaxSurface2DHeight
    {58, 16384},       // MaxSurface3DWidth
    {59, 16384},       // MaxSurface3DHeight
    {60, 16384},       // MaxSurface3DDepth
    {61, 32768},       // MaxSurface1DLayeredWidth
    {62, 2048},        // MaxSurface1DLayeredLayers
    {63, 32768},       // MaxSurface2DLayeredWidth
    {64, 32768},       // MaxSurface2DLayeredHeight
    {65, 2048},        // MaxSurface2DLayeredLayers
    {66, 32768},       // MaxSurfaceCubemapWidth
    {67, 32768},       // MaxSurfaceCubemapLayeredWidth
    {68, 2046},        // MaxSurfaceCubemapLayeredLayers
    {69, 268435456},   // MaxTexture1DLinearWidth
    {70, 131072},      // MaxTexture2DLinearWidth
    {71, 65000},       // MaxTexture2DLinearHeight
    {72, 2097120},     // MaxTexture2DLinearPitch
    {73, 32768},       // MaxTexture2DMipmappedWidth
    {74, 32768},       // MaxTexture2DMipmappedHeight
    {77, 32768},       // MaxTexture1DMipmappedWidth
    {78, 1},           // StreamPrioritiesSupported
    {79, 1},           // GlobalL1CacheSupported
    {80, 1},           // LocalL1CacheSupported
    {83, 1},           // ManagedMemory
    {84, 0},           // IsMultiGpuBoard
    {85, 0},           // MultiGpuBoardGroupID
    {86, 0},           // HostNativeAtomicSupported
    {87, 2},           // SingleToDoublePrecisionPerfRatio
    {88, 0},           // PageableMemoryAccess
    {90, 1},           // ComputePreemptionSupported
    {91, 0},           // CanUseHostPointerForRegisteredMem: it has an address of its own (host_registration.h)
    {95, 1},           // CooperativeLaunch
    {98, 0},           // CanFlushRemoteWrites
    {99, 1},           // HostRegisterSupported
    {100, 0},          // PageableMemoryAccessUsesHostPageTables
    {101, 0},          // DirectManagedMemAccessFromHost
    {108, 0},          // MaxPersistingL2CacheSize
    {109, 0},          // MaxAccessPolicyWindowSize
    {112, 0},          // SparseCudaArraySupported
    {113, 0},          // HostRegisterReadOnlySupported
    {114, 0},          // TimelineSemaphoreInteropSupported
    {115, 1},          // MemoryPoolsSupported
    {116, 0},          // GPUDirectRDMASupported
    {117, 0},          // GPUDirectRDMAFlushWritesOptions
    {118, 0},          // GPUDirectRDMAWritesOrdering
    {119, 0},          // MemoryPoolSupportedHandleTypes
    {120, 0},          // ClusterLaunch
    {121, 0},          // DeferredMappingCudaArraySupported
    {125, 0},          // IpcEventSupport
    {126, 1},          // MemSyncDomainCount
    {130, 0},          // NumaConfig: none
    {131, -1},         // NumaId
    {133, 0},          // MpsEnabled
    {134, -1},         // HostNumaId
    {135, 0},          // D3D12CigSupported
    {138, 0},          // VulkanCigSupported
    {139, 0},          // GpuPciDeviceId
    {140, 0},          // GpuPciSubsystemId
    {142, 0},          // HostNumaMemoryPoolsSupported
    {143, 0},          // HostNumaMultinodeIpcSupported
    {144, 0},          // HostMemoryPoolsSupported
    {147, 0},          // OnlyPartialHostNativeAtomicSupported
};

}  // namespace

std::optional<int> device_attribute(int attribute, const DeviceModel& model, bool managed_on_device) {
  const auto number = [](uint64_t value) { return static_cast<int>(value); };
  switch (attribute) {
    case 1:
      return number(model.max_threads_per_block);
    case 8:
      return number(model.shared_bytes_per_block);
    case 10:
      return number(model.warp_size);
    case 12:
      return number(model.registers_per_block);
    case 13:
      return number(model.clock_khz);
    case 16:
      return number(model.sms);
    case 33:
      return number(model.pci_bus);
    case 36:
      return number(model.memory_clock_khz);
    case 37:
      return number(model.memory_bus_bits);
    case 38:
      return number(model.l2_bytes);
    case 39:
      return number(model.max_threads_per_sm);
    case 40:
      return number(model.copy_engines);
    case 75:
      return number(model.capability_major);
    case 76:
      return number(model.capability_minor);
    case 81:
      return number(model.shared_bytes_per_sm);
    case 82:
      return number(model.registers_per_sm);
    case 89:  // ConcurrentManagedAccess: on the host both sides reach it at any time
      return managed_on_device ? 0 : 1;
    case 97:
      return number(model.shared_bytes_per_block_optin);
    case 106:
      return number(model.max_blocks_per_sm);
    case 111:
      return number(model.shared_bytes_reserved_per_block);
  }
  for (const auto& [known, value] : kFixed) {
    if (known == attribute) return value;
  }
  return std::nullopt;
}

std::array<uint32_t, 4> device_uuid(const DeviceModel& model, int index) {
  return {0x64646568, 0x656c, model.pci_bus, static_cast<uint32_t>(index)};  // "heddle"
}

}  // namespace heddle::client
