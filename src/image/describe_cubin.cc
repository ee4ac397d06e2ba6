// A cubin describes its kernels in "info" sections: .nv.info for the module, .nv.info.<kernel> for each kernel. Each is
// a row of attributes: a byte that says how the value is stored, a byte with the attribute's number, then
//
//   format 1     nothing (two unused bytes)
//   format 2, 3  the value, 8 or 16 bits in the next two bytes
//   format 4     16 bits of size, then that many bytes
//
// NVIDIA does not document them. The numbers below were read from the output of ptxas 13.0 for sm_75 to sm_120 and
// checked against `ptxas -v` and against cudaFuncGetAttributes on an H200.

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/units.h"
#include "image/describe.h"
#include "image/elf_view.h"
#include "image/no_throw.h"

namespace heddle::image {
namespace {

enum Attribute : uint8_t {
  kMaxThreads = 0x05,          // 3 x u32: .maxntid
  kRequiredThreads = 0x10,     // 3 x u32: .reqntid
  kFrameSize = 0x11,           // u32 symbol, u32 bytes: the stack frame of a function (module)
  kMinStackSize = 0x12,        // u32 symbol, u32 bytes: with what it calls (module)
  kParameterInfo = 0x17,       // u32 index, u16 ordinal, u16 offset, u32 flags with the size in bits 31:18
  kParameterBlockSize = 0x19,  // 16 bits: bytes of all parameters
  kRegisterCount = 0x2f,       // u32 symbol, u32 registers per thread (module)
  kParameterInfo2 = 0x45,      // u32 index, u16 ordinal, u16 offset, u16 size, u16 flags: for larger ones
};

enum Format : uint8_t { kNoValue = 1, kByte = 2, kHalf = 3, kSized = 4 };

// Elf64_Sym::st_other of a kernel, and of a managed variable.
constexpr uint8_t kEntrySymbol = 0x10, kManagedSymbol = 0x04;

// From sm_90 on the sections of shared memory begin with what the system reserves in every block
// (cudaDevAttrReservedSharedMemoryPerBlock); the presence of this section tells.
constexpr std::string_view kReservedSharedSection = ".nv.shared.reserved.0";
constexpr uint64_t kReservedShared = 1024;
constexpr uint64_t kSharedStep = 16;  // as the driver reports it

// Calls visit(number, format, inline value, bytes) for every attribute of an info section.
template <class Visitor>
Status each_attribute(const ElfView::Section& section, Visitor&& visit) {
  ByteSpan rest = section.contents;
  while (!rest.empty()) {
    const auto format = read_at<uint8_t>(rest, 0), number = read_at<uint8_t>(rest, 1);
    const auto value = read_at<uint16_t>(rest, 2);
    const auto bytes = value ? slice(rest, 4, *format == kSized ? *value : 0) : std::nullopt;
    if (!bytes || *format < kNoValue || *format > kSized) {
      return fail(ErrorCode::kCorrupt, "section %.*s of a cubin has a malformed attribute, %zu bytes before its end",
                  static_cast<int>(std::min<size_t>(section.name.size(), 200)), section.name.data(), rest.size());
    }
    HEDDLE_TRY(visit(*number, *value, *bytes));
    rest = rest.subspan(4 + bytes->size());
  }
  return {};
}

struct Resources {
  uint32_t registers = 0;
  uint32_t stack = 0;
};

// What the module's .nv.info says about each symbol.
Result<std::unordered_map<uint32_t, Resources>> read_resources(const ElfView& elf) {
  std::unordered_map<uint32_t, Resources> resources;
  const ElfView::Section* section = elf.section(".nv.info");
  if (!section) return resources;
  HEDDLE_TRY(each_attribute(*section, [&](uint8_t number, uint16_t, ByteSpan bytes) -> Status {
    const auto symbol = read_at<uint32_t>(bytes, 0), value = read_at<uint32_t>(bytes, 4);
    if (!symbol || !value) return {};
    if (number == kRegisterCount) resources[*symbol].registers = *value;
    // All ones stands for "not known", as with recursion.
    if ((number == kFrameSize || number == kMinStackSize) && *value != std::numeric_limits<uint32_t>::max()) {
      resources[*symbol].stack = std::max(resources[*symbol].stack, *value);
    }
    return {};
  }));
  return resources;
}

// A parameter with its place in the signature; info sections list them in any order.
struct NumberedParameter {
  uint16_t ordinal;
  Parameter parameter;
};

Status read_parameter(uint8_t number, ByteSpan bytes, std::vector<NumberedParameter>& into) {
  const auto ordinal = read_at<uint16_t>(bytes, 4), offset = read_at<uint16_t>(bytes, 6);
  const auto last = read_at<uint32_t>(bytes, 8);
  if (!ordinal || !offset || !last)
    return fail(ErrorCode::kCorrupt, "a cubin's parameter entry has %zu bytes", bytes.size());
  const uint32_t size = number == kParameterInfo2 ? *last & 0xffff : *last >> 18;
  into.push_back({*ordinal, {*offset, size}});
  return {};
}

uint32_t thread_product(ByteSpan bytes) {
  uint64_t product = 1;
  for (uint64_t at = 0; const auto extent = read_at<uint32_t>(bytes, at); at += sizeof(uint32_t)) {
    product = std::min<uint64_t>(product * *extent, kMaxThreadsPerBlock);
  }
  return static_cast<uint32_t>(product);
}

Status read_kernel_info(const ElfView::Section& section, KernelInfo& kernel) {
  std::vector<NumberedParameter> parameters;
  HEDDLE_TRY(each_attribute(section, [&](uint8_t number, uint16_t value, ByteSpan bytes) -> Status {
    if (number == kParameterInfo || number == kParameterInfo2) return read_parameter(number, bytes, parameters);
    if (number == kMaxThreads || number == kRequiredThreads) kernel.max_threads = thread_product(bytes);
    if (number == kParameterBlockSize) kernel.parameter_bytes = value;
    return {};
  }));
  std::sort(parameters.begin(), parameters.end(),
            [](const NumberedParameter& a, const NumberedParameter& b) { return a.ordinal < b.ordinal; });
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i].parameter;
    if (parameters[i].ordinal != i || uint64_t{parameter.offset} + parameter.size > kernel.parameter_bytes) {
      return fail(ErrorCode::kCorrupt, "a cubin's kernel %s has parameter %u at %u+%u of %u bytes in place %zu",
                  kernel.name.c_str(), parameters[i].ordinal, parameter.offset, parameter.size, kernel.parameter_bytes,
                  i);
    }
    kernel.parameters.push_back(parameter);
  }
  return {};
}

