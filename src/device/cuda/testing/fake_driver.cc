// A libcuda for tests on machines without a GPU: the driver functions that heddle uses, over one software device.
// Loaded where HEDDLE_CUDA_LIBRARY names it, so that everything above the driver runs as it is: context, keeper,
// heddled.
//
// As many GPUs as the file beside the library says whose name ends with ".gpus", one without it; "apart" behind the
// number: none reaches another's memory. A process computes on one of them.
//
// What it does not do: host memory for kernels, MPS. A fault is sticky for the process.

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/sanitizer.h"
#include "device/device.h"
#include "image/describe.h"
#include "image/fatbin.h"
#include "image/fatbin_builder.h"

// NOLINTBEGIN: the names and signatures are the driver's.

namespace {

using namespace heddle;

// As the device part of heddled's first window; under a sanitizer, which wants those addresses itself, of its last.
#ifdef HEDDLE_SANITIZED
constexpr uint64_t kBase = 0x7e8000000000, kWindow = 448 * kGiB;
#else
constexpr uint64_t kBase = 0x20000000000, kWindow = 2048 * kGiB;
#endif
constexpr uint64_t kAnywhere = kBase + kWindow / 2;  // reservations without a hint
constexpr uint64_t kMemory = 1 * kGiB;

struct Module {
  device::Module* loaded = nullptr;
  image::ModuleInfo info;
};
struct Function {
  device::Kernel* kernel = nullptr;
  const image::KernelInfo* info = nullptr;
};
struct Stream {
  device::StreamIndex index;
};
struct Event {
  device::Tag tag = 0;
};
struct Array {
  uint64_t memory = 0;
  Texture layout;
};
// What the driver's linker makes of several units, behind this and its size.
constexpr std::string_view kLinked = "linked by the driver for tests:";
struct Linked {
  std::string fatbins, image;
};
struct HostCall {
  CUhostFn function;
  void* argument;
};

struct Fake {
  std::mutex mutex;
  uint32_t users = 0;
  Fd board;
  std::unique_ptr<device::Context> context;
  std::thread completing;
  std::atomic<bool> stopping{false};
  uint32_t fault = 0;
  device::Tag last_tag = 0;
  device::StreamIndex last_stream = 1000;
  std::set<device::Tag> open;                        // handed over, not completed
  std::unordered_map<device::Tag, TimePoint> ended;  // of events
  std::unordered_map<device::Tag, HostCall> calls;
  std::map<uint64_t, Fd> memory;   // by handle
  std::map<uint64_t, int> mapped;  // which GPU's memory is at an address
  std::set<void*> registered;      // host memory
  uint64_t last_handle = 0, next_anywhere = kAnywhere;
  bool window_was_taken = false;  // when the context was made
  std::map<uint64_t, uint64_t> reserved;
  std::string printed;
  uint32_t last_object = 0;  // number of a texture or surface object
  std::vector<std::unique_ptr<Module>> modules;
  std::map<std::pair<Module*, std::string>, std::unique_ptr<Function>> functions;
};

Fake& fake() {
  static Fake* one = new Fake;  // outlives exit handlers
  return *one;
}

// What a test says of the GPU in a file beside the library, named as that is with an ending: ".free", how much memory
// nobody uses; ".room", how much can be made in one piece; ".fails", whether
// waiting for a stream fails; ".moves", that each process has modules' variables elsewhere.
std::ifstream beside_library(const char* ending) {
  const char* library = std::getenv("HEDDLE_CUDA_LIBRARY");
  return std::ifstream(library ? std::string(library) + ending : std::string());
}

// The machine's GPUs that this process sees, and whether they reach each other's memory.
struct Machine {
  std::vector<CUdevice> seen;
  bool apart = false;
};

std::string uuid_text(CUdevice device) {
  char text[64];
  const unsigned byte = 0x5e + static_cast<unsigned>(device);
  std::snprintf(text, sizeof text, "GPU-%08x-%04x-%04x-%04x-%08x%04x", byte * 0x1010101, byte * 0x101, byte * 0x101,
                byte * 0x101, byte * 0x1010101, byte * 0x101);
  return text;
}

const Machine& machine() {
  static const Machine one = [] {
    Machine machine;
    int count = 1;
    std::string apart;
    const bool several = static_cast<bool>(beside_library(".gpus") >> count);
    beside_library(".gpus") >> count >> apart;
    machine.apart = apart == "apart";
    const char* visible = several ? std::getenv("CUDA_VISIBLE_DEVICES") : nullptr;
    std::istringstream names(visible ? visible : "");
    for (std::string name; visible && std::getline(names, name, ',');) {
      for (int i = 0; i < count; ++i) {
        if (uuid_text(i) == name) machine.seen.push_back(i);
      }
    }
    for (int i = 0; !visible && i < count; ++i) machine.seen.push_back(i);
    return machine;
  }();
  return one;
}

// The GPU that memory was made on: its name says so, in whatever process.
int gpu_of(int descriptor) {
  char name[64] = {};
  int gpu = 0;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), name, sizeof name - 1) > 0) std::sscanf(name, "/memfd:fake-gpu-%d", &gpu);
  return gpu;
}

