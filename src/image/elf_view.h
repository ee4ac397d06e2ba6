#pragma once

#include <elf.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "image/bytes.h"

namespace heddle::image {

// The sections and symbols of an ELF file in memory; views into it. Every offset was checked.
class ElfView {
 public:
  struct Section {
    std::string_view name;
    uint32_t type = 0;
    uint64_t size = 0;  // in memory; its contents are empty where it is SHT_NOBITS
    uint32_t info = 0;  // Elf64_Shdr::sh_info
    ByteSpan contents;
  };
  struct Symbol {
    std::string_view name;
    uint8_t type = 0;      // STT_FUNC, STT_OBJECT
    uint8_t other = 0;     // Elf64_Sym::st_other
    uint16_t section = 0;  // index; SHN_UNDEF and the reserved ones name no section
    uint64_t size = 0;
  };

  // kNotSupported for another machine than a CUDA device, kCorrupt for what does not fit. May throw std::bad_alloc.
  static Result<ElfView> open(std::string_view file);

  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }  // in file order, the null symbol included
  const Section* section(std::string_view name) const;             // the first of that name, or null
  const Section* section(uint32_t index) const { return index < sections_.size() ? &sections_[index] : nullptr; }

 private:
  Status read_sections(ByteSpan file, const Elf64_Ehdr& header);
  Status read_symbols(ByteSpan file, const Elf64_Ehdr& header);

  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace heddle::image
