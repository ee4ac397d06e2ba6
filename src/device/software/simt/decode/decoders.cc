#include "device/software/simt/decode/decoders.h"

#include <unordered_map>

namespace heddle::software {

Decoder find_decoder(std::string_view opcode) {
  static const std::unordered_map<std::string_view, Decoder> decoders = {
      {"abs", decode_plain},         {"activemask", decode_plain},
      {"add", decode_carry},         {"addc", decode_carry},
      {"and", decode_plain},         {"atom", decode_atomic},
      {"bar", decode_barrier},       {"barrier", decode_barrier},
      {"bfe", decode_plain},         {"bfi", decode_bfi},
      {"bfind", decode_plain},       {"bra", decode_branch},
      {"brev", decode_plain},        {"brx", decode_branch_table},
      {"call", decode_call},         {"clz", decode_plain},
      {"cnot", decode_plain},        {"copysign", decode_plain},
      {"cos", decode_plain},         {"cvt", decode_cvt},
      {"cp", decode_async_copy},     {"wmma", decode_matrix},
      {"mma", decode_matrix},        {"ldmatrix", decode_ldmatrix},
      {"mbarrier", decode_mbarrier}, {"cvta", decode_cvta},
      {"div", decode_plain},         {"dp2a", decode_plain},
      {"dp4a", decode_plain},        {"elect", decode_warp},
      {"ex2", decode_plain},         {"exit", decode_exit},
      {"fence", decode_fence},       {"fma", decode_plain},
      {"isspacep", decode_plain},    {"ld", decode_load},
      {"ldu", decode_load},          {"lg2", decode_plain},
      {"lop3", decode_lop3},         {"mad", decode_carry},
      {"mad24", decode_plain},       {"madc", decode_carry},
      {"match", decode_warp},        {"max", decode_plain},
      {"membar", decode_fence},      {"min", decode_plain},
      {"mov", decode_mov},           {"mul", decode_plain},
      {"mul24", decode_plain},       {"nanosleep", decode_nanosleep},
      {"neg", decode_plain},         {"not", decode_plain},
      {"or", decode_plain},          {"pmevent", decode_ignored},
      {"popc", decode_plain},        {"prefetch", decode_ignored},
      {"prefetchu", decode_ignored}, {"prmt", decode_plain},
      {"rcp", decode_plain},         {"red", decode_atomic},
      {"redux", decode_warp},        {"rem", decode_plain},
      {"ret", decode_exit},          {"rsqrt", decode_plain},
      {"sad", decode_plain},         {"selp", decode_plain},
      {"set", decode_set},           {"setp", decode_setp},
      {"shf", decode_plain},         {"shfl", decode_shuffle},
      {"shl", decode_plain},         {"shr", decode_plain},
      {"sin", decode_plain},         {"slct", decode_plain},
      {"sqrt", decode_plain},        {"st", decode_store},
      {"sub", decode_carry},         {"subc", decode_carry},
      {"tanh", decode_plain},        {"testp", decode_plain},
      {"trap", decode_trap},         {"bmsk", decode_plain},
      {"szext", decode_plain},       {"fns", decode_plain},
      {"vadd", decode_video},        {"vadd2", decode_video},
      {"vadd4", decode_video},       {"vsub", decode_video},
      {"vsub2", decode_video},       {"vsub4", decode_video},
      {"vavrg2", decode_video},      {"vavrg4", decode_video},
      {"vabsdiff", decode_video},    {"vabsdiff2", decode_video},
      {"vabsdiff4", decode_video},   {"vmin", decode_video},
      {"vmin2", decode_video},       {"vmin4", decode_video},
      {"vmax", decode_video},        {"vmax2", decode_video},
      {"vmax4", decode_video},       {"vote", decode_warp},
      {"xor", decode_plain},         {"tex", decode_tex},
      {"tld4", decode_tld4},         {"suld", decode_surface},
      {"sust", decode_surface},      {"txq", decode_texture_query},
      {"suq", decode_texture_query}, {"alloca", decode_alloca},
      {"stacksave", decode_stack},   {"stackrestore", decode_stack},
  };
  auto found = decoders.find(opcode);
  return found == decoders.end() ? nullptr : found->second;
}

}  // namespace heddle::software