bool sees(int gpu) {
  const auto& seen = machine().seen;
  return std::find(seen.begin(), seen.end(), gpu) != seen.end();
}

DeviceModel model() {
  DeviceModel model = *device_preset("H200");
  model.sms = 4;
  model.memory_bytes = kMemory;
  model.slowdown = model.copy_slowdown = 0;
  return model;
}

CUresult state() {
  return static_cast<CUresult>(fake().fault);
}

void complete(const device::Completion& done) {
  Fake& all = fake();
  std::unique_lock lock(all.mutex);
  // As the real one: a failed assertion stands on standard error before anybody hears of the error.
  if (done.cuda_error == CUDA_ERROR_ASSERT && !all.fault) std::fprintf(stderr, "%s\n", done.text.c_str());
  if (done.cuda_error && !all.fault) all.fault = done.cuda_error;
  all.ended[done.tag] = done.ended;
  if (const auto call = all.calls.find(done.tag); call != all.calls.end()) {
    const HostCall what = call->second;
    all.calls.erase(call);
    lock.unlock();
    if (!done.cuda_error) what.function(what.argument);
    lock.lock();
    if (all.context) (void)all.context->release(done.tag);
  }
  all.open.erase(done.tag);
}

void complete_loop() {
  Fake& all = fake();
  device::Completion batch[16];
  while (!all.stopping) {
    const size_t count = all.context->completions(batch, std::chrono::milliseconds(100));
    for (size_t i = 0; i < count; ++i) complete(batch[i]);
  }
}

