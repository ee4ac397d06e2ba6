#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/answer.h"
#include "client/flat_map.h"
#include "image/effects.h"
#include "image/module_info.h"

// What the program registered before main: its modules, kernels and variables, known by their host addresses. And what
// it loaded at run time (driver/modules.h), known by handles.
namespace heddle::client {

class Session;

// What kernels may do with addresses; all that there is where nothing can be known.
struct AddressUse {
  bool kept = true;      // one stores a parameter's address in memory
  bool followed = true;  // one follows an address that it read from memory
};

// One fat binary of the program. Nothing of it is read before one of its kernels or variables is used.
class ProgramModule {
 public:
  explicit ProgramModule(const void* wrapper) : wrapper_(wrapper) {}
  // One that the program hands over at run time: whole fat binaries, one behind the other.
  explicit ProgramModule(std::vector<std::byte> loaded) : loaded_image_(std::move(loaded)) {}

  // Reads it and declares it to heddled, the first time; the answer stays.
  Done load(Session& session);
  bool loaded_at_run_time() const { return !wrapper_; }
  // Its fat binaries, several where it was compiled separately. They lie in the program's object, or here.
  Result<std::vector<std::span<const std::byte>>> fatbins() const;
  // Valid after load().
  uint32_t id() const { return id_; }
  const image::ModuleInfo& info() const { return info_; }
  // Of its variables together, on a device that has loaded it.
  uint64_t variable_bytes() const { return variable_bytes_; }

  // Of all its kernels, from their PTX; read the first time.
  AddressUse addresses(uint32_t arch);
  // Of one; null where nothing is known.
  const image::KernelEffects* effects(const std::string& kernel, uint32_t arch);

  std::string_view loaded_image() const {
    return {reinterpret_cast<const char*>(loaded_image_.data()), loaded_image_.size()};
  }
  // The object that holds it was unloaded; or, of one loaded at run time, its like is loaded again.
  void unregister() { alive_ = false; }
  void register_again() { alive_ = true; }
  bool alive() const { return alive_; }

  // Its kernels may leave something behind in its variables: the worker that holds them must stay.
  std::atomic<bool> has_mutable_variables{false};
  // It declares __managed__ variables, which heddle cannot serve.
  std::atomic<bool> has_managed_variables{false};

 private:
  Done read_and_declare(Session& session);
  void read_effects(uint32_t arch);

  const void* const wrapper_ = nullptr;  // null: it was loaded at run time
  const std::vector<std::byte> loaded_image_;
  std::atomic<bool> alive_{true};
  std::mutex mutex_;
  std::atomic<bool> loaded_{false};
  bool examined_ = false;
  std::optional<std::vector<image::KernelEffects>> effects_;  // nothing: nothing is known
  Done result_;
  uint32_t id_ = 0;
  image::ModuleInfo info_;
  uint64_t variable_bytes_ = 0;
};

struct Function {
  Function(ProgramModule* owner, const char* device_name) : module(owner), name(device_name) {}

  ProgramModule* module;
  std::string name;
  // Set by prepare(); what a launch needs, in one place.
  std::atomic<const image::KernelInfo*> info{nullptr};
  std::atomic<uint32_t> index{0};               // in the module; several threads may find it at once
  std::atomic<uint32_t> max_dynamic_shared{0};  // cudaFuncAttributeMaxDynamicSharedMemorySize; 0: not set
  std::atomic<int> carveout{-1};

  // The module is loaded and the kernel found in it.
  Done prepare(Session& session);
};

struct Variable {
  Variable(ProgramModule* owner, const char* device_name, size_t bytes, bool is_constant)
      : module(owner), name(device_name), size(bytes), constant(is_constant) {}

  ProgramModule* module;
  std::string name;
  size_t size;
  bool constant;

  // Its index in the module, which is loaded for that.
  Answer<uint32_t> prepare(Session& session);
};

// Thread safety: any thread. Objects are never destroyed, since programs keep pointers to them.
class Registry {
 public:
  ProgramModule* add_module(const void* wrapper);
  ProgramModule* add_module(std::vector<std::byte> loaded);
  // `host` null: known by the handle only, which is the object itself.
  Function* add_function(ProgramModule* module, const void* host, const char* name);
  Variable* add_variable(ProgramModule* module, const void* host, const char* name, size_t size, bool constant);

  // Whether nvcc's startup code registered any.
  bool has_registered_modules();
  // Whether a buffer that the program has no name for any more may still be reached by its kernels: one of them leaves
  // addresses in memory, and one follows what it finds there. The first call reads the PTX of every module.
  bool hides_addresses(uint32_t arch);

  // By host address, or by handle: cudaGetKernel, cuModuleGetFunction and cuModuleGetGlobal give the object itself.
  // Null: unknown.
  Function* function(const void* key) const { return alive(functions_.find(key)); }
  Variable* variable(const void* host) const { return alive(variables_.find(host)); }

 private:
  template <class Symbol>
  static Symbol* alive(Symbol* symbol) {
    return symbol && symbol->module->alive() ? symbol : nullptr;
  }

  std::mutex mutex_;     // for adding, and for what hides_addresses() has found out
  size_t examined_ = 0;  // modules
  AddressUse found_{false, false};
  std::deque<ProgramModule> modules_;
  std::deque<Function> all_functions_;
  std::deque<Variable> all_variables_;
  FlatMap<Function> functions_;
  FlatMap<Variable> variables_;
};

}  // namespace heddle::client
