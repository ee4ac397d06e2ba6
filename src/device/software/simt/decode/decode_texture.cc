// tex, tld4, suld, sust, txq, suq. Texture and surface objects only; references of CUDA 11 and before, mipmaps,
// offsets, depth comparison and samplers apart are refused.

#include <algorithm>
#include <bit>
#include <utility>

#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/texture.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

constexpr uint32_t kValues = 4;

template <class Value, size_t kCount>
std::optional<Value> find(const std::pair<const char*, Value> (&names)[kCount], const std::string& word) {
  for (const auto& [name, value] : names)
    if (word == name) return value;
  return std::nullopt;
}

std::optional<Geometry> geometry_of(const std::string& word) {
  static constexpr std::pair<const char*, Geometry> kNames[] = {{"1d", Geometry::k1D},
                                                                {"2d", Geometry::k2D},
                                                                {"3d", Geometry::k3D},
                                                                {"a1d", Geometry::k1DLayered},
                                                                {"a2d", Geometry::k2DLayered},
                                                                {"cube", Geometry::kCube},
                                                                {"acube", Geometry::kCubeLayered}};
  return find(kNames, word);
}

// [object, coordinates], or [object] alone.
uint32_t handle_of(FunctionCompiler& f, const ptx::Operand& operand, size_t parts) {
  const bool formed = (operand.kind == Kind::kImage || operand.kind == Kind::kAddress) &&
                      operand.elements.size() == parts && operand.literal.bits == 0;
  if (!formed) return f.refuse("its object and coordinates"), 0;
  const ptx::Operand& object = operand.elements[0];
  if (object.kind != Kind::kRegister) return f.refuse("a texture or surface reference"), 0;
  return f.source(object, Width::k64);
}

// Appends the registers of the coordinates; those that fill up a vector of four do not matter.
void add_coordinates(FunctionCompiler& f, const ptx::Operand& operand, Geometry geometry, std::vector<uint32_t>& list) {
  const std::vector<ptx::Operand> given =
      operand.kind == Kind::kVector ? operand.elements : std::vector<ptx::Operand>{operand};
  if (given.size() < coordinates_of(geometry)) return f.refuse("its number of coordinates");
  for (uint32_t i = 0; i < coordinates_of(geometry); ++i) list.push_back(f.source(given[i], Width::k32));
}

// The values of a fetch, and the predicate that may stand behind them.
uint32_t add_values(FunctionCompiler& f, const ptx::Operand& operand, std::vector<uint32_t>& list) {
  const bool pair = operand.kind == Kind::kPair;
  const ptx::Operand& values = pair ? operand.elements[0] : operand;
  if (values.kind != Kind::kVector || values.elements.size() != kValues) return f.refuse("its vector"), Op::kNone;
  for (const ptx::Operand& value : values.elements) list.push_back(f.destination(value, Width::k32));
  return pair ? f.destination(operand.elements[1], Width::kPredicate) : Op::kNone;
}

void emit_access(FunctionCompiler& f, Handler handler, uint32_t handle, const std::vector<uint32_t>& list,
                 const TextureForm& form, uint32_t predicate = Op::kNone) {
  if (f.refused()) return;
  const uint32_t first = f.operand_list(list);
  Op& op = f.emit(handler);
  op.d = predicate, op.a = handle, op.extra = first;
  op.imm = std::bit_cast<int64_t>(form);
}

bool is_value_type(const std::string& word) {
  return word == "f32" || word == "s32" || word == "u32";
}

// The last four modifiers of tex and tld4: geometry, v4, type of the values, type of the coordinates.
std::optional<TextureForm> fetch_form(const ptx::Instruction& instruction, size_t before) {
  const auto& words = instruction.modifiers;
  TextureForm form;
  if (words.size() != before + 4 || words[before + 1] != "v4" || !is_value_type(words[before + 2])) return std::nullopt;
  const auto geometry = geometry_of(words[before]);
  if (!geometry || (words.back() != "f32" && words.back() != "s32")) return std::nullopt;
  form.geometry = *geometry;
  form.whole_coordinates = words.back() == "s32";
  const bool cube = form.geometry == Geometry::kCube || form.geometry == Geometry::kCubeLayered;
  return cube && form.whole_coordinates ? std::nullopt : std::optional(form);
}

void decode_fetch(FunctionCompiler& f, const ptx::Instruction& instruction, const TextureForm& form) {
  std::vector<uint32_t> list;
  const uint32_t predicate = add_values(f, instruction.operands[0], list);
  const uint32_t handle = handle_of(f, instruction.operands[1], 2);
  if (f.refused()) return;
  add_coordinates(f, instruction.operands[1].elements[1], form.geometry, list);
  emit_access(f, fetch_texture, handle, list, form, predicate);
}

}  // namespace

// tex{.base|.level|.grad}.<geometry>.v4.<type>.<type> d, [a, c]{, level}{, dx, dy}: a texture has one level here, so
// that what would choose among levels does not matter.
void decode_tex(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& words = instruction.modifiers;
  const std::string first = words.empty() ? "" : words[0];
  const bool level = first == "level", gradient = first == "grad";
  const auto form = fetch_form(instruction, level || gradient || first == "base" ? 1 : 0);
  const size_t extra = level ? 1 : gradient ? 2 : 0;
  if (!form || instruction.operands.size() != 2 + extra) return f.refuse();
  decode_fetch(f, instruction, *form);
}