bool is_taken(uint64_t address) {
  void* got = ::mmap(reinterpret_cast<void*>(address), 4096, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return true;
  ::munmap(got, 4096);
  return false;
}

// The one place that builds: the compressor behind the builder must be left out of a shared library.
std::string fatbin_of(std::string_view ptx) {
  return image::FatbinBuilder().add(image::kFatbinPtx, 75, ptx).build();
}

// As what a process did on the device before: modules that are loaded later lie behind.
Status take_room_of_variables(int modules) {
  const std::string fatbin = fatbin_of(".version 7.5\n.target sm_75\n.address_size 64\n.global .align 4 .u32 room;\n");
  for (int i = 0; i < modules; ++i) {
    const auto loaded = fake().context->load(std::as_bytes(std::span(fatbin)));
    if (!loaded) return tl::unexpected(loaded.error());
  }
  return {};
}

Status open_context() {
  Fake& all = fake();
  all.window_was_taken = is_taken(kBase);
  device::ContextOptions options;
  options.model = model();
  options.window_base = kBase;
  options.window_bytes = kWindow;
  options.host_threads = 2;
  options.print = [](std::string_view text) {
    std::lock_guard lock(fake().mutex);
    fake().printed += text;
  };
  all.board = std::move(*create_memfd("fake-board", device::software_board_bytes(options.model)));
  auto context = device::open_software_context(options, all.board);
  if (!context) return tl::unexpected(context.error());
  all.context = std::move(*context);
  if (beside_library(".moves")) HEDDLE_TRY(take_room_of_variables(1 + ::getpid() % 5));
  all.stopping = false;
  all.completing = std::thread(complete_loop);
  return {};
}

// Nobody has promised that host memory is zero.
void dirty(const Fd& memory, Bytes size) {
  if (auto mapping = map_shared(memory, size)) std::memset(mapping->data(), 0xd1, mapping->size());
}

CUresult code(const Status& status) {
  if (status) return CUDA_SUCCESS;
  switch (status.error().code) {
    case ErrorCode::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case ErrorCode::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case ErrorCode::kLimitExceeded:
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Hands an operation over under a tag of its own.
template <class Call>
CUresult hand_over(Call call, device::Tag* tag_of = nullptr) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  if (all.fault) return state();
  if (!all.context) return CUDA_ERROR_INVALID_CONTEXT;
  const device::Tag tag = ++all.last_tag;
  all.open.insert(tag);
  const Status status = call(*all.context, tag);
  if (!status) all.open.erase(tag);
  if (tag_of) *tag_of = tag;
  return code(status);
}

device::StreamIndex index_of(CUstream stream) {
  return stream ? reinterpret_cast<Stream*>(stream)->index : 0;
}

CUresult copy(CUstream stream, device::CopyDirection direction, const device::CopyShape& shape) {
  return hand_over(
      [&](device::Context& context, device::Tag tag) { return context.copy(index_of(stream), direction, shape, tag); });
}

CUresult fill(CUstream stream, uint64_t at, uint64_t pitch, uint32_t value, uint32_t element, uint64_t width,
              uint64_t height) {
  device::FillShape shape;
  shape.to = {at, pitch};
  shape.width = width * element;
  shape.height = height;
  shape.value = value;
  shape.element_bytes = element;
  return hand_over(
      [&](device::Context& context, device::Tag tag) { return context.fill(index_of(stream), shape, tag); });
}

bool done(device::Tag tag) {
  std::lock_guard lock(fake().mutex);
  return !fake().open.contains(tag);
}

void flush_prints() {
  std::string text;
  {
    std::lock_guard lock(fake().mutex);
    text.swap(fake().printed);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

CUresult launch(CUfunction function, device::Dim3 grid, device::Dim3 block, unsigned shared, CUstream stream,
                void** arguments, bool cooperative) {
  const auto& target = *reinterpret_cast<Function*>(function);
  std::vector<std::byte> parameters(target.info->parameter_bytes);
  for (size_t i = 0; i < target.info->parameters.size(); ++i) {
    const auto [offset, size] = target.info->parameters[i];
    std::memcpy(parameters.data() + offset, arguments[i], size);
  }
  const device::LaunchConfig config{grid, block, shared, cooperative, parameters};
  return hand_over([&](device::Context& context, device::Tag tag) {
    return context.launch(index_of(stream), *target.kernel, config, tag);
  });
}

// CUDA arrays: their elements lie in rows here, which nobody can tell from outside.
Texture layout_of(const CUDA_ARRAY3D_DESCRIPTOR& of) {
  Texture layout;
  layout.width = static_cast<uint32_t>(of.Width);
  layout.height = static_cast<uint32_t>(std::max<size_t>(of.Height, 1));
  layout.depth = static_cast<uint32_t>(std::max<size_t>(of.Depth, 1));
  const bool layered = of.Flags & CUDA_ARRAY3D_LAYERED, cube = of.Flags & CUDA_ARRAY3D_CUBEMAP;
  layout.shape = cube        ? layered ? TextureShape::kCubeLayered : TextureShape::kCube
                 : layered   ? of.Height ? TextureShape::k2DLayered : TextureShape::k1DLayered
                 : of.Depth  ? TextureShape::k3D
                 : of.Height ? TextureShape::k2D
                             : TextureShape::k1D;
  return layout;
}

void set_format(Texture& texture, CUarray_format format, unsigned channels) {
  texture.channels = static_cast<uint8_t>(channels);
  texture.kind = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF ? TexelKind::kFloat
                 : format < CU_AD_FORMAT_SIGNED_INT8                         ? TexelKind::kUnsigned
                                                                             : TexelKind::kSigned;
  const bool one = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8;
  const bool four =
      format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32 || format == CU_AD_FORMAT_FLOAT;
  texture.channel_bytes = one ? 1 : four ? 4 : 2;
}

Texture texture_of(const CUDA_RESOURCE_DESC& resource) {
  Texture texture;
  if (resource.resType == CU_RESOURCE_TYPE_ARRAY) {
    return reinterpret_cast<Array*>(resource.res.array.hArray)->layout;
  } else if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    const auto& linear = resource.res.linear;
    set_format(texture, linear.format, linear.numChannels);
    texture.address = linear.devPtr;
    texture.flags = Texture::kBuffer;
    texture.width = static_cast<uint32_t>(linear.sizeInBytes / texture.texel_bytes());
  } else {
    const auto& rows = resource.res.pitch2D;
    set_format(texture, rows.format, rows.numChannels);
    texture.address = rows.devPtr;
    texture.shape = TextureShape::k2D;
    texture.width = static_cast<uint32_t>(rows.width);
    texture.height = static_cast<uint32_t>(rows.height);
    texture.pitch = rows.pitchInBytes;
  }
  return texture;
}

void set_sampling(Texture& texture, const CUDA_TEXTURE_DESC& sampling) {
  for (int i = 0; i < 3; ++i) texture.modes[i] = static_cast<AddressMode>(sampling.addressMode[i]);
  if (sampling.filterMode == CU_TR_FILTER_MODE_LINEAR) texture.flags |= Texture::kLinearFilter;
  if (sampling.flags & CU_TRSF_NORMALIZED_COORDINATES) texture.flags |= Texture::kNormalizedCoordinates;
  if (sampling.flags & CU_TRSF_SRGB) texture.flags |= Texture::kSrgb;
  if (texture.kind != TexelKind::kFloat && !(sampling.flags & CU_TRSF_READ_AS_INTEGER))
    texture.flags |= Texture::kNormalizedValues;
  std::memcpy(texture.border, sampling.borderColor, sizeof texture.border);
}

// Numbers as the real one gives them at its worst: those given back are not free again for a long time.
CUresult add_object(unsigned long long* object, const Texture& texture) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  if (all.fault) return state();
  const uint32_t number = all.last_object + 1;
  if (const Status made = all.context->set_texture(number, texture); !made) return code(made);
  *object = all.last_object = number;
  return CUDA_SUCCESS;
}

CUresult remove_object(unsigned long long object) {
  std::lock_guard lock(fake().mutex);
  return code(fake().context->remove_texture(object));
}

// Memory that the process has for itself.
uint64_t take_memory(uint64_t bytes) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  if (!all.context || bytes > kMemory) return 0;
  const auto memory = create_memfd("fake-array", Bytes{bytes});
  const uint64_t at = all.next_anywhere;
  if (!memory || !all.context->map(at, Bytes{bytes}, *memory, false)) return 0;
  all.next_anywhere += bytes + 2 * kMiB;
  return at;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

API cuInit(unsigned) {
  return CUDA_SUCCESS;
}
API cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
API cuGetErrorName(CUresult, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
API cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the driver for tests";
  return CUDA_SUCCESS;
}
API cuDeviceGetCount(int* count) {
  *count = static_cast<int>(machine().seen.size());
  return CUDA_SUCCESS;
}
API cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= machine().seen.size()) return CUDA_ERROR_INVALID_DEVICE;
  *device = machine().seen[static_cast<size_t>(ordinal)];
  return CUDA_SUCCESS;
}
API cuDeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<size_t>(size), "heddle test GPU");
  return CUDA_SUCCESS;
}
API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const DeviceModel m = model();
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = static_cast<int>(m.sms);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = static_cast<int>(m.max_threads_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = static_cast<int>(m.max_blocks_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      *value = static_cast<int>(m.registers_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = static_cast<int>(m.shared_bytes_per_sm);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = static_cast<int>(m.shared_bytes_per_block);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = static_cast<int>(m.shared_bytes_per_block_optin);
      break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = static_cast<int>(m.shared_bytes_reserved_per_block);
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(m.max_threads_per_block);
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
      *value = 0;
      break;
    default:
      *value = 1;
  }
  return CUDA_SUCCESS;
}
API cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = kMemory;
  return CUDA_SUCCESS;
}
API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, 0x5e + device, sizeof *uuid);
  return CUDA_SUCCESS;
}
API cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", 0x5e + static_cast<unsigned>(device));
  return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  if (all.users == 0 && !open_context()) return CUDA_ERROR_OUT_OF_MEMORY;
  ++all.users;
  *context = reinterpret_cast<CUcontext>(&all);
  return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease(CUdevice) {
  Fake& all = fake();
  std::unique_lock lock(all.mutex);
  if (all.users == 0 || --all.users > 0) return CUDA_SUCCESS;
  all.stopping = true;
  lock.unlock();
  all.context->wake();
  all.completing.join();
  lock.lock();
  all.context.reset();
  all.fault = 0;
  all.open.clear();
  all.last_object = 0;
  all.functions.clear();
  all.modules.clear();
  return CUDA_SUCCESS;
}
API cuCtxSetCurrent(CUcontext) {
  return CUDA_SUCCESS;
}
API cuCtxSetLimit(CUlimit limit, size_t bytes) {
  if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) return bytes > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (limit != CU_LIMIT_STACK_SIZE && limit != CU_LIMIT_MALLOC_HEAP_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const auto which = limit == CU_LIMIT_STACK_SIZE ? device::Limit::kStackBytes : device::Limit::kHeapBytes;
  std::lock_guard lock(fake().mutex);
  return fake().context ? code(fake().context->set_limit(which, bytes)) : CUDA_ERROR_INVALID_CONTEXT;
}
API cuCtxSynchronize() {
  return state();
}
API cuMemGetInfo(size_t* free, size_t* total) {
  *total = kMemory;
  *free = kMemory / 2;
  if (size_t said; beside_library(".free") >> said) *free = said;
  return CUDA_SUCCESS;
}
API cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                unsigned long long) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  const bool on_host = properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  const std::string name = on_host ? "fake-host" : "fake-gpu-" + std::to_string(properties->location.id);
  auto memory = create_memfd(name.c_str(), Bytes{size});
  size_t room = kMemory;
  if (size_t said; beside_library(on_host ? ".host_room" : ".room") >> said) room = said;
  if (!memory || size > room) return CUDA_ERROR_OUT_OF_MEMORY;
  if (on_host) dirty(*memory, Bytes{size});
  *handle = ++all.last_handle;
  all.memory[*handle] = std::move(*memory);
  return CUDA_SUCCESS;
}
API cuMemRelease(CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(fake().mutex);
  return fake().memory.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                 unsigned long long) {
  std::lock_guard lock(fake().mutex);
  auto copy = fake().memory.at(handle).duplicate();
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  *static_cast<int*>(out) = copy->release();
  return CUDA_SUCCESS;
}
API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor, CUmemAllocationHandleType) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  const int fd = ::dup(static_cast<int>(reinterpret_cast<intptr_t>(descriptor)));
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  if (!sees(gpu_of(fd))) {
    ::close(fd);
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *handle = ++all.last_handle;
  all.memory[*handle] = Fd(fd);
  return CUDA_SUCCESS;
}
API cuMemAddressReserve(CUdeviceptr* at, size_t size, size_t, CUdeviceptr hint, unsigned long long) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  uint64_t where = hint;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (!hint) {
    where = all.next_anywhere;
    all.next_anywhere += round_up(size, 2 * kMiB) + 2 * kMiB;
  } else if (where < kBase || where + size > kBase + kWindow || all.window_was_taken) {
    // As the real one: what was mapped when the context was made is never given out, but other addresses.
    flags &= ~MAP_FIXED_NOREPLACE;
    where = 0;
  }
  void* got = ::mmap(reinterpret_cast<void*>(where), size, PROT_NONE, flags, -1, 0);
  if (got == MAP_FAILED || (where && got != reinterpret_cast<void*>(where))) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = reinterpret_cast<uintptr_t>(got);
  all.reserved[*at] = size;
  return CUDA_SUCCESS;
}
API cuMemAddressFree(CUdeviceptr at, size_t size) {
  std::lock_guard lock(fake().mutex);
  if (!fake().reserved.erase(at)) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reinterpret_cast<void*>(at), size);
  return CUDA_SUCCESS;
}
API cuMemMap(CUdeviceptr at, size_t size, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  const auto memory = all.memory.find(handle);
  if (memory == all.memory.end()) return CUDA_ERROR_INVALID_VALUE;
  all.mapped[at] = gpu_of(memory->second.get());
  return code(all.context->map(at, Bytes{size}, memory->second, false));
}
API cuMemUnmap(CUdeviceptr at, size_t size) {
  std::unique_lock lock(fake().mutex);
  // A faulted GPU has stopped; the software device's threads take a moment.
  while (fake().fault && !fake().open.empty()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  return fake().context ? code(fake().context->unmap(at, Bytes{size})) : CUDA_ERROR_INVALID_CONTEXT;
}
API cuMemSetAccess(CUdeviceptr at, size_t, const CUmemAccessDesc* access, size_t) {
  std::lock_guard lock(fake().mutex);
  const bool peer = fake().mapped[at] != access->location.id;
  return peer && machine().apart ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
API cuMemHostAlloc(void** at, size_t size, unsigned) {
  *at = std::malloc(size);
  return *at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
API cuMemFreeHost(void* at) {
  std::free(at);
  return CUDA_SUCCESS;
}
API cuMemHostRegister(void* at, size_t, unsigned) {
  std::lock_guard lock(fake().mutex);
  return fake().registered.insert(at).second ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}
API cuMemHostUnregister(void* at) {
  std::lock_guard lock(fake().mutex);
  return fake().registered.erase(at) > 0 ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
API cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  auto array = std::make_unique<Array>();
  Texture& layout = array->layout = layout_of(*description);
  set_format(layout, description->Format, description->NumChannels);
  layout.pitch = uint64_t{layout.width} * layout.texel_bytes();
  layout.slice = layout.pitch * layout.height;
  array->memory = layout.address = take_memory(round_up(layout.bytes(), 2 * kMiB));
  if (!array->memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUarray>(array.release());
  return CUDA_SUCCESS;
}
API cuArrayDestroy(CUarray array) {
  const std::unique_ptr<Array> gone(reinterpret_cast<Array*>(array));
  return cuMemUnmap(gone->memory, round_up(gone->layout.bytes(), 2 * kMiB));
}
API cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* sampling,
                      const CUDA_RESOURCE_VIEW_DESC*) {
  Texture texture = texture_of(*resource);
  set_sampling(texture, *sampling);
  return add_object(out, texture);
}
API cuTexObjectDestroy(CUtexObject object) {
  return remove_object(object);
}
API cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  Texture texture = texture_of(*resource);
  texture.flags = Texture::kSurface;
  return add_object(out, texture);
}
API cuSurfObjectDestroy(CUsurfObject object) {
  return remove_object(object);
}
// PTX, as a text that ends with zero, or what the linker below made. Machine code is for a GPU.
API cuModuleLoadData(CUmodule* out, const void* data) {
  Fake& all = fake();
  const std::string_view ptx(static_cast<const char*>(data));
  if (ptx.starts_with("\x7f"
                      "ELF"))
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  std::string container;
  if (ptx.starts_with(kLinked)) {
    size_t bytes = 0;
    std::memcpy(&bytes, ptx.data() + kLinked.size(), sizeof bytes);
    container.assign(ptx.data() + kLinked.size() + sizeof bytes, bytes);
  } else {
    container = fatbin_of(ptx);
  }
  const auto fatbin = std::as_bytes(std::span(container));
  const auto fatbins = image::split_fatbins(fatbin);
  if (!fatbins) return CUDA_ERROR_INVALID_IMAGE;
  const auto images = image::read_fatbins(*fatbins);
  if (!images) return CUDA_ERROR_INVALID_IMAGE;
  auto info = image::describe(*images, 90);
  if (!info) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  std::lock_guard lock(all.mutex);
  auto loaded = all.context->load(fatbin);
  if (!loaded) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  all.modules.push_back(std::make_unique<Module>(Module{*loaded, std::move(*info)}));
  *out = reinterpret_cast<CUmodule>(all.modules.back().get());
  return CUDA_SUCCESS;
}
// The units' texts side by side: the software device links them when it loads them.
API cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
  *state = reinterpret_cast<CUlinkState>(new Linked);
  return CUDA_SUCCESS;
}
API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*, unsigned,
                  CUjit_option*, void**) {
  const std::string_view text(static_cast<const char*>(data), bytes);
  if (type != CU_JIT_INPUT_PTX || !text.ends_with('\0')) return CUDA_ERROR_INVALID_PTX;
  reinterpret_cast<Linked*>(state)->fatbins += fatbin_of(text.substr(0, bytes - 1));
  return CUDA_SUCCESS;
}
API cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  auto& linked = *reinterpret_cast<Linked*>(state);
  const size_t size = linked.fatbins.size();
  linked.image = std::string(kLinked) + std::string(reinterpret_cast<const char*>(&size), sizeof size) + linked.fatbins;
  *image = linked.image.data();
  *bytes = linked.image.size();
  return CUDA_SUCCESS;
}
API cuLinkDestroy(CUlinkState state) {
  delete reinterpret_cast<Linked*>(state);
  return CUDA_SUCCESS;
}
API cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}
API cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  auto* owner = reinterpret_cast<Module*>(module);
  const auto kernel = all.context->kernel(*owner->loaded, name);
  const image::KernelInfo* info = owner->info.kernel(name);
  if (!kernel || !info) return CUDA_ERROR_NOT_FOUND;
  auto& function = all.functions[{owner, name}];
  if (!function) function = std::make_unique<Function>(Function{*kernel, info});
  *out = reinterpret_cast<CUfunction>(function.get());
  return CUDA_SUCCESS;
}
API cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  *count = static_cast<unsigned>(reinterpret_cast<Module*>(module)->info.kernels.size());
  return CUDA_SUCCESS;
}
API cuModuleEnumerateFunctions(CUfunction* out, unsigned count, CUmodule module) {
  const auto& kernels = reinterpret_cast<Module*>(module)->info.kernels;
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i < count && i < kernels.size() && result == CUDA_SUCCESS; ++i)
    result = cuModuleGetFunction(&out[i], module, kernels[i].name.c_str());
  return result;
}
// All of them are loaded with their module.
API cuFuncLoad(CUfunction) {
  return CUDA_SUCCESS;
}
API cuModuleGetGlobal(CUdeviceptr* at, size_t* bytes, CUmodule module, const char* name) {
  std::lock_guard lock(fake().mutex);
  const auto found = fake().context->variable(*reinterpret_cast<Module*>(module)->loaded, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *at = found->address;
  *bytes = found->bytes;
  return CUDA_SUCCESS;
}
API cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}
API cuFuncSetAttribute(CUfunction, CUfunction_attribute, int value) {
  return value <= static_cast<int>(model().shared_bytes_per_block_optin) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  const auto& parameters = reinterpret_cast<Function*>(function)->info->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  *size = parameters[index].size;
  return CUDA_SUCCESS;
}
API cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CUstream stream, void** arguments, void**) {
  return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, false);
}
API cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream stream, void** arguments) {
  return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, true);
}
API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  return hand_over([&](device::Context& context, device::Tag tag) {
    fake().calls[tag] = {function, argument};
    return context.hold(index_of(stream), tag);
  });
}
struct WrittenValue {
  uint64_t address, value;
};
API cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  const auto write = [](void* given) {
    const std::unique_ptr<WrittenValue> written(static_cast<WrittenValue*>(given));
    std::atomic_ref(*reinterpret_cast<uint64_t*>(written->address)).store(written->value, std::memory_order_release);
  };
  return cuLaunchHostFunc(stream, write, new WrittenValue{address, value});
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
  *blocks = 1;
  return CUDA_SUCCESS;
}
API cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  if (all.fault) return state();
  auto* stream = new Stream{++all.last_stream};
  *out = reinterpret_cast<CUstream>(stream);
  return code(all.context->create_stream(stream->index, flags == CU_STREAM_NON_BLOCKING, priority));
}
API cuStreamDestroy(CUstream stream) {
  Fake& all = fake();
  std::lock_guard lock(all.mutex);
  const CUresult result = code(all.context->destroy_stream(index_of(stream)));
  delete reinterpret_cast<Stream*>(stream);
  return result;
}
API cuEventCreate(CUevent* out, unsigned) {
  *out = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
API cuEventDestroy(CUevent event) {
  delete reinterpret_cast<Event*>(event);
  return CUDA_SUCCESS;
}
API cuEventRecord(CUevent event, CUstream stream) {
  return hand_over([&](device::Context& context, device::Tag tag) { return context.mark(index_of(stream), tag); },
                   &reinterpret_cast<Event*>(event)->tag);
}
API cuEventQuery(CUevent event) {
  if (!done(reinterpret_cast<Event*>(event)->tag)) return fake().fault ? state() : CUDA_ERROR_NOT_READY;
  return state();
}
API cuEventSynchronize(CUevent event) {
  while (!done(reinterpret_cast<Event*>(event)->tag) && !fake().fault)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  flush_prints();
  return state();
}
API cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  std::lock_guard lock(fake().mutex);
  const auto at = [](CUevent event) { return fake().ended[reinterpret_cast<Event*>(event)->tag]; };
  *milliseconds = static_cast<float>((at(to) - at(from)).count()) / 1e6f;
  return CUDA_SUCCESS;
}
API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return hand_over([&](device::Context& context, device::Tag tag) {
    return context.wait(index_of(stream), reinterpret_cast<Event*>(event)->tag, tag);
  });
}
API cuStreamSynchronize(CUstream stream) {
  Event event;
  const CUresult result = cuEventRecord(reinterpret_cast<CUevent>(&event), stream);
  const CUresult done = result == CUDA_SUCCESS ? cuEventSynchronize(reinterpret_cast<CUevent>(&event)) : result;
  bool fails = false;
  return beside_library(".fails") >> fails && fails ? CUDA_ERROR_ILLEGAL_ADDRESS : done;
}
API cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(stream, device::CopyDirection::kToDevice, {{to}, {reinterpret_cast<uintptr_t>(from)}, bytes});
}
API cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, device::CopyDirection::kToHost, {{reinterpret_cast<uintptr_t>(to)}, {from}, bytes});
}
API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, device::CopyDirection::kOnDevice, {{to}, {from}, bytes});
}
API cuMemcpy2DAsync(const CUDA_MEMCPY2D* plane, CUstream stream) {
  const bool from_host = plane->srcMemoryType == CU_MEMORYTYPE_HOST,
             to_host = plane->dstMemoryType == CU_MEMORYTYPE_HOST;
  const uint64_t from = from_host ? reinterpret_cast<uintptr_t>(plane->srcHost) : plane->srcDevice;
  const uint64_t to = to_host ? reinterpret_cast<uintptr_t>(plane->dstHost) : plane->dstDevice;
  const auto direction = from_host ? device::CopyDirection::kToDevice
                         : to_host ? device::CopyDirection::kToHost
                                   : device::CopyDirection::kOnDevice;
  return copy(stream, direction, {{to, plane->dstPitch}, {from, plane->srcPitch}, plane->WidthInBytes, plane->Height});
}
API cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream) {
  return fill(stream, at, 0, value, 1, count, 1);
}
API cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream) {
  return fill(stream, at, 0, value, 2, count, 1);
}
API cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream) {
  return fill(stream, at, 0, value, 4, count, 1);
}
API cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream) {
  return fill(stream, at, pitch, value, 1, width, height);
}
API cuMemsetD2D16Async(CUdeviceptr at, size_t pitch, unsigned short value, size_t width, size_t height,
                       CUstream stream) {
  return fill(stream, at, pitch, value, 2, width, height);
}
API cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream) {
  return fill(stream, at, pitch, value, 4, width, height);
}

// NOLINTEND
