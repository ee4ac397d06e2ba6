// Flow of addresses, insensitive to order: each register has one set of origins, which only grows. For each kernel the
// functions that it reaches are passed over until nothing changes; their parameters take what every call hands them.

#include "image/effects.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "image/no_throw.h"
#include "image/ptx_code.h"
#include "image/ptx_declarations.h"

namespace heddle::image {
namespace {

// Where a value may come from.
struct Origin {
  enum : uint8_t {
    kIndex = 1,     // computed from memory, but no address
    kLoaded = 2,    // read from memory as it is: maybe an address
    kOwn = 4,       // an address of the kernel's own shared or local memory, or of its parameters
    kVariable = 8,  // the address of a module's variable
  };
  uint64_t parameters = 0;  // bit i: parameter i of the kernel
  uint8_t from = 0;

  bool operator==(const Origin&) const = default;
  bool is(uint8_t what) const { return (from & what) != 0; }
  // True where that told something new.
  bool add(const Origin& other) {
    const Origin before = *this;
    parameters |= other.parameters;
    from |= other.from;
    return !(*this == before);
  }
  Origin as_index() const {
    return {parameters, static_cast<uint8_t>(is(kLoaded) ? (from & ~kLoaded) | kIndex : from)};
  }
  Origin as_address() const { return {parameters, static_cast<uint8_t>(is(kIndex) ? from | kLoaded : from)}; }
};

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_wide(std::string_view type) {
  return one_of(type, {".b64", ".u64", ".s64", ".f64", ".b128"});
}

// Instructions whose first operand is what they compute from the others, and nothing else.
bool computes(const PtxInstruction& i) {
  static const std::unordered_set<std::string_view> names{
      "mov",          "add",       "sub",     "addc",     "subc",       "mul",       "mad",      "madc",
      "mul24",        "mad24",     "sad",     "div",      "rem",        "abs",       "neg",      "min",
      "max",          "popc",      "clz",     "bfind",    "fns",        "brev",      "bfe",      "bfi",
      "szext",        "bmsk",      "dp4a",    "dp2a",     "testp",      "copysign",  "fma",      "rcp",
      "sqrt",         "rsqrt",     "sin",     "cos",      "lg2",        "ex2",       "tanh",     "set",
      "setp",         "selp",      "slct",    "and",      "or",         "xor",       "not",      "cnot",
      "lop3",         "shf",       "shl",     "shr",      "prmt",       "cvt",       "cvta",     "mma",
      "vote",         "shfl",      "match",   "redux",    "activemask", "elect",     "isspacep", "mapa",
      "getctarank",   "vadd",      "vsub",    "vabsdiff", "vmin",       "vmax",      "vshl",     "vshr",
      "vmad",         "vset",      "vadd2",   "vsub2",    "vavrg2",     "vabsdiff2", "vmin2",    "vmax2",
      "vset2",        "vadd4",     "vsub4",   "vavrg4",   "vabsdiff4",  "vmin4",     "vmax4",    "vset4",
      "createpolicy", "movmatrix", "istypep", "clock"};
  return names.contains(i.name) || (i.name == "wmma" && i.has(".mma"));
}

// Instructions that touch no memory of the program and make no value.
bool does_nothing(const PtxInstruction& i) {
  return one_of(i.name, {"bra", "brx", "ret", "exit", "trap", "brkpt", "bar", "barrier", "membar", "fence", "nanosleep",
                         "prefetch", "prefetchu", "applypriority", "griddepcontrol", "setmaxnreg", "pmevent",
                         "stackrestore"}) ||
         (i.name == "cp" && i.has(".async") && (i.has(".commit_group") || i.has(".wait_group") || i.has(".wait_all")));
}

struct Function {
  const PtxFunction* declared = nullptr;
  PtxCode code;
  std::unordered_map<std::string_view, std::string_view> own;  // shared and local memory declared in its body
};

// All functions of a program, by name; bodies are read when they are first reached.
class Program {
 public:
  explicit Program(std::span<const PtxDeclarations> units) {
    for (const PtxDeclarations& unit : units) {
      for (const PtxVariable& variable : unit.variables) variables_[variable.name] = variable.space;
      for (const PtxFunction& function : unit.functions) functions_[function.name].declared = &function;
    }
  }

