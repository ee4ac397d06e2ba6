#include "image/ptx_instructions.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::image {
namespace {

bool is_observed_register(std::string_view name) {
  static constexpr std::string_view kBeginnings[] = {"%clock",  "%globaltimer", "%smid", "%warpid",
                                                     "%gridid", "%envreg",      "%pm"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

bool is_fence_beyond_block(const PtxInstruction& i) {
  if (!is_one_of(i.name, {"membar", "fence"})) return false;
  return !i.has(".cta") && !i.has(".proxy") && !i.has(".mbarrier_init");
}

}  // namespace

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_wide(std::string_view type) {
  return is_one_of(type, {".b64", ".u64", ".s64", ".f64", ".b128"});
}

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

bool does_nothing(const PtxInstruction& i) {
  return is_one_of(i.name, {"bra", "brx", "ret", "exit", "trap", "brkpt", "bar", "barrier", "membar", "fence",
                            "nanosleep", "prefetch", "prefetchu", "applypriority", "griddepcontrol", "setmaxnreg",
                            "pmevent", "stackrestore"}) ||
         (i.name == "cp" && i.has(".async") && (i.has(".commit_group") || i.has(".wait_group") || i.has(".wait_all")));
}

bool is_order_visible(const PtxInstruction& i) {
  const bool real = i.type().starts_with(".f") || i.type().starts_with(".bf");
  return (real && i.has(".add")) || i.has(".exch") || i.has(".cas");
}

bool observes(const PtxInstruction& i) {
  if (is_one_of(i.name, {"nanosleep", "activemask", "clock"}) || is_fence_beyond_block(i)) return true;
  if (i.name == "ld" && !i.has(".local") &&
      (i.has(".volatile") || i.has(".relaxed") || i.has(".acquire") || i.has(".mmio")))
    return true;
  if (i.name == "mbarrier" && (i.has(".test_wait") || i.has(".try_wait"))) return true;
  return std::any_of(i.operands.begin(), i.operands.end(), [](const PtxOperand& operand) {
    return std::any_of(operand.names.begin(), operand.names.end(), is_observed_register);
  });
}

}  // namespace heddle::image
