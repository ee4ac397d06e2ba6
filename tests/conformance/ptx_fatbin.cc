#include "ptx_fatbin.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "image/fatbin_format.h"

namespace heddle::conformance {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string ptx_fatbin(std::string_view ptx, uint32_t arch) {
  std::string payload(ptx);
  payload.resize(round_up(payload.size() + 1, 8));  // ends with a zero
  image::FatbinEntry entry{};
  entry.kind = image::kFatbinPtx;
  entry.version = 0x101;
  entry.header_size = sizeof entry;
  entry.payload_size = payload.size();
  entry.arch = arch;
  entry.flags = 0x11;  // 64 bits, Linux
  std::string images = bytes_of(entry) + payload;
  return bytes_of(image::FatbinHeader{image::kFatbinMagic, 1, sizeof(image::FatbinHeader), images.size()}) + images;
}

// The suite may run on another machine than the one that built it.
std::string kernels_from_ptx() {
  const char* elsewhere = std::getenv("HEDDLE_CONFORMANCE_PTX");
  return ptx_fatbin(read_file(elsewhere ? elsewhere : CONFORMANCE_PTX), 75);
}

std::string kernels_from_nvcc() {
#ifdef CONFORMANCE_FATBIN
  return read_file(CONFORMANCE_FATBIN);
#else
  return {};
#endif
}

}  // namespace heddle::conformance
