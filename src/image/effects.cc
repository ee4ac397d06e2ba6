// Flow of addresses, insensitive to order: each register has one set of origins, which only grows. For each kernel the
// functions that it reaches are passed over until nothing changes; their parameters take what every call hands them.

#include "image/effects.h"

#include <algorithm>
#include <unordered_map>

#include "image/no_throw.h"
#include "image/origin.h"
#include "image/ptx_instructions.h"
#include "image/ptx_program.h"

namespace heddle::image {
namespace {

using Function = PtxProgram::Function;

// One kernel.
class Analysis {
 public:
  Analysis(PtxProgram& program, const PtxFunction& kernel)
      : program_(program), kernel_(kernel), wide_(wide_parameters(kernel)) {
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
    return finished();
  }

 private:
  using Values = std::unordered_map<std::string_view, Origin>;

  KernelEffects finished() {
    for (uint64_t* mask : {&effects_.read, &effects_.written, &effects_.accessed, &effects_.kept, &effects_.in_pieces})
      *mask &= wide_;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const uint64_t bit = uint64_t{1} << KernelEffects::bit_of(i);
      effects_.variables.push_back({std::string(variables_[i]), (read_ & bit) != 0, (written_ & bit) != 0});
    }
    if (!effects_.unknown.empty()) nothing_known();
    return std::move(effects_);
  }

  void nothing_known() {
    effects_.read = effects_.written = effects_.accessed = effects_.kept = effects_.in_pieces = ~uint64_t{0};
    effects_.touches_variables = effects_.keeps_module_addresses = true;
    effects_.reads_anything = effects_.writes_anything = effects_.follows_memory = true;
    effects_.atomics = effects_.reductions = effects_.unordered = effects_.observes = true;
    effects_.allocates |= program_.allocates();
  }

  // Parameters of less than 64 bits hold no address.
  static uint64_t wide_parameters(const PtxFunction& kernel) {
    uint64_t wide = 0;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      if (kernel.parameters[i].size >= 8) wide |= uint64_t{1} << KernelEffects::bit_of(i);
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
    } else if (name.starts_with("%envreg")) {
      origin.from |= Origin::kLoaded;  // the driver's, who keeps its own memory's address there
    } else if (const PtxVariable* variable = program_.variable(name)) {
      origin.add(address_of(*variable));
    } else if (program_.has_function(name)) {
      origin.from |= Origin::kModule;
    } else if (function_->declared->entry && parameter_of(name)) {
      origin.add({uint64_t{1} << *parameter_of(name), 0, Origin::kOwn});
    }
    return origin;
  }
  Origin address_of(const PtxVariable& variable) {
    if (variable.space == StateSpace::kShared || variable.space == StateSpace::kLocal) return {0, 0, Origin::kOwn};
    auto found = std::find(variables_.begin(), variables_.end(), variable.name);
    if (found == variables_.end()) found = variables_.insert(found, variable.name);
    const uint64_t bit = uint64_t{1} << KernelEffects::bit_of(static_cast<size_t>(found - variables_.begin()));
    if (variable.holds_addresses) holders_ |= bit;
    return {0, bit, 0};
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
    if (i.has(".param")) return at_parameter(i, address);
    const Origin at = value_of(address);
    const bool own = i.has(".shared") || i.has(".local");
    Origin result;
    if (own || at.is(Origin::kOwn)) {
      result.add(is_wide(i.type()) ? own_memory_.as_address() : own_memory_);
      result.parameters |= at.parameters;  // one that lies in memory, read by its address
    }
    if (own) return result;
    touch_to_read(at, i.has(".const"));
    if (at.is_own()) return result;
    result.from |= is_wide(i.type()) ? Origin::kLoaded : Origin::kIndex;
    if ((at.variables & holders_) != 0) result.from |= Origin::kModule;
    return result;
  }

