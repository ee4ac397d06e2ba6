#include "library/sobol.h"

#include <bit>
#include <mutex>
#include <vector>

#include "library/philox.h"

namespace heddle::library {
namespace {

constexpr uint64_t kDirectionsKey = 0x6865'6464'6c65'5331, kShiftsKey = 0x6865'6464'6c65'5332;  // any two would do

// Polynomials over GF(2) as the bits of a word, modulo one of that degree.
struct Field {
  uint32_t polynomial, degree;

  uint32_t product(uint32_t a, uint32_t b) const {
    uint32_t result = 0;
    for (; b != 0; b >>= 1) {
      if (b & 1) result ^= a;
      a <<= 1;
      if (a >> degree & 1) a ^= polynomial;
    }
    return result;
  }
  uint32_t power_of_x(uint32_t exponent) const {
    uint32_t result = 1, base = degree == 1 ? 1 : 2;
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1) result = product(result, base);
      base = product(base, base);
    }
    return result;
  }
};

std::vector<uint32_t> prime_factors(uint32_t number) {
  std::vector<uint32_t> factors;
  for (uint32_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) factors.push_back(factor);
    while (number % factor == 0) number /= factor;
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

// The powers of x are all that is there but 0.
bool is_primitive(const Field& field, const std::vector<uint32_t>& factors) {
  const uint32_t all = (1u << field.degree) - 1;
  if (field.power_of_x(all) != 1) return false;
  for (const uint32_t factor : factors) {
    if (all > 1 && field.power_of_x(all / factor) == 1) return false;
  }
  return true;
}

// Found as they are wanted, since there are many; kept for the process's life.
class Polynomials {
 public:
  uint32_t at(uint32_t index) {
    const std::lock_guard lock(mutex_);
    while (index >= found_.size()) add_degree();
    return found_[index];
  }

 private:
  void add_degree() {
    ++degree_;
    const auto factors = prime_factors((1u << degree_) - 1);
    for (uint32_t middle = 0; middle < 1u << (degree_ - 1); ++middle) {
      const uint32_t polynomial = 1u << degree_ | middle << 1 | 1;
      if (is_primitive({polynomial, degree_}, factors)) found_.push_back(polynomial);
    }
  }

  std::mutex mutex_;
  uint32_t degree_ = 0;
  std::vector<uint32_t> found_;
};
Polynomials& polynomials() {
  static auto* const all = new Polynomials;
  return *all;
}

uint64_t chosen(uint64_t key, uint32_t dimension, uint32_t number) {
  const PhiloxBlock block = philox({dimension, number, 0, 0}, key);
  return uint64_t{block[0]} << 32 | block[1];
}

}  // namespace

std::array<uint64_t, kSobolBits> sobol_directions(uint32_t dimension) {
  std::array<uint64_t, kSobolBits> directions;
  for (uint32_t i = 0; i < kSobolBits; ++i) directions[i] = uint64_t{1} << (kSobolBits - 1 - i);
  if (dimension == 0) return directions;  // van der Corput's
  const uint32_t polynomial = polynomials().at(dimension - 1);
  const auto degree = static_cast<uint32_t>(std::bit_width(polynomial)) - 1;
  // The first ones have a last bit, and any others before it.
  for (uint32_t i = 0; i < degree; ++i) {
    const uint64_t last = directions[i], before = ~((last << 1) - 1);
    directions[i] = last | (i == 0 ? 0 : chosen(kDirectionsKey, dimension, i) & before);
  }
  for (uint32_t i = degree; i < kSobolBits; ++i) {
    uint64_t next = directions[i - degree] ^ directions[i - degree] >> degree;
    for (uint32_t k = 1; k < degree; ++k) {
      if (polynomial >> (degree - k) & 1) next ^= directions[i - k];
    }
    directions[i] = next;
  }
  return directions;
}

uint64_t sobol_shift(uint32_t dimension) {
  return chosen(kShiftsKey, dimension, 0);
}

SobolPoints::SobolPoints(uint32_t dimension, bool scrambled, uint64_t position)
    : directions_(sobol_directions(dimension)), index_(position), point_(scrambled ? sobol_shift(dimension) : 0) {
  const uint64_t gray = position ^ position >> 1;
  for (uint32_t i = 0; i < kSobolBits; ++i) {
    if (gray >> i & 1) point_ ^= directions_[i];
  }
}

uint64_t SobolPoints::next() {
  const uint64_t point = point_;
  const auto changed = static_cast<uint32_t>(std::countr_one(index_++));
  if (changed < kSobolBits) point_ ^= directions_[changed];
  return point;
}

}  // namespace heddle::library
