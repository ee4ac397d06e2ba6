#include "device/cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/cuda/library_function.h"
#include "library/cublas.h"
#include "library/curand.h"

namespace heddle::cuda {
namespace {

namespace cublas = library::cublas;
namespace curand = library::curand;
using library::Library;

const char* soname(Library library) {
  switch (library) {
    case Library::kCublas:
      return "libcublas.so.13";
    case Library::kCurand:
      return "libcurand.so.10";
    case Library::kCufft:
      return "libcufft.so.12";
  }
  return "";
}

// heddle's own library of that name would send the calls back to a worker.
bool is_ours(void* library) {
  return ::dlsym(library, "heddle_library_client") != nullptr;
}

void* open_file(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library && is_ours(library)) {
    ::dlclose(library);
    return nullptr;
  }
  return library;
}

// Where the loader finds it, else where the toolkit is.
void* find(const char* name) {
  if (void* library = open_file(name)) return library;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (!root) continue;
    if (void* library = open_file(std::string(root) + "/lib64/" + name)) return library;
  }
  return open_file(std::string("/usr/local/cuda/lib64/") + name);
}

// ---- A cuBLAS call from its words ----

void* pointer(uint64_t word) {
  return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
}

// What a scalar's pointer points to. cuBLAS may rely on the alignment of cuDoubleComplex, which words do not have.
struct alignas(16) HostScalar {
  std::array<uint64_t, cublas::words_of(cublas::Kind::kParameters)> words{};
};

template <class Kind, class Integer>
typename Kind::template Argument<Integer> argument(const uint64_t* words, HostScalar& copy, bool scalars_on_device) {
  using Argument = typename Kind::template Argument<Integer>;
  constexpr cublas::Kind kKind = Kind::kKindOf;
  if constexpr (kKind == cublas::Kind::kInfo) {
    return reinterpret_cast<Argument>(copy.words.data());  // the program has answered it
  } else if constexpr (cublas::is_scalar(kKind) || cublas::is_parameters(kKind)) {
    if (scalars_on_device) return pointer(*words);
    std::copy_n(words, cublas::words_of(kKind), copy.words.begin());
    return copy.words.data();
  } else if constexpr (std::is_pointer_v<Argument>) {
    return pointer(*words);
  } else {
    return static_cast<Argument>(*words);
  }
}

template <class... Kinds>
struct Signature {
  // The first word of each argument.
  static constexpr auto kAt = [] {
    std::array<uint32_t, sizeof...(Kinds)> at{};
    uint32_t next = 0;
    size_t i = 0;
    ((at[i++] = next, next += cublas::words_of(Kinds::kKindOf)), ...);
    return at;
  }();

  template <class Integer, size_t... kIndex>
  static int call(void* function, void* handle, const uint64_t* words, bool on_device, std::index_sequence<kIndex...>) {
    using Function = int (*)(void*, typename Kinds::template Argument<Integer>...);
    std::array<HostScalar, sizeof...(Kinds)> scalars{};
    return reinterpret_cast<Function>(function)(
        handle, argument<Kinds, Integer>(words + kAt[kIndex], scalars[kIndex], on_device)...);
  }
  static int call(void* function, void* handle, const uint64_t* words, bool wide, bool on_device) {
    constexpr auto kAll = std::make_index_sequence<sizeof...(Kinds)>();
    return wide ? call<int64_t>(function, handle, words, on_device, kAll)
                : call<int>(function, handle, words, on_device, kAll);
  }
};

using Caller = int (*)(void* function, void* handle, const uint64_t* words, bool wide, bool on_device);
using namespace cublas::kinds;  // NOLINT(google-build-using-namespace): the table's words
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define HEDDLE_CALLER(name, element, shape, blas, ...) &Signature<__VA_ARGS__>::call,
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define HEDDLE_OLD_CALLER(old, name, ...) HEDDLE_CALLER(name, __VA_ARGS__)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define HEDDLE_ANSWER_CALLER(old, name, element, shape, blas, answer, ...) &Signature<__VA_ARGS__, answer>::call,
constexpr Caller kCallers[] = {
    HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_CALLER, HEDDLE_CALLER, HEDDLE_OLD_CALLER, HEDDLE_ANSWER_CALLER)};
#undef HEDDLE_CALLER
#undef HEDDLE_OLD_CALLER
#undef HEDDLE_ANSWER_CALLER

bool has_answer(const cublas::Function& function) {
  return std::any_of(function.kinds.begin(), function.kinds.end(), cublas::is_answer);
}

}  // namespace