  Function* find(std::string_view name) {
    const auto found = functions_.find(name);
    if (found == functions_.end()) return nullptr;
    Function& function = found->second;
    if (read_.insert(&function).second) {
      function.code = read_code(function.declared->body);
      for (const PtxVariable& variable : function.declared->memory) function.own[variable.name] = variable.name;
    }
    return &function;
  }

  const StateSpace* variable(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string_view, StateSpace> variables_;
  std::unordered_map<std::string_view, Function> functions_;
  std::unordered_set<const Function*> read_;
};

// One kernel.
class Analysis {
 public:
  Analysis(Program& program, const PtxFunction& kernel) : program_(program), kernel_(kernel) {
    effects_.name = kernel.name;
  }

  KernelEffects run() {
    reach(kernel_.name);
    do {
      changed_ = false;
      for (size_t i = 0; i < reached_.size() && effects_.unknown.empty(); ++i) {
        function_ = reached_[i];
        for (const PtxInstruction& instruction : function_->code.instructions) execute(instruction);
      }
    } while (changed_ && effects_.unknown.empty());
    effects_.written &= wide_parameters();
    effects_.kept &= wide_parameters();
    effects_.accessed &= wide_parameters();
    if (!effects_.unknown.empty()) {
      effects_.written = effects_.kept = effects_.accessed = ~uint64_t{0};
      effects_.writes_anything = effects_.follows_memory = effects_.touches_variables = true;
    }
    return std::move(effects_);
  }

 private:
  using Values = std::unordered_map<std::string_view, Origin>;

  // Parameters of less than 64 bits hold no address.
  uint64_t wide_parameters() const {
    uint64_t wide = 0;
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      if (kernel_.parameters[i].size >= 8) wide |= uint64_t{1} << KernelEffects::bit_of(i);
    }
    return wide;
  }

  void reach(std::string_view name) {
    Function* function = program_.find(name);
    if (!function) return give_up("a call of " + std::string(name) + ", whose code is not there");
    if (std::find(reached_.begin(), reached_.end(), function) == reached_.end()) {
      reached_.push_back(function);
      changed_ = true;
    }
  }

  void give_up(std::string why) {
    if (effects_.unknown.empty()) effects_.unknown = std::move(why);
  }

  // --- values ---
  Origin value_of(std::string_view name) {
    Origin origin;
    const Values& values = values_[function_];
    if (const auto known = values.find(name); known != values.end()) origin = known->second;
    if (function_->own.contains(name)) {
      origin.from |= Origin::kOwn;
    } else if (const StateSpace* space = program_.variable(name)) {
      origin.from |= *space == StateSpace::kShared || *space == StateSpace::kLocal ? Origin::kOwn : Origin::kVariable;
    } else if (function_->declared->entry && parameter_of(name)) {
      origin.add({uint64_t{1} << *parameter_of(name), Origin::kOwn});
    }
    return origin;
  }
  Origin value_of(const PtxOperand& operand) {
    Origin origin;
    for (const std::string_view name : operand.names) origin.add(value_of(name));
    // Halves put together to a word.
    return operand.vector ? origin.as_address() : origin;
  }
  void give(std::string_view name, const Origin& origin) { changed_ |= values_[function_][name].add(origin); }
  void give(const PtxOperand& operand, const Origin& origin) {
    for (const std::string_view name : operand.names) give(name, origin);
  }

  // By name: nvcc calls parameter i NAME_param_i; others are found by their place among the names that occur.
  std::optional<size_t> parameter_of(std::string_view name) const {
    const auto& names = kernel_.parameter_names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return KernelEffects::bit_of(static_cast<size_t>(found - names.begin()));
  }

  // --- accesses ---
  Origin read(const PtxInstruction& i, const PtxOperand& address) {
    const Origin at = value_of(address);
    Origin result;
    const bool own = i.has(".shared") || i.has(".local");
    if (own || at.is(Origin::kOwn)) result.add(own_memory_);
    if (i.has(".param")) return at_parameter(address);
    if (own) return result;
    effects_.touches_variables |= i.has(".const");
    if (!i.has(".const")) touch(at, at.is(Origin::kOwn) && at.parameters == 0);
    if (!at.is(Origin::kOwn) || at.parameters != 0) result.from |= is_wide(i.type()) ? Origin::kLoaded : Origin::kIndex;
    return result;
  }