Result<uint32_t> static_shared(const ElfView& elf, const std::string& kernel) {
  const ElfView::Section* section = elf.section(".nv.shared." + kernel);
  if (!section) return 0;
  const uint64_t reserved = elf.section(kReservedSharedSection) ? std::min(kReservedShared, section->size) : 0;
  const uint64_t size = section->size - reserved;
  if (size > std::numeric_limits<uint32_t>::max() - kSharedStep) {
    return fail(ErrorCode::kCorrupt, "a cubin's kernel %s has %llu bytes of static shared memory", kernel.c_str(),
                static_cast<unsigned long long>(size));
  }
  return static_cast<uint32_t>(round_up(size, kSharedStep));
}

Result<KernelInfo> describe_kernel(const ElfView& elf, const ElfView::Symbol& symbol, const Resources& resources) {
  KernelInfo kernel;
  kernel.name = symbol.name;
  if (const auto* info = elf.section(".nv.info." + kernel.name)) HEDDLE_TRY(read_kernel_info(*info, kernel));
  const auto shared = static_shared(elf, kernel.name);
  if (!shared) return tl::unexpected(shared.error());
  kernel.static_shared = *shared;
  kernel.local_bytes = resources.stack;
  kernel.registers = resources.registers;
  // Before sm_90 the code section has the number too, in bits 31:24; older assemblers put it only there.
  const ElfView::Section* code = elf.section(symbol.section);
  if (kernel.registers == 0 && code) kernel.registers = code->info >> 24;
  if (const auto* constants = elf.section(".nv.constant3")) {
    kernel.constant_bytes =
        static_cast<uint32_t>(std::min<uint64_t>(constants->size, std::numeric_limits<uint32_t>::max()));
  }
  return kernel;
}

void add_variable(const ElfView& elf, const ElfView::Symbol& symbol, std::vector<VariableInfo>& variables) {
  const ElfView::Section* section = elf.section(symbol.section);
  if (!section) return;
  const bool constant = section->name == ".nv.constant3";
  if (!constant && section->name != ".nv.global" && section->name != ".nv.global.init") return;
  // What is initialised with addresses only its relocations say, and those are not read.
  const bool may_hold_addresses = section->name != ".nv.global";
  variables.push_back(
      {std::string(symbol.name), symbol.size, constant, (symbol.other & kManagedSymbol) != 0, may_hold_addresses});
}

}  // namespace

Result<ModuleInfo> describe_cubin(std::string_view file) {
  return no_throw([&]() -> Result<ModuleInfo> {
    const auto elf = ElfView::open(file);
    if (!elf) return tl::unexpected(elf.error());
    const auto resources = read_resources(*elf);
    if (!resources) return tl::unexpected(resources.error());

    ModuleInfo module;
    for (uint32_t index = 0; index < elf->symbols().size(); ++index) {
      const ElfView::Symbol& symbol = elf->symbols()[index];
      if (symbol.section == SHN_UNDEF) {  // what the driver's device library defines
        module.allocates |= symbol.name == "malloc";
        module.prints |= symbol.name == "vprintf";
        continue;
      }
      if (symbol.type == STT_OBJECT) add_variable(*elf, symbol, module.variables);
      module.functions |= symbol.type == STT_FUNC && !(symbol.other & kEntrySymbol);
      if (symbol.type != STT_FUNC || !(symbol.other & kEntrySymbol)) continue;
      const auto known = resources->find(index);
      auto kernel = describe_kernel(*elf, symbol, known == resources->end() ? Resources() : known->second);
      if (!kernel) return tl::unexpected(std::move(kernel).error());
      module.kernels.push_back(std::move(*kernel));
    }
    return module;
  });
}

}  // namespace heddle::image
