#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"

namespace heddle::redirect {

// A loaded object's file, read-only: its symbol table and what it needs. Every offset is checked, since the file may
// be anything that the loader could digest.
class ElfFile {
 public:
  static Result<ElfFile> open(const std::string& path);

  struct Function {
    const char* name;
    uint64_t address;  // before the load bias
    uint64_t size;
  };
  // Functions that the object defines: of .symtab, which strip removes, and of .dynsym. `each(function)`.
  template <class Each>
  void functions(Each&& each) const {
    for (const Elf64_Shdr& section : sections()) {
      if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) walk(section, each);
    }
  }
  // The libraries that it names (DT_NEEDED).
  std::vector<std::string> needed() const;
  // Bytes of the file; nullptr where it does not have them.
  const char* at(uint64_t offset, uint64_t bytes) const;
  // Whether its constants (.rodata; the whole file where sections are gone) hold `text`.
  bool contains(std::string_view text) const;

 private:
  explicit ElfFile(Mapping mapping) : mapping_(std::move(mapping)) {}

  const char* text_at(const Elf64_Shdr& strings, uint64_t offset) const;
  std::vector<Elf64_Shdr> sections() const;
  const Elf64_Shdr* linked(const std::vector<Elf64_Shdr>& all, const Elf64_Shdr& section) const;
  template <class Each>
  void walk(const Elf64_Shdr& table, Each& each) const {
    const auto all = sections();
    const Elf64_Shdr* strings = linked(all, table);
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(at(table.sh_offset, table.sh_size));
    if (!strings || !symbols) return;
    for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const Elf64_Sym& symbol = symbols[i];
      const char* name = text_at(*strings, symbol.st_name);
      if (name && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
        each(Function{name, symbol.st_value, symbol.st_size});
    }
  }

  Mapping mapping_;
};

}  // namespace heddle::redirect
