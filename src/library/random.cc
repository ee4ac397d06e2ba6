#include "library/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "library/philox.h"

namespace heddle::library {
namespace {

constexpr uint64_t kSubsequences = 65536, kInTurn = 4;

// Where number `position` stands: its subsequence, the turn of that, and which of the turn's four it is.
struct Place {
  uint64_t turn;
  uint32_t subsequence, element;
  explicit Place(uint64_t position)
      : turn(position / (kSubsequences * kInTurn)),
        subsequence(static_cast<uint32_t>(position / kInTurn % kSubsequences)),
        element(static_cast<uint32_t>(position % kInTurn)) {}
};

PhiloxBlock block(uint64_t seed, uint32_t subsequence, uint64_t number) {
  return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), subsequence, 0}, seed);
}

// Numbers of one word: the four of a turn are one block.
class Words {
 public:
  explicit Words(const Sequence& from) : from_(from) {}
  uint32_t at(uint64_t index) {
    const Place place(from_.position + index);
    if (place.turn != turn_ || place.subsequence != subsequence_) {
      block_ = block(from_.seed, place.subsequence, place.turn);
      turn_ = place.turn, subsequence_ = place.subsequence;
    }
    return block_[place.element];
  }

 private:
  const Sequence& from_;
  uint64_t turn_ = UINT64_MAX;
  uint32_t subsequence_ = 0;
  PhiloxBlock block_{};
};

// Numbers of two words: a turn's four are two blocks.
class Pairs {
 public:
  struct Pair {
    uint32_t low, high;
  };
  explicit Pairs(const Sequence& from) : from_(from) {}
  Pair at(uint64_t index) {
    const Place place(from_.position + index);
    const uint64_t number = 2 * place.turn + place.element / 2;
    if (number != number_ || place.subsequence != subsequence_) {
      block_ = block(from_.seed, place.subsequence, number);
      number_ = number, subsequence_ = place.subsequence;
    }
    return {block_[place.element % 2 * 2], block_[place.element % 2 * 2 + 1]};
  }

 private:
  const Sequence& from_;
  uint64_t number_ = UINT64_MAX;
  uint32_t subsequence_ = 0;
  PhiloxBlock block_{};
};

// The middle of the `bits`th of 2^32 equal parts, rounded: never 0.
float unit(uint32_t bits) {
  return static_cast<float>(bits) * 0x1p-32f + 0x1p-33f;
}

// 53 bits of the two words.
double unit(Pairs::Pair pair) {
  const uint64_t bits = pair.low ^ uint64_t { pair.high } << (53 - 32);
  return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
}

template <class Real>
struct Normals {
  Real first, second;
  Normals(Real radius, Real turn) {
    const Real length = std::sqrt(Real{-2} * std::log(radius)), angle = turn * Real{2} * std::numbers::pi_v<Real>;
    first = length * std::sin(angle), second = length * std::cos(angle);
  }
};

// Number `index` of a sequence whose numbers come in pairs. A position in the middle of a pair is one of its number.
template <class Real, class Source>
void draw_pairs(const Sequence& from, Real* to, uint64_t count, Real mean, Real deviation) {
  const uint64_t odd = from.position % 2;
  const Sequence even{from.seed, from.position - odd};
  Source source(even);
  for (uint64_t i = odd; i < count + odd; i += 2 - i % 2) {
    const uint64_t first = i - i % 2;
    const Normals<Real> pair(unit(source.at(first)), unit(source.at(first + 1)));
    if (i % 2 == 0) to[i - odd] = mean + deviation * pair.first;
    const uint64_t second = first + 1 - odd;
    if (second < count) to[second] = mean + deviation * pair.second;
  }
}

}  // namespace

uint32_t poisson_of(double uniform, double mean) {
  double term = std::exp(-mean), sum = term;
  uint32_t result = 0;
  while (sum < uniform && term > 0) {
    term *= mean / ++result;
    sum += term;
  }
  return result;
}

uint32_t poisson_near(double normal, double mean) {
  return static_cast<uint32_t>(std::clamp(std::nearbyint(mean + std::sqrt(mean) * normal), 0.0, 4294967295.0));
}

void draw_bits(const Sequence& from, uint32_t* to, uint64_t count) {
  Words words(from);
  for (uint64_t i = 0; i < count; ++i) to[i] = words.at(i);
}

void draw_uniform(const Sequence& from, float* to, uint64_t count) {
  Words words(from);
  for (uint64_t i = 0; i < count; ++i) to[i] = unit(words.at(i));
}

void draw_uniform(const Sequence& from, double* to, uint64_t count) {
  Pairs pairs(from);
  for (uint64_t i = 0; i < count; ++i) to[i] = unit(pairs.at(i));
}

void draw_normal(const Sequence& from, float* to, uint64_t count, float mean, float deviation) {
  draw_pairs<float, Words>(from, to, count, mean, deviation);
}

void draw_normal(const Sequence& from, double* to, uint64_t count, double mean, double deviation) {
  draw_pairs<double, Pairs>(from, to, count, mean, deviation);
}

void draw_poisson(const Sequence& from, uint32_t* to, uint64_t count, double mean) {
  Pairs pairs(from);
  for (uint64_t i = 0; i < count; ++i) {
    const double uniform = unit(pairs.at(i));
    if (mean <= kInversionLimit) {
      to[i] = poisson_of(uniform, mean);
      continue;
    }
    double normal = 0;
    draw_normal({from.seed, from.position + i}, &normal, 1, 0, 1);
    to[i] = poisson_near(normal, mean);
  }
}

}  // namespace heddle::library