  // ld.param: a kernel's parameter as it is; a function's, or a call's, as it was given.
  Origin at_parameter(const PtxOperand& address) {
    Origin result;
    for (const std::string_view name : address.names) {
      Origin origin = value_of(name);
      if (function_->declared->entry && parameter_of(name)) origin.from &= ~Origin::kOwn;
      result.add(origin);
    }
    return result;
  }

  void write(const PtxInstruction& i, const PtxOperand& address, const Origin& stored) {
    if (i.has(".param")) return give(address, stored);
    const bool own = i.has(".shared") || i.has(".local");
    const Origin at = value_of(address);
    if (own || at.is(Origin::kOwn)) changed_ |= own_memory_.add(stored);
    if (own) return;
    touch(at, at.is(Origin::kOwn) && at.parameters == 0);
    if (at.is(Origin::kOwn) && at.parameters == 0 && !at.is(Origin::kLoaded)) return;
    effects_.kept |= stored.parameters;
    effects_.written |= at.parameters;
    if (at.is(Origin::kLoaded) || !is_rooted(at)) effects_.writes_anything = true;
  }

  static bool is_rooted(const Origin& at) { return at.parameters != 0 || at.is(Origin::kVariable | Origin::kOwn); }

  void touch(const Origin& at, bool own) {
    effects_.accessed |= at.parameters;
    effects_.touches_variables |= at.is(Origin::kVariable);
    if (at.is(Origin::kLoaded) || (!own && !is_rooted(at))) effects_.follows_memory = true;
  }

  // --- instructions ---
  void execute(const PtxInstruction& i) {
    const auto& o = i.operands;
    if (does_nothing(i)) return;
    if (i.name == "call") return call(i);
    if (i.name == "st" && o.size() >= 2) return write(i, o[0], value_of(o[1]));
    if (one_of(i.name, {"ld", "ldu"}) && o.size() >= 2) return give(o[0], read(i, o[1]));
    if (i.name == "atom" && o.size() >= 3) return atomic(i, &o[0], o[1], 2);
    if (i.name == "red" && o.size() >= 2) return atomic(i, nullptr, o[0], 1);
    if (i.name == "wmma" && i.has(".load") && o.size() >= 2) return give(o[0], read(i, o[1]).as_index());
    if (i.name == "wmma" && i.has(".store") && o.size() >= 2) return write(i, o[0], value_of(o[1]));
    if (i.name == "ldmatrix" && o.size() >= 2) return give(o[0], Origin{own_memory_}.as_index());
    if (i.name == "cp" && i.has(".async") && !i.has(".bulk") && i.has(".shared") && o.size() >= 2) return copy_in(o);
    if (i.name == "mbarrier" && !i.has(".arrive_drop")) return synchronise(i);
    if (one_of(i.name, {"tex", "tld4", "suld"}) && !o.empty()) return sample(o[0]);
    if (one_of(i.name, {"txq", "suq"}) && !o.empty()) return give(o[0], {0, Origin::kIndex});
    if (i.name == "alloca" && !o.empty()) return give(o[0], {0, Origin::kOwn});
    if (i.name == "stacksave" && !o.empty()) return give(o[0], {0, Origin::kOwn});
    if (computes(i) && !o.empty()) return compute(i);
    give_up("the instruction " + std::string(i.name));
  }

  // Reads and writes at once; what it may store are its last operands.
  void atomic(const PtxInstruction& i, const PtxOperand* result, const PtxOperand& address, size_t first) {
    Origin stored;
    for (size_t k = first; k < i.operands.size(); ++k) stored.add(value_of(i.operands[k]));
    write(i, address, stored);
    if (result) give(*result, read(i, address));
  }

  // cp.async: global memory to shared.
  void copy_in(const std::vector<PtxOperand>& operands) {
    touch(value_of(operands[1]), false);
    changed_ |= own_memory_.add({0, Origin::kLoaded});
  }

  // A texture may lie in any buffer, and no parameter says in which.
  void sample(const PtxOperand& result) {
    effects_.follows_memory = true;
    give(result, {0, Origin::kIndex});
  }

  // Barriers lie in shared memory, and what they give is no address.
  void synchronise(const PtxInstruction& i) {
    for (const PtxOperand& operand : i.operands) {
      if (operand.memory) touch(value_of(operand), i.has(".shared") || value_of(operand).is(Origin::kOwn));
    }
  }