  // ld.param: a kernel's parameter as it is; a function's, or a call's, as it was given.
  Origin at_parameter(const PtxInstruction& i, const PtxOperand& address) {
    Origin result;
    for (const std::string_view name : address.names) {
      Origin origin = value_of(name);
      if (function_->declared->entry && parameter_of(name)) {
        origin.from &= ~Origin::kOwn;
        if (!is_wide(i.type())) origin.from |= Origin::kPiece;
      }
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
    touch(at);
    if (at.is_own()) return;
    effects_.kept |= stored.parameters;
    effects_.keeps_module_addresses |= stored.variables != 0 || stored.is(Origin::kModule);
    effects_.written |= at.parameters;
    written_ |= at.variables;
    if (at.is(Origin::kLoaded) || !is_rooted(at)) effects_.writes_anything = true;
  }

  // Whether it is known what an address of this origin leads to.
  bool is_rooted(const Origin& at) const {
    return (at.parameters & wide_) != 0 || at.variables != 0 || at.is(Origin::kOwn);
  }

  void touch(const Origin& at) {
    effects_.accessed |= at.parameters;
    effects_.touches_variables |= at.variables != 0;
    if (at.is(Origin::kTogether)) effects_.in_pieces |= at.parameters;
    if (at.is(Origin::kLoaded) || !is_rooted(at)) effects_.follows_memory = true;
  }

  // Constant memory is that of variables, whatever the address looks like.
  void touch_to_read(const Origin& at, bool constant = false) {
    touch(at);
    effects_.read |= at.parameters;
    read_ |= at.variables;
    effects_.touches_variables |= constant;
    if (constant && at.variables == 0) effects_.follows_memory = true;
  }

  // --- instructions ---
  void execute(const PtxInstruction& i) {
    const auto& o = i.operands;
    effects_.observes |= observes(i);
    if (does_nothing(i)) return;
    if (i.name == "call") return call(i);
    if (i.name == "st" && o.size() >= 2) return write(i, o[0], value_of(o[1]));
    if (is_one_of(i.name, {"ld", "ldu"}) && o.size() >= 2) return give(o[0], read(i, o[1]));
    if (i.name == "atom" && o.size() >= 3) return atomic(i, &o[0], o[1], 2);
    if (i.name == "red" && o.size() >= 2) return atomic(i, nullptr, o[0], 1);
    if (i.name == "wmma" && i.has(".load") && o.size() >= 2) return give(o[0], read(i, o[1]).as_index());
    if (i.name == "wmma" && i.has(".store") && o.size() >= 2) return write(i, o[0], value_of(o[1]));
    if (i.name == "ldmatrix" && o.size() >= 2) return give(o[0], Origin{own_memory_}.as_index());
    if (i.name == "cp" && i.has(".async") && !i.has(".bulk") && i.has(".shared") && o.size() >= 2) return copy_in(o);
    if (i.name == "mbarrier" && !i.has(".arrive_drop")) return synchronise(i);
    if (is_one_of(i.name, {"tex", "tld4", "suld"}) && !o.empty()) return sample(o[0]);
    if (is_one_of(i.name, {"txq", "suq"}) && !o.empty()) return give(o[0], {0, 0, Origin::kIndex});
    if (i.name == "alloca" && !o.empty()) return give(o[0], {0, 0, Origin::kOwn});
    if (i.name == "stacksave" && !o.empty()) return give(o[0], {0, 0, Origin::kOwn});
    if (computes(i) && !o.empty()) return compute(i);
    give_up("the instruction " + std::string(i.name));
  }

  // nvcc writes "atom" for all atomics and leaves it to the assembler to see that nobody looks at what some return.
  bool is_used(const PtxOperand& result) const {
    return std::any_of(result.names.begin(), result.names.end(),
                       [&](std::string_view name) { return name != "_" && function_->occurrences.at(name) > 1; });
  }

  // Reads and writes at once; what it may store are its last operands.
  void atomic(const PtxInstruction& i, const PtxOperand* result, const PtxOperand& address, size_t first) {
    (result && is_used(*result) ? effects_.atomics : effects_.reductions) = true;
    effects_.unordered |= is_order_visible(i);
    Origin stored;
    for (size_t k = first; k < i.operands.size(); ++k) stored.add(value_of(i.operands[k]));
    write(i, address, stored);
    const Origin found = read(i, address);
    if (result) give(*result, found);
  }

  // cp.async: global memory to shared.
  void copy_in(const std::vector<PtxOperand>& operands) {
    touch_to_read(value_of(operands[1]));
    changed_ |= own_memory_.add({0, 0, Origin::kLoaded});
  }

  // A texture may lie in any buffer, and no parameter says in which.
  void sample(const PtxOperand& result) {
    effects_.follows_memory = true;
    give(result, {0, 0, Origin::kIndex});
  }

  // Barriers lie in shared memory, and what they give is no address.
  void synchronise(const PtxInstruction& i) {
    for (const PtxOperand& operand : i.operands) {
      if (operand.memory && !i.has(".shared") && !value_of(operand).is(Origin::kOwn)) touch_to_read(value_of(operand));
    }
  }

  void compute(const PtxInstruction& i) {
    const auto& o = i.operands;
    Origin origin;
    for (size_t k = 1; k < o.size(); ++k) {
      // The addend of mad is as it is; factors make an index.
      const bool factor = is_one_of(i.name, {"mul", "mad"}) && k <= 2;
      origin.add(factor ? value_of(o[k]).as_index() : value_of(o[k]));
    }
    if (i.name == "shl") origin = shifted(i, origin);
    if (i.name == "cvta" && !i.has(".to") && (i.has(".shared") || i.has(".local"))) origin.from |= Origin::kOwn;
    if (i.name == "cvt" && is_one_of(i.type(), {".f16", ".f32", ".f64", ".bf16"})) origin = origin.as_index();
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
    if (name == "vprintf" || name == "__assertfail") return print(arguments);
    effects_.allocates |= name == "malloc" || name == "free";
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

  // Keeps nothing, and reads its texts; addresses of some may stand among what it prints.
  void print(const PtxOperand* arguments) {
    if (!arguments) return;
    for (const std::string_view name : arguments->names) {
      const Origin given = value_of(name);
      effects_.read |= given.parameters | own_memory_.parameters;
      read_ |= given.variables | own_memory_.variables;
      effects_.touches_variables |= read_ != 0;
      effects_.reads_anything |= given.is(Origin::kLoaded) || own_memory_.is(Origin::kLoaded);
    }
  }

  PtxProgram& program_;
  const PtxFunction& kernel_;
  const uint64_t wide_;
  KernelEffects effects_;
  std::vector<Function*> reached_;
  std::unordered_map<const Function*, Values> values_;
  std::vector<std::string_view> variables_;  // that the kernel names
  uint64_t read_ = 0, written_ = 0,
           holders_ = 0;  // bit i: the i-th of them; those that were initialised with addresses
  Origin own_memory_;     // whatever was stored to shared and local memory
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
    PtxProgram program(parsed);
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
