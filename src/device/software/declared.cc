#include "device/software/declared.h"

#include "image/parameter_words.h"

namespace heddle::software {

DeclaredAccess declared_access(const Program& program, const ProgramKernel& kernel,
                               std::span<const std::byte> parameters, const MappedRanges& mapped) {
  DeclaredAccess declared;
  const image::KernelEffects* effects = kernel.effects;
  if (!effects || effects->may_read_anything()) declared.allow_all_reads();
  if (!effects || effects->writes_anything) declared.allow_all_writes();
  if (!effects) return declared;
  image::each_parameter_word(kernel.layout, *effects, parameters, [&](const image::ParameterWord& word) {
    mapped.each_meant_by(word.value, [&](const MappedRanges::Range& range) {
      declared.allow(range.address, range.bytes, word.read, word.written);
    });
    program.each_variable([&](std::string_view, const device::Variable& variable) {
      if (word.value - variable.address >= variable.bytes) return;
      declared.allow(variable.address, variable.bytes, word.read, word.written);
    });
  });
  for (const image::VariableUse& use : effects->variables) {
    if (const auto variable = program.variable(use.name))
      declared.allow(variable->address, variable->bytes, use.read, use.written);
  }
  return declared;
}

}  // namespace heddle::software