Result<uint32_t> Libraries::open(Library library) {
  Loaded& loaded = library == Library::kCublas ? cublas_ : library == Library::kCurand ? curand_ : cufft_;
  if (!loaded.library) HEDDLE_TRY(load(library, loaded));
  return loaded.version;
}

Status Libraries::load(Library library, Loaded& into) {
  const char* name = soname(library);
  // Every call brings a workspace in the program's own memory: a handle's first one, 64 MiB of an H200, may be small.
  if (library == Library::kCublas) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 0);
  void* const found = find(name);
  if (!found)
    return fail(
        ErrorCode::kNotFound,
        "%s is not to be found on the GPU's machine: install the CUDA toolkit's %s in /usr/local/cuda, or start "
        "heddled with CUDA_HOME or LD_LIBRARY_PATH set to where it is",
        name, library::name_of(library));
  int version = 0;
  if (library == Library::kCurand) {
    HEDDLE_TRY(check("curandGetVersion", invoke(found, "curandGetVersion", &version)));
  } else if (library == Library::kCufft) {
    HEDDLE_TRY(check("cufftGetVersion", invoke(found, "cufftGetVersion", &version)));
  } else {
    // It wants a handle, which the first call needs anyway.
    cublas_.library = found;
    const auto handle = handle_of(0);
    cublas_.library = nullptr;
    if (!handle) return tl::unexpected(handle.error());
    HEDDLE_TRY(check("cublasGetVersion_v2", invoke(found, "cublasGetVersion_v2", *handle, &version)));
  }
  into = {found, static_cast<uint32_t>(version)};
  return {};
}

Status Libraries::call(const library::Call& call, uint32_t stream_index, CUstream stream) {
  if (const auto opened = open(call.library); !opened) return tl::unexpected(opened.error());
  switch (call.library) {
    case Library::kCublas:
      return call_cublas(call, stream_index, stream);
    case Library::kCurand:
      return call_curand(call, stream);
    case Library::kCufft:
      return plans_.call(cufft_.library, call, stream);
  }
  return fail(ErrorCode::kNotFound, "library %u does not exist", static_cast<unsigned>(call.library));
}

std::optional<library::Operand> Libraries::written_on_host(const library::Call& call) {
  if (call.library == Library::kCufft) return FourierPlans::written_on_host(call);
  if (call.library != Library::kCurand) return std::nullopt;
  const auto draw = curand::Draw::unpack(call.words);
  if (!draw || !draw->host) return std::nullopt;
  return library::Operand{draw->output, draw->count * curand::bytes_of(static_cast<curand::Function>(call.function)),
                          true, 0};
}

Result<Libraries::Handle> Libraries::handle_of(uint32_t stream_index) {
  Handle& handle = handles_[stream_index];
  if (handle) return handle;
  HEDDLE_TRY(check("cublasCreate_v2", invoke(cublas_.library, "cublasCreate_v2", &handle)));
  return handle;
}

void* Libraries::cublas_function(uint32_t function, bool wide) {
  auto& known = cublas_functions_[wide];
  known.resize(cublas::functions().size());
  if (!known[function]) {
    const std::string name = std::string(cublas::functions()[function].name) + (wide ? "_64" : "");
    known[function] = ::dlsym(cublas_.library, name.c_str());
  }
  return known[function];
}

// The handle is told everything each time: a program's handles may share it.
Status Libraries::call_cublas(const library::Call& call, uint32_t stream_index, CUstream stream) {
  const cublas::Function& function = cublas::functions()[call.function];
  const auto setting = cublas::Setting::unpack(call.words);
  if (!setting) return tl::unexpected(setting.error());
  const auto handle = handle_of(stream_index);
  if (!handle) return tl::unexpected(handle.error());
  void* const library = cublas_.library;
  const bool on_device = setting->scalars_on_device || has_answer(function);
  HEDDLE_TRY(check("cublasSetStream_v2", invoke(library, "cublasSetStream_v2", *handle, stream)));
  if (setting->workspace_bytes > 0)
    HEDDLE_TRY(check("cublasSetWorkspace_v2", invoke(library, "cublasSetWorkspace_v2", *handle,
                                                     pointer(setting->workspace), size_t{setting->workspace_bytes})));
  HEDDLE_TRY(check("cublasSetPointerMode_v2", invoke(library, "cublasSetPointerMode_v2", *handle, int{on_device})));
  HEDDLE_TRY(check("cublasSetAtomicsMode", invoke(library, "cublasSetAtomicsMode", *handle, int{setting->atomics})));
  HEDDLE_TRY(
      check("cublasSetMathMode", invoke(library, "cublasSetMathMode", *handle, static_cast<int>(setting->math_mode))));
  void* const code = cublas_function(call.function, setting->wide);
  if (!code) return check(function.name, kMissing);
  const uint64_t* const arguments = call.words.data() + cublas::Setting::kWords;
  return check(function.name, kCallers[call.function](code, *handle, arguments, setting->wide, on_device));
}

