#include "client/redirect/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace heddle::redirect {

Result<ElfFile> ElfFile::open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(-1, "cannot open '%s'", path.c_str());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(-1, "cannot look at '%s'", path.c_str());
  const auto bytes = static_cast<size_t>(status.st_size);
  if (bytes < sizeof(Elf64_Ehdr)) return fail(ErrorCode::kCorrupt, "'%s' is no program", path.c_str());
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) return fail_errno(-1, "cannot map '%s'", path.c_str());
  ElfFile file(Mapping(mapped, bytes));
  const auto* header = static_cast<const Elf64_Ehdr*>(mapped);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return fail(ErrorCode::kCorrupt, "'%s' is no 64-bit ELF file", path.c_str());
  return file;
}

const char* ElfFile::at(uint64_t offset, uint64_t bytes) const {
  if (offset > mapping_.size() || bytes > mapping_.size() - offset) return nullptr;
  return static_cast<const char*>(mapping_.data()) + offset;
}

// A string that ends inside its table.
const char* ElfFile::text_at(const Elf64_Shdr& strings, uint64_t offset) const {
  const char* table = at(strings.sh_offset, strings.sh_size);
  if (!table || offset >= strings.sh_size) return nullptr;
  return std::memchr(table + offset, 0, strings.sh_size - offset) ? table + offset : nullptr;
}

std::vector<Elf64_Shdr> ElfFile::sections() const {
  Elf64_Ehdr header;
  std::memcpy(&header, mapping_.data(), sizeof header);
  std::vector<Elf64_Shdr> all(header.e_shnum);
  const char* table = at(header.e_shoff, all.size() * sizeof(Elf64_Shdr));
  if (!table || header.e_shentsize != sizeof(Elf64_Shdr)) return {};
  std::memcpy(all.data(), table, all.size() * sizeof(Elf64_Shdr));
  return all;
}

const Elf64_Shdr* ElfFile::linked(const std::vector<Elf64_Shdr>& all, const Elf64_Shdr& section) const {
  return section.sh_link < all.size() ? &all[section.sh_link] : nullptr;
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  const auto all = sections();
  for (const Elf64_Shdr& section : all) {
    if (section.sh_type != SHT_DYNAMIC) continue;
    const Elf64_Shdr* strings = linked(all, section);
    const char* entries = at(section.sh_offset, section.sh_size);
    for (uint64_t i = 0; strings && entries && i < section.sh_size / sizeof(Elf64_Dyn); ++i) {
      Elf64_Dyn entry;
      std::memcpy(&entry, entries + i * sizeof entry, sizeof entry);
      if (entry.d_tag != DT_NEEDED) continue;
      if (const char* name = text_at(*strings, entry.d_un.d_val)) names.emplace_back(name);
    }
  }
  return names;
}

bool ElfFile::contains(std::string_view text) const {
  const auto all = sections();
  if (all.empty()) return ::memmem(mapping_.data(), mapping_.size(), text.data(), text.size()) != nullptr;
  return std::any_of(all.begin(), all.end(), [&](const Elf64_Shdr& section) {
    const bool constants = section.sh_type == SHT_PROGBITS && section.sh_flags == SHF_ALLOC;
    const char* bytes = constants ? at(section.sh_offset, section.sh_size) : nullptr;
    return bytes && ::memmem(bytes, section.sh_size, text.data(), text.size()) != nullptr;
  });
}

}  // namespace heddle::redirect
