#include "image/loose_image.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/units.h"
#include "image/fatbin.h"
#include "image/fatbin_format.h"
#include "image/no_throw.h"
#include "image/ptx_cursor.h"

namespace heddle::image {
namespace {

constexpr size_t kPayloadAlign = 8;
constexpr uint64_t kMostElfBytes = 4 * kGiB;  // what says more is no cubin

using FatbinBytes = std::vector<std::byte>;

struct Target {
  uint32_t arch = 0;
  uint64_t flags = 0;
};

// The number in "sm_90a", and which devices run such code.
std::optional<Target> parse_target(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  Target target;
  const char* const end = name.data() + name.size();
  const auto [suffix, error] = std::from_chars(name.data() + kPrefix.size(), end, target.arch);
  if (error != std::errc{}) return std::nullopt;
  if (suffix != end && *suffix == 'a') target.flags = kFatbinExactArch;
  if (suffix != end && *suffix == 'f') target.flags = kFatbinFamilyArch;
  return target;
}

std::optional<Target> target_of_ptx(std::string_view text) {
  PtxCursor cursor(text);
  for (auto token = cursor.next(); !token.empty(); token = cursor.next()) {
    if (token == ".target") return parse_target(cursor.next());
  }
  return std::nullopt;
}

FatbinBytes wrap(uint16_t kind, const Target& target, std::string_view image) {
  FatbinEntry entry{};
  entry.kind = kind;
  entry.version = 0x101;
  entry.header_size = sizeof entry;
  entry.payload_size = round_up(image.size(), kPayloadAlign);
  entry.arch = target.arch;
  entry.flags = target.flags;
  const FatbinHeader header{kFatbinMagic, 1, sizeof header, sizeof entry + entry.payload_size};
  FatbinBytes bytes(sizeof header + header.size);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &entry, sizeof entry);
  std::memcpy(bytes.data() + sizeof header + sizeof entry, image.data(), image.size());
  return bytes;
}

// Since version 8 of the cubins' ABI (CUDA 13) the second byte of the flags is the architecture, before it the first.
uint32_t arch_of_cubin(const Elf64_Ehdr& header) {
  constexpr unsigned char kShiftedFrom = 8;
  const bool shifted = header.e_ident[EI_ABIVERSION] >= kShiftedFrom;
  return (shifted ? header.e_flags >> 8 : header.e_flags) & 0xff;
}

// The end of the section table, of every section that has bytes in the file, and of the program headers.
Result<uint64_t> elf_bytes(const char* file, uint64_t most) {
  Elf64_Ehdr header;
  if (most < sizeof header) return fail(ErrorCode::kCorrupt, "a cubin is shorter than its header");
  std::memcpy(&header, file, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr)))
    return fail(ErrorCode::kCorrupt, "a cubin's header is not that of a 64-bit ELF file");
  uint64_t end = std::max<uint64_t>(sizeof header, header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  end = std::max<uint64_t>(end, header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize);
  if (header.e_shoff > most || header.e_phoff > most || end > most)
    return fail(ErrorCode::kCorrupt, "a cubin's tables end at byte %llu, behind the file's end",
                static_cast<unsigned long long>(end));
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, file + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > most || section.sh_size > most - section.sh_offset)
      return fail(ErrorCode::kCorrupt, "section %u of a cubin ends behind the file's end", i);
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

Result<FatbinBytes> fatbin_of_cubin(const char* file, uint64_t most) {
  const auto bytes = elf_bytes(file, most);
  if (!bytes) return tl::unexpected(bytes.error());
  Elf64_Ehdr header;
  std::memcpy(&header, file, sizeof header);
  return wrap(kFatbinCubin, {arch_of_cubin(header), 0}, {file, *bytes});
}

Result<FatbinBytes> whole_fatbin(const char* file, uint64_t most) {
  FatbinHeader header;
  if (most < sizeof header) return fail(ErrorCode::kCorrupt, "a fat binary is shorter than its header");
  std::memcpy(&header, file, sizeof header);
  uint64_t bytes = 0;
  if (__builtin_add_overflow(header.size, header.header_size, &bytes) || bytes > std::min(most, kMaxFatbinBytes))
    return fail(ErrorCode::kCorrupt, "a fat binary announces %llu bytes, more than there are",
                static_cast<unsigned long long>(header.size));
  const auto* const begin = reinterpret_cast<const std::byte*>(file);
  return FatbinBytes(begin, begin + bytes);
}