  void compute(const PtxInstruction& i) {
    const auto& o = i.operands;
    Origin origin;
    for (size_t k = 1; k < o.size(); ++k) {
      // The addend of mad is as it is; factors make an index.
      const bool factor = one_of(i.name, {"mul", "mad"}) && k <= 2;
      origin.add(factor ? value_of(o[k]).as_index() : value_of(o[k]));
    }
    if (i.name == "shl") origin = shifted(i, origin);
    if (i.name == "cvta" && !i.has(".to") && (i.has(".shared") || i.has(".local"))) origin.from |= Origin::kOwn;
    if (i.name == "cvt" && one_of(i.type(), {".f16", ".f32", ".f64", ".bf16"})) origin = origin.as_index();
    if (i.name == "mul" && makes_high_half(o)) origin = origin.as_address();
    if (i.name == "bfi" && is_wide(i.type())) origin = origin.as_address();
    give(o[0], origin);
  }

  // To the left by less than a word's half: an index. By more: the high half of an address, maybe.
  static Origin shifted(const PtxInstruction& i, const Origin& origin) {
    const auto& distance = i.operands.back().number;
    if (!is_wide(i.type())) return origin;
    if (distance && *distance == 0) return origin;
    return distance && *distance < 32 ? origin.as_index() : origin.as_address();
  }
  static bool makes_high_half(const std::vector<PtxOperand>& operands) {
    return std::any_of(operands.begin(), operands.end(),
                       [](const PtxOperand& o) { return o.number && *o.number >= uint64_t{1} << 31; });
  }

  // --- calls: "(results), name, (arguments)", each part but the name may be missing ---
  void call(const PtxInstruction& i) {
    const PtxOperand *results = nullptr, *arguments = nullptr;
    std::string_view name;
    for (const PtxOperand& operand : i.operands) {
      if (operand.vector)
        (name.empty() ? results : arguments) = &operand;
      else if (name.empty() && operand.names.size() == 1)
        name = operand.names[0];
    }
    if (name == "vprintf" || name == "__assertfail") return;  // prints, and keeps nothing
    if (name.starts_with("%")) return give_up("a call through a pointer");
    Function* callee = program_.find(name);
    reach(name);
    if (!callee) return;
    const auto& formals = callee->declared->parameter_names;
    for (size_t k = 0; arguments && k < arguments->names.size() && k < formals.size(); ++k)
      changed_ |= values_[callee][formals[k]].add(value_of(arguments->names[k]));
    for (size_t k = 0; results && k < results->names.size(); ++k) {
      for (const std::string_view formal : callee->declared->result_names)
        give(results->names[k], values_[callee][formal]);
    }
  }

  Program& program_;
  const PtxFunction& kernel_;
  KernelEffects effects_;
  std::vector<Function*> reached_;
  std::unordered_map<const Function*, Values> values_;
  Origin own_memory_;  // whatever was stored to shared and local memory
  Function* function_ = nullptr;
  bool changed_ = false;
};

}  // namespace

Result<std::vector<KernelEffects>> effects_of_ptx(std::span<const std::string_view> units) {
  return no_throw([&]() -> Result<std::vector<KernelEffects>> {
    std::vector<PtxDeclarations> parsed;
    for (const std::string_view unit : units) {
      auto declarations = parse_declarations(unit);
      if (!declarations) return tl::unexpected(std::move(declarations).error());
      parsed.push_back(std::move(*declarations));
    }
    Program program(parsed);
    std::vector<KernelEffects> all;
    for (const PtxDeclarations& unit : parsed) {
      for (const PtxFunction& function : unit.functions) {
        if (function.entry) all.push_back(Analysis(program, function).run());
      }
    }
    return all;
  });
}

Result<std::vector<KernelEffects>> effects(std::span<const Image> images, uint32_t arch) {
  return no_throw([&]() -> Result<std::vector<KernelEffects>> {
    const auto chosen = choose_ptx_units(images, arch);
    if (!chosen) return tl::unexpected(chosen.error());
    std::vector<std::string_view> texts;
    for (const Image* image : *chosen) texts.push_back(image->bytes);
    return effects_of_ptx(texts);
  });
}

}  // namespace heddle::image
