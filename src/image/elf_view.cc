#include "image/elf_view.h"

#include <algorithm>
#include <utility>

namespace heddle::image {
namespace {

// The string at `offset` of a string table; empty where it does not end inside.
std::string_view string_at(ByteSpan table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest(reinterpret_cast<const char*>(table.data()) + offset, table.size() - offset);
  const size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

Result<Elf64_Ehdr> read_header(ByteSpan file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(ErrorCode::kCorrupt, "a cubin of %zu bytes is no ELF file", file.size());
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_CUDA) {
    return fail(ErrorCode::kNotSupported, "an ELF file of class %u, byte order %u and machine %u is no 64-bit cubin",
                header->e_ident[EI_CLASS], header->e_ident[EI_DATA], header->e_machine);
  }
  return *header;
}

}  // namespace

Result<ElfView> ElfView::open(std::string_view text) {
  const ByteSpan file = std::as_bytes(std::span(text));
  const auto header = read_header(file);
  if (!header) return tl::unexpected(header.error());
  ElfView view;
  HEDDLE_TRY(view.read_sections(file, *header));
  HEDDLE_TRY(view.read_symbols(file, *header));
  return view;
}

Status ElfView::read_sections(ByteSpan file, const Elf64_Ehdr& header) {
  const auto table = slice(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (!table || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return fail(ErrorCode::kCorrupt, "a cubin of %zu bytes says that %u section headers of %u bytes stand at %llu",
                file.size(), header.e_shnum, header.e_shentsize, static_cast<unsigned long long>(header.e_shoff));
  }
  ByteSpan names;
  if (const auto strings = read_at<Elf64_Shdr>(*table, uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr))) {
    names = slice(file, strings->sh_offset, strings->sh_size).value_or(ByteSpan());
  }
  for (uint64_t index = 0; index < header.e_shnum; ++index) {
    const auto entry = *read_at<Elf64_Shdr>(*table, index * sizeof(Elf64_Shdr));
    const bool empty = entry.sh_type == SHT_NOBITS || entry.sh_type == SHT_NULL;
    const auto contents = empty ? ByteSpan() : slice(file, entry.sh_offset, entry.sh_size);
    if (!contents) {
      return fail(ErrorCode::kCorrupt, "section %llu of a cubin passes its end",
                  static_cast<unsigned long long>(index));
    }
    sections_.push_back({string_at(names, entry.sh_name), entry.sh_type, entry.sh_size, entry.sh_info, *contents});
    by_name_.try_emplace(sections_.back().name, index);
  }
  return {};
}

Status ElfView::read_symbols(ByteSpan file, const Elf64_Ehdr& header) {
  const auto table =
      std::find_if(sections_.begin(), sections_.end(), [](const Section& s) { return s.type == SHT_SYMTAB; });
  if (table == sections_.end()) return {};
  const auto index = static_cast<uint64_t>(table - sections_.begin());
  const auto entry = read_at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
  const Section* strings = section(entry->sh_link);
  if (!strings) {
    return fail(ErrorCode::kCorrupt, "a cubin's symbols name section %u of %zu for their strings", entry->sh_link,
                sections_.size());
  }
  for (uint64_t at = 0; const auto symbol = read_at<Elf64_Sym>(table->contents, at); at += sizeof(Elf64_Sym)) {
    symbols_.push_back({string_at(strings->contents, symbol->st_name),
                        static_cast<uint8_t>(ELF64_ST_TYPE(symbol->st_info)), symbol->st_other, symbol->st_shndx,
                        symbol->st_size});
  }
  return {};
}

const ElfView::Section* ElfView::section(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &sections_[found->second];
}

}  // namespace heddle::image