Result<FatbinBytes> fatbins_behind(const void* wrapper) {
  const auto fatbins = fatbins_of_wrapper(wrapper);
  if (!fatbins) return tl::unexpected(fatbins.error());
  FatbinBytes all;
  for (const auto& fatbin : *fatbins) all.insert(all.end(), fatbin.begin(), fatbin.end());
  return all;
}

// Whether the bytes begin so. Looks no further than they agree: a text may be shorter.
template <class Magic>
bool begins_with(const char* bytes, uint64_t most, const Magic& magic) {
  const auto* const wanted = reinterpret_cast<const char*>(&magic);
  for (size_t i = 0; i < sizeof magic; ++i) {
    if (i >= most || bytes[i] != wanted[i]) return false;
  }
  return true;
}

// A bundle begins with these eight bytes of heddle's own; no text does.
constexpr char kBundleMagic[8] = {'\x7f', 'h', 'e', 'd', 'd', 'l', 'e', '\x01'};
struct BundleHeader {
  char magic[8];
  uint64_t bytes;  // behind the header
};

Result<FatbinBytes> fatbins_in_bundle(const char* file, uint64_t most) {
  BundleHeader header;
  if (most < sizeof header) return fail(ErrorCode::kCorrupt, "a linked module is shorter than its header");
  std::memcpy(&header, file, sizeof header);
  if (header.bytes > most - sizeof header)
    return fail(ErrorCode::kCorrupt, "a linked module announces %llu bytes, more than there are",
                static_cast<unsigned long long>(header.bytes));
  const auto* const begin = reinterpret_cast<const std::byte*>(file) + sizeof header;
  return FatbinBytes(begin, begin + header.bytes);
}

constexpr char kElfMagic[4] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3};

}  // namespace

Result<FatbinBytes> fatbin_of_ptx(std::string_view text) {
  return no_throw([&]() -> Result<FatbinBytes> {
    const auto target = target_of_ptx(text);
    if (!target)
      return fail(ErrorCode::kCorrupt,
                  "what was to be loaded as a module is no fat binary, no cubin, and no PTX with a .target sm_NN");
    return wrap(kFatbinPtx, *target, text);
  });
}

Result<FatbinBytes> loose_fatbin(const void* image) {
  return no_throw([&]() -> Result<FatbinBytes> {
    if (!image) return fail(ErrorCode::kInvalidArgument, "no module (null)");
    const auto* const bytes = static_cast<const char*>(image);
    if (begins_with(bytes, kMostElfBytes, kWrapperMagic)) return fatbins_behind(image);
    if (begins_with(bytes, kMostElfBytes, kFatbinMagic)) return whole_fatbin(bytes, kMaxFatbinBytes);
    if (begins_with(bytes, kMostElfBytes, kElfMagic)) return fatbin_of_cubin(bytes, kMostElfBytes);
    if (begins_with(bytes, kMostElfBytes, kBundleMagic)) return fatbins_in_bundle(bytes, kMaxFatbinBytes);
    return fatbin_of_ptx(std::string_view(bytes, std::strlen(bytes)));
  });
}

Result<FatbinBytes> loose_fatbin(std::string_view file) {
  return no_throw([&]() -> Result<FatbinBytes> {
    if (begins_with(file.data(), file.size(), kFatbinMagic)) return whole_fatbin(file.data(), file.size());
    if (begins_with(file.data(), file.size(), kElfMagic)) return fatbin_of_cubin(file.data(), file.size());
    if (begins_with(file.data(), file.size(), kBundleMagic)) return fatbins_in_bundle(file.data(), file.size());
    return fatbin_of_ptx(file.substr(0, file.find('\0')));
  });
}

FatbinBytes bundle(const FatbinBytes& fatbins) {
  BundleHeader header{};
  std::memcpy(header.magic, kBundleMagic, sizeof header.magic);
  header.bytes = fatbins.size();
  FatbinBytes bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.insert(bytes.end(), fatbins.begin(), fatbins.end());
  return bytes;
}

}  // namespace heddle::image
