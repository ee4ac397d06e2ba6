#include "device/software/simt/device_printf.h"

#include <cstring>
#include <string_view>

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

constexpr size_t kMaxString = 64 * kKiB;
constexpr int kMaxWidth = 1024;  // what a field may be padded to; a kernel must not fill the host's memory

// Walks over the argument buffer.
class ArgumentList {
 public:
  ArgumentList(const MemoryReader& reader, uint64_t address) : reader_(reader), address_(address) {}

  // False, and zero, if it cannot be read; `failed` tells later.
  uint64_t next(size_t bytes) {
    uint64_t value = 0;
    address_ = round_up(address_, bytes);
    if (!reader_.read(address_, &value, bytes)) failed_ = true;
    address_ += bytes;
    ++count_;
    return value;
  }
  bool failed() const { return failed_; }
  int32_t count() const { return count_; }

 private:
  const MemoryReader& reader_;
  uint64_t address_;
  bool failed_ = false;
  int32_t count_ = 0;
};

// One conversion of a format: "%-08.3lld" is flags "-0", width 8, precision 3, long, 'd'.
struct Conversion {
  std::string flags;
  int width = -1, precision = -1;
  bool is_long = false;
  int halvings = 0;  // "h": a short, "hh": a char
  char kind = 0;
};

// A number, or '*' for the next argument; -1 where there is none.
int field_number(std::string_view& rest, ArgumentList& arguments) {
  if (!rest.empty() && rest[0] == '*') {
    rest.remove_prefix(1);
    return static_cast<int>(static_cast<int32_t>(arguments.next(4)));
  }
  int number = -1;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    number = std::min((number < 0 ? 0 : number) * 10 + (rest[0] - '0'), kMaxWidth);
    rest.remove_prefix(1);
  }
  return number;
}

Conversion parse_conversion(std::string_view& rest, ArgumentList& arguments) {
  Conversion conversion;
  while (!rest.empty() && std::strchr("-+ #0", rest[0]) && conversion.flags.size() < 5) {
    conversion.flags += rest[0];
    rest.remove_prefix(1);
  }
  conversion.width = field_number(rest, arguments);
  if (conversion.width < -1) {  // a negative width from '*' means left-justified
    conversion.flags += '-';
    conversion.width = -conversion.width;
  }
  conversion.width = std::min(conversion.width, kMaxWidth);
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    bool given = !rest.empty() && rest[0] == '*';  // a negative one then counts as absent
    int precision = field_number(rest, arguments);
    conversion.precision = std::min(given ? precision : std::max(precision, 0), kMaxWidth);
  }
  while (!rest.empty() && std::strchr("hljztL", rest[0])) {
    conversion.is_long |= rest[0] != 'h' && rest[0] != 'L';
    conversion.halvings += rest[0] == 'h';
    rest.remove_prefix(1);
  }
  if (!rest.empty()) {
    conversion.kind = rest[0];
    rest.remove_prefix(1);
  }
  return conversion;
}

// The host's format for a conversion, with width and precision as arguments.
std::string host_format(const Conversion& c, const char* length) {
  return "%" + c.flags + (c.width >= 0 ? std::to_string(c.width) : "") +
         (c.precision >= 0 ? "." + std::to_string(c.precision) : "") + length + c.kind;
}

template <class T>
std::string formatted(const std::string& format, T value) {
  char buffer[2 * kMaxWidth + 512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int length = snprintf(buffer, sizeof buffer, format.c_str(), value);
#pragma GCC diagnostic pop
  return std::string(buffer, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
}

std::string padded(const Conversion& c, std::string text) {
  if (c.precision >= 0) text.resize(std::min(text.size(), static_cast<size_t>(c.precision)));
  size_t width = c.width > 0 ? static_cast<size_t>(c.width) : 0;
  if (text.size() >= width) return text;
  std::string padding(width - text.size(), ' ');
  return c.flags.find('-') != std::string::npos ? text + padding : padding + text;
}

// The text of a conversion; none if it is not one of printf's.
std::optional<std::string> convert(const Conversion& c, const MemoryReader& reader, ArgumentList& arguments) {
  switch (c.kind) {
    case '%':
      return "%";
    case 'd':
    case 'i': {
      uint64_t value = arguments.next(c.is_long ? 8 : 4);
      int64_t number = c.is_long ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
      if (c.halvings == 1) number = static_cast<int16_t>(value);
      if (c.halvings > 1) number = int64_t{static_cast<int8_t>(value)};
      return formatted(host_format(c, "ll"), static_cast<long long>(number));
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      uint64_t number = arguments.next(c.is_long ? 8 : 4);
      if (c.halvings == 1) number = static_cast<uint16_t>(number);
      if (c.halvings > 1) number = static_cast<uint8_t>(number);
      return formatted(host_format(c, "ll"), static_cast<unsigned long long>(number));
    }
    case 'c':
      return padded(c, std::string(1, static_cast<char>(arguments.next(4))));
    case 'p':
      return formatted(host_format(c, ""), reinterpret_cast<void*>(arguments.next(8)));
    case 's': {
      uint64_t address = arguments.next(8);
      return padded(c, address ? reader.string(address).value_or("(unreadable)") : "(null)");
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      uint64_t bits = arguments.next(8);
      double value;
      std::memcpy(&value, &bits, sizeof value);
      return formatted(host_format(c, ""), value);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool MemoryReader::read(uint64_t address, void* to, size_t bytes) const {
  const BlockState& block = *warp_.block;
  const std::byte* from = nullptr;
  auto inside = [&](uint64_t offset, uint64_t limit) { return offset < limit && bytes <= limit - offset; };
  if (address < kSharedWindow) {
    if (block.memory->contains(address, bytes)) from = reinterpret_cast<const std::byte*>(address);
  } else if (address < kLocalWindow) {
    if (inside(address - kSharedWindow, block.shared_bytes)) from = block.shared + (address - kSharedWindow);
  } else if (address < kParameterWindow) {
    uint64_t offset = address - kLocalWindow;
    if (inside(offset, block.local_bytes)) from = warp_.local + size_t{lane_} * block.local_stride + offset;
  } else if (inside(address - kParameterWindow, block.kernel->parameter_bytes)) {
    from = block.parameters + (address - kParameterWindow);
  }
  if (from) std::memcpy(to, from, bytes);
  return from != nullptr;
}

std::optional<std::string> MemoryReader::string(uint64_t address) const {
  std::string result;
  for (char c; result.size() < kMaxString; result += c) {
    if (!read(address + result.size(), &c, 1)) return std::nullopt;
    if (c == 0) break;
  }
  return result;
}

Result<PrintedText> format_device_printf(const MemoryReader& reader, uint64_t format, uint64_t arguments) {
  auto text = reader.string(format);
  if (!text)
    return fail(ErrorCode::kDeviceFault, "the format at 0x%llx cannot be read",
                static_cast<unsigned long long>(format));
  ArgumentList list(reader, arguments);
  PrintedText printed;
  std::string_view rest = *text;
  while (!rest.empty()) {
    size_t plain = std::min(rest.find('%'), rest.size());
    printed.text += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    std::string_view start = rest;
    rest.remove_prefix(1);
    Conversion conversion = parse_conversion(rest, list);
    auto converted = convert(conversion, reader, list);
    printed.text += converted ? *converted : std::string(start.substr(0, start.size() - rest.size()));
    if (list.failed())
      return fail(ErrorCode::kDeviceFault, "the arguments at 0x%llx cannot be read",
                  static_cast<unsigned long long>(arguments));
  }
  printed.argument_count = list.count();
  return printed;
}

}  // namespace heddle::software
