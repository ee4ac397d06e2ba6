#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What a GPU computed for every form. A file of records, all numbers little-endian:
//   "heddle numerics 1\n", the device's name, "\n"
//   for each form: u64 fingerprint (fingerprint_of), u32 bytes, the results of all threads
namespace heddle::numerics {

struct Recording {
  std::string device;
  std::map<uint64_t, std::vector<uint8_t>> results;  // by fingerprint
};

std::string to_bytes(const Recording& recording);
// None if these are not the bytes of a recording.
std::optional<Recording> parse_recording(const std::string& bytes);

}  // namespace heddle::numerics