Status Libraries::set_generator(Handle generator, const library::curand::Draw& draw) {
  void* const library = curand_.library;
  const auto set = [&](const char* function, auto value) {
    return check(function, invoke(library, function, generator, value));
  };
  using Long = unsigned long long;  // NOLINT(google-runtime-int): cuRAND's own
  // Mersenne Twister 19937 knows one order and no offset.
  if (draw.type != 142) HEDDLE_TRY(set("curandSetGeneratorOrdering", int{draw.ordering}));
  if (curand::is_quasi_random(draw.type)) {
    HEDDLE_TRY(set("curandSetQuasiRandomGeneratorDimensions", unsigned{draw.dimensions}));
  } else {
    HEDDLE_TRY(set("curandSetPseudoRandomGeneratorSeed", Long{draw.seed}));
  }
  if (draw.type == 142 || draw.type == 141) return {};
  return set("curandSetGeneratorOffset", Long{draw.position});
}

// A generator that another program made under this number, or whose seed, offset or order changed, begins anew.
Result<Libraries::Handle> Libraries::generator_of(const library::Call& call) {
  const auto draw = curand::Draw::unpack(call.words);
  if (!draw) return tl::unexpected(draw.error());
  void* const library = curand_.library;
  Generator& generator = generators_[draw->generator];
  if (generator.handle && (generator.type != draw->type || generator.host != draw->host)) {
    (void)invoke(library, "curandDestroyGenerator", generator.handle);
    generator = {};
  }
  const bool known = generator.handle != nullptr;
  if (known && generator.changed == draw->changed) return generator.handle;
  const char* const create = draw->host ? "curandCreateGeneratorHost" : "curandCreateGenerator";
  if (!known) HEDDLE_TRY(check(create, invoke(library, create, &generator.handle, draw->type)));
  HEDDLE_TRY(set_generator(generator.handle, *draw));
  generator.type = draw->type;
  generator.host = draw->host;
  generator.changed = draw->changed;
  return generator.handle;
}

// The library's own tables, as far as the call asks for them, to the program's pinned memory.
Status Libraries::copy_table(const library::Call& call) {
  using curand::Function;
  const auto draw = curand::Draw::unpack(call.words);
  if (!draw) return tl::unexpected(draw.error());
  const auto function = static_cast<Function>(call.function);
  const char* const name = curand::name_of(call.function);
  const void* table = nullptr;
  const bool directions = function == Function::kDirections32 || function == Function::kDirections64;
  HEDDLE_TRY(check(name, directions ? invoke(curand_.library, name, &table, int{draw->ordering})
                                    : invoke(curand_.library, name, &table)));
  std::memcpy(pointer(draw->output), table, draw->count * curand::bytes_of(function));
  return {};
}

Status Libraries::call_curand(const library::Call& call, CUstream stream) {
  using curand::Function;
  if (curand::is_table(static_cast<Function>(call.function))) return copy_table(call);
  const auto generator = generator_of(call);
  if (!generator) return tl::unexpected(generator.error());
  const auto draw = *curand::Draw::unpack(call.words);
  void* const library = curand_.library;
  if (!draw.host) HEDDLE_TRY(check("curandSetStream", invoke(library, "curandSetStream", *generator, stream)));
  const char* const name = curand::name_of(call.function);
  void* const to = pointer(draw.output);
  const size_t count = draw.count;
  const auto mean = static_cast<float>(draw.a), deviation = static_cast<float>(draw.b);
  switch (static_cast<Function>(call.function)) {
    case Function::kNormal:
    case Function::kLogNormal:
      return check(name, invoke(library, name, *generator, to, count, mean, deviation));
    case Function::kNormalDouble:
    case Function::kLogNormalDouble:
      return check(name, invoke(library, name, *generator, to, count, draw.a, draw.b));
    case Function::kPoisson:
      return check(name, invoke(library, name, *generator, to, count, draw.a));
    case Function::kPoissonMethod:
      return check(name, invoke(library, name, *generator, to, count, draw.a, static_cast<int>(draw.b)));
    default:
      return check(name, invoke(library, name, *generator, to, count));
  }
}

}  // namespace heddle::cuda
