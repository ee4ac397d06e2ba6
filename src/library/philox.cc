#include "library/philox.h"

namespace heddle::library {
namespace {

// The paper's constants: multipliers, and the key's Weyl sequence (golden ratio, square root of 3 less 1).
constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

uint32_t high(uint64_t product) {
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace

PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0], product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key0, static_cast<uint32_t>(product1), high(product0) ^ counter[3] ^ key1,
               static_cast<uint32_t>(product0)};
    key0 += kWeyl0, key1 += kWeyl1;
  }
  return counter;
}

}  // namespace heddle::library
