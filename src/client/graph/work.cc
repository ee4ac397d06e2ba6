#include "client/graph/work.h"

namespace heddle::client {
namespace {

// cudaGraphMemcpyNodeGetParams' view of a place. A variable has no pointer of the program's.
cudaPitchedPtr pointer_to(const CopyPlace& place, const CopyShape& shape) {
  if (place.kind == CopyPlace::kVariable) return {nullptr, place.pitch, shape.width, shape.height};
  return {reinterpret_cast<void*>(place.address), place.pitch, shape.width,
          place.pitch > 0 ? place.slice / place.pitch : shape.height};
}

cudaMemcpyKind kind_of(const CopyPlan& plan) {
  if (plan.to.on_device()) return plan.from.on_device() ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return plan.from.on_device() ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

}  // namespace

std::vector<void*> KernelWork::arguments() {
  const image::KernelInfo& info = *function->info.load(std::memory_order_acquire);
  std::vector<void*> pointers;
  for (const auto& [offset, size] : info.parameters) pointers.push_back(values.data() + offset);
  return pointers;
}

cudaGraphNodeType type_of(const Work& work) {
  constexpr cudaGraphNodeType kTypes[] = {
      cudaGraphNodeTypeEmpty,    cudaGraphNodeTypeKernel,      cudaGraphNodeTypeMemcpy,      cudaGraphNodeTypeMemset,
      cudaGraphNodeTypeHost,     cudaGraphNodeTypeEventRecord, cudaGraphNodeTypeWaitEvent,   cudaGraphNodeTypeGraph,
      cudaGraphNodeTypeMemAlloc, cudaGraphNodeTypeMemFree,     cudaGraphNodeTypeConditional, cudaGraphNodeTypeKernel,
  };
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

VirtualDevice* device_of(const Work& work) {
  if (const auto* kernel = std::get_if<KernelWork>(&work)) return kernel->device;
  if (const auto* called = std::get_if<LibraryWork>(&work)) return called->device;
  if (const auto* fill = std::get_if<FillWork>(&work)) return fill->fill.to.device;
  if (const auto* made = std::get_if<AllocWork>(&work)) return made->memory->range->device;
  if (const auto* freed = std::get_if<FreeWork>(&work)) return freed->memory->range->device;
  if (const auto* conditional = std::get_if<ConditionalWork>(&work)) return &conditional->choice->condition->device();
  const auto* copy = std::get_if<CopyWork>(&work);
  if (!copy) return nullptr;
  return copy->plan.to.on_device() ? copy->plan.to.device : copy->plan.from.device;
}

Work kernel_work(const void* key, Function& function, VirtualDevice* device, const LaunchShape& shape,
                 void** arguments) {
  const image::KernelInfo& info = *function.info.load(std::memory_order_acquire);
  KernelWork work{key, &function, device, shape, std::vector<char>(info.parameter_bytes)};
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const auto [offset, size] = info.parameters[i];
    std::memcpy(work.values.data() + offset, arguments[i], size);
  }
  return work;
}

Answer<Work> kernel_work(const cudaKernelNodeParams* p) {
  if (!p || (p->kernelParams && p->extra)) return refuse(cudaErrorInvalidValue);
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  auto function = prepared_function(p->func);
  if (!function) return tl::unexpected(std::move(function).error());
  const LaunchShape shape{p->gridDim, p->blockDim, p->sharedMemBytes, false};
  HEDDLE_ANSWER(check_launch(**function, shape, **device));
  const image::KernelInfo& info = *(*function)->info.load(std::memory_order_acquire);
  if (p->extra) {
    const auto packed = packed_parameters(p->extra, info.parameter_bytes);
    if (!packed) return tl::unexpected(packed.error());
    return KernelWork{p->func, *function, *device, shape, {*packed, *packed + info.parameter_bytes}};
  }
  if (!p->kernelParams && !info.parameters.empty()) return refuse(cudaErrorInvalidValue);
  return kernel_work(p->func, **function, *device, shape, p->kernelParams);
}

Answer<Work> copy_work(const CopyPlan& plan) {
  if (plan.shape.empty()) return EmptyWork{};
  if (plan.to.on_device() && plan.from.on_device() && plan.to.device != plan.from.device)
    return refuse(cudaErrorNotSupported, "a copy between two devices in a CUDA graph is not supported");
  CopyWork work{plan};
  work.parameters.dstPtr = pointer_to(plan.to, plan.shape);
  work.parameters.srcPtr = pointer_to(plan.from, plan.shape);
  work.parameters.extent = {plan.shape.width, plan.shape.height, plan.shape.depth};
  work.parameters.kind = kind_of(plan);
  return work;
}

Answer<Work> copy_work(Answer<CopyPlan> plan) {
  if (!plan) return tl::unexpected(std::move(plan).error());
  if (plan->shape.empty()) return refuse(cudaErrorInvalidValue);
  return copy_work(*plan);
}

Answer<Work> copy_work(const cudaMemcpy3DParms* p) {
  if (!p) return refuse(cudaErrorInvalidValue);
  auto work = copy_work(plan_box(*p));
  if (work) std::get<CopyWork>(*work).parameters = *p;
  return work;
}

Work fill_work(const Fill& fill) {
  const auto& [to, shape, value, element_bytes] = fill;
  return FillWork{fill,
                  {reinterpret_cast<void*>(to.address), to.pitch, value, element_bytes, shape.width / element_bytes,
                   shape.height * shape.depth}};
}

Answer<Work> fill_work(const cudaMemsetParams* p) {
  if (!p || !p->dst || p->width == 0 || p->height == 0) return refuse(cudaErrorInvalidValue);
  if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) return refuse(cudaErrorInvalidValue);
  if (p->width > UINT64_MAX / p->elementSize) return refuse(cudaErrorInvalidValue);
  const uint64_t width = p->width * p->elementSize, pitch = p->height > 1 ? p->pitch : width;
  if (width > pitch) return refuse(cudaErrorInvalidValue);
  auto place = place_of(p->dst, pitch, pitch * p->height);
  if (!place) return tl::unexpected(std::move(place).error());
  if (!place->in_window() || place->address % p->elementSize != 0 || pitch % p->elementSize != 0)
    return refuse(cudaErrorInvalidValue);
  return FillWork{{*place, {width, p->height, 1}, p->value, p->elementSize}, *p};
}

Answer<Work> host_work(const cudaHostNodeParams* p) {
  if (!p || !p->fn) return refuse(cudaErrorInvalidValue);
  return HostWork{p->fn, p->userData};
}

}  // namespace heddle::client
