// Fuzzes every reader of this room with the same bytes: they may be a fat binary, PTX or a cubin.
//
//   image_fuzz new-inputs/ src/image/corpus/ -max_total_time=60

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "image/describe.h"
#include "image/effects.h"
#include "image/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle;
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto images = image::read_fatbin(input, {Bytes{kMiB}, Bytes{4 * kMiB}})) {
    (void)image::choose_ptx(*images, 90);
    (void)image::describe(*images);
  }
  (void)image::describe_ptx(text);
  (void)image::effects_of_ptx({&text, 1});
  (void)image::describe_cubin(text);
  return 0;
}
