#include "device/software/ptx/ast.h"

#include <algorithm>
#include <array>
#include <utility>

namespace heddle::ptx {
namespace {

using enum TypeKind;
constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"u8", {kUnsigned, 8}},      {"u16", {kUnsigned, 16}}, {"u32", {kUnsigned, 32}}, {"u64", {kUnsigned, 64}},
    {"s8", {kSigned, 8}},        {"s16", {kSigned, 16}},   {"s32", {kSigned, 32}},   {"s64", {kSigned, 64}},
    {"b8", {kBits, 8}},          {"b16", {kBits, 16}},     {"b32", {kBits, 32}},     {"b64", {kBits, 64}},
    {"b128", {kBits, 128}},      {"f16", {kFloat, 16}},    {"f32", {kFloat, 32}},    {"f64", {kFloat, 64}},
    {"pred", {kPredicate, 1}},   {"f16x2", {kOther, 32}},  {"bf16", {kOther, 16}},   {"bf16x2", {kOther, 32}},
    {"tf32", {kOther, 32}},      {"e4m3x2", {kOther, 16}}, {"e5m2x2", {kOther, 16}}, {"f32x2", {kOther, 64}},
    {"u16x2", {kOther, 32}},     {"s16x2", {kOther, 32}},  {"texref", {kOther, 0}},  {"surfref", {kOther, 0}},
    {"samplerref", {kOther, 0}},
};

template <class Range>
auto find_named(const Range& range, std::string_view name) {
  return std::find_if(range.begin(), range.end(), [&](const auto& item) { return item.name == name; });
}

}  // namespace

std::optional<Type> parse_type(std::string_view name) {
  for (const auto& [text, type] : kTypes)
    if (text == name) return type;
  return std::nullopt;
}

bool Instruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::name() const {
  std::string text = opcode;
  for (const auto& modifier : modifiers) text += "." + modifier;
  return text;
}

const Function* Module::find_function(std::string_view name) const {
  auto defined =
      std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.defined && f.name == name; });
  auto found = defined != functions.end() ? defined : find_named(functions, name);
  return found != functions.end() ? &*found : nullptr;
}

const Variable* Module::find_variable(std::string_view name) const {
  auto found = find_named(variables, name);
  return found != variables.end() ? &*found : nullptr;
}

}  // namespace heddle::ptx