// tld4.<channel>.<geometry>.v4.<type>.f32 d, [a, c]
void decode_tld4(FunctionCompiler& f, const ptx::Instruction& instruction) {
  static constexpr std::pair<const char*, uint8_t> kChannels[] = {{"r", 0}, {"g", 1}, {"b", 2}, {"a", 3}};
  const auto& words = instruction.modifiers;
  const auto channel = words.empty() ? std::nullopt : find(kChannels, words[0]);
  auto form = fetch_form(instruction, 1);
  const bool known = channel && form && !form->whole_coordinates && instruction.operands.size() == 2 &&
                     form->geometry != Geometry::k1D && form->geometry != Geometry::k1DLayered &&
                     form->geometry != Geometry::k3D;
  if (!known) return f.refuse();
  form->gather = true;
  form->channel = *channel;
  decode_fetch(f, instruction, *form);
}

// suld.b.<geometry>{.cop}{.vector}.<type>.<boundary> d, [a, c] and sust.b... [a, c], d
void decode_surface(FunctionCompiler& f, const ptx::Instruction& instruction) {
  static constexpr std::pair<const char*, Boundary> kBoundaries[] = {
      {"trap", Boundary::kTrap}, {"clamp", Boundary::kClamp}, {"zero", Boundary::kZero}};
  static constexpr std::pair<const char*, uint8_t> kTypes[] = {{"b8", 1}, {"b16", 2}, {"b32", 4}, {"b64", 8}};
  static constexpr std::pair<const char*, uint8_t> kVectors[] = {{"v2", 2}, {"v4", 4}};
  static constexpr std::pair<const char*, int> kHints[] = {{"b", 0},  {"ca", 0}, {"cg", 0}, {"cs", 0},
                                                           {"cv", 0}, {"wb", 0}, {"wt", 0}};
  const bool store = instruction.opcode == "sust";
  TextureForm form;
  form.elements = 1;
  std::optional<Geometry> geometry;
  for (const std::string& word : instruction.modifiers) {
    if (const auto found = geometry_of(word)) {
      geometry = found;
    } else if (const auto type = find(kTypes, word)) {
      form.element_bytes = *type;
    } else if (const auto vector = find(kVectors, word)) {
      form.elements = *vector;
    } else if (const auto boundary = find(kBoundaries, word)) {
      form.boundary = *boundary;
    } else if (!find(kHints, word)) {
      return f.refuse("modifier ." + word);
    }
  }
  if (!instruction.has("b") || !geometry || *geometry >= Geometry::kCube || form.element_bytes == 0 ||
      form.elements * form.element_bytes > 16 || instruction.operands.size() != 2)
    return f.refuse();
  form.geometry = *geometry;

  const ptx::Operand& place = instruction.operands[store ? 0 : 1];
  const ptx::Operand& values = instruction.operands[store ? 1 : 0];
  const uint32_t handle = handle_of(f, place, 2);
  const std::vector<ptx::Operand> registers =
      values.kind == Kind::kVector ? values.elements : std::vector<ptx::Operand>{values};
  if (registers.size() != form.elements) return f.refuse("its vector");
  const Width width = form.element_bytes == 8 ? Width::k64 : Width::k32;
  std::vector<uint32_t> list;
  for (const ptx::Operand& value : registers) {
    list.push_back(store ? f.source(value, width) : f.destination(value, width));
    if (list.back() == Op::kNone) return f.refuse("a discarded result");
  }
  if (f.refused()) return;
  add_coordinates(f, place.elements[1], form.geometry, list);
  emit_access(f, store ? store_surface : load_surface, handle, list, form);
}

// txq.<query>.b32 d, [a] and suq
void decode_texture_query(FunctionCompiler& f, const ptx::Instruction& instruction) {
  static constexpr std::pair<const char*, TextureQuery> kQueries[] = {{"width", TextureQuery::kWidth},
                                                                      {"height", TextureQuery::kHeight},
                                                                      {"depth", TextureQuery::kDepth},
                                                                      {"array_size", TextureQuery::kLayers},
                                                                      {"num_mipmap_levels", TextureQuery::kLevels},
                                                                      {"num_samples", TextureQuery::kSamples},
                                                                      {"normalized_coords", TextureQuery::kNormalized}};
  const auto& words = instruction.modifiers;
  const auto query = words.size() == 2 && words[1] == "b32" ? find(kQueries, words[0]) : std::nullopt;
  if (!query || instruction.operands.size() != 2) return f.refuse();
  const uint32_t d = f.destination(instruction.operands[0], Width::k32);
  const uint32_t handle = handle_of(f, instruction.operands[1], 1);
  if (d == Op::kNone) return f.refuse("a discarded result");
  if (f.refused()) return;
  TextureForm form;
  form.query = *query;
  Op& op = f.emit(query_texture);
  op.d = d, op.a = handle, op.flags = instruction.opcode == "suq" ? 1 : 0;
  op.imm = std::bit_cast<int64_t>(form);
}

}  // namespace heddle::software
