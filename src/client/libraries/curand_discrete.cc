// Discrete distributions of cuRAND's device API (curand_discrete): tables in device memory, in the form that the
// toolkit's curand_discrete.h declares. Kernels look a uniform number up in an alias table (A. J. Walker, "An efficient
// method for generating discrete random variables", 1977; made as M. D. Vose does, 1991), or take a normal one where a
// table would be large.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "client/libraries/curand_generator.h"

namespace heddle::client {
namespace {

constexpr int kMethodM2 = 5, kMethodGauss = 7;  // curandMethod_t: CURAND_M2, CURAND_DISCRETE_GAUSS
constexpr double kTableLimit = 2000;            // of the mean: beyond, the normal distribution is near enough
constexpr double kDeviations = 12;              // what a table leaves out is less likely than 1e-30

// The header's structures, with pointers to device memory.
struct Distribution {
  uint64_t self_on_host, table, table_on_host;
  double deviation, mean;
  int method;
  unsigned made_by_host;
};
struct ShiftedTable {
  uint64_t histogram, histogram_on_host;
  unsigned shift, length, made_by_host;
};
struct Histogram {
  uint64_t limits, limits_on_host, aliases, aliases_on_host;
  unsigned made_by_host;
};

// A uniform number u of cell j = floor(length u) means j itself below limits[j], else aliases[j].
struct AliasTable {
  std::vector<double> limits;
  std::vector<unsigned> aliases;

  explicit AliasTable(std::vector<double> weights) : limits(weights.size()), aliases(weights.size()) {
    const size_t length = weights.size();
    double sum = 0;
    for (const double weight : weights) sum += weight;
    std::vector<size_t> small, large;
    for (size_t i = 0; i < length; ++i) {
      weights[i] *= static_cast<double>(length) / sum;
      (weights[i] < 1 ? small : large).push_back(i);
    }
    const auto fill = [&](size_t cell, double part, size_t alias) {
      limits[cell] = (static_cast<double>(cell) + part) / static_cast<double>(length);
      aliases[cell] = static_cast<unsigned>(alias);
    };
    while (!small.empty() && !large.empty()) {
      const size_t less = small.back(), more = large.back();
      small.pop_back();
      fill(less, weights[less], more);
      weights[more] -= 1 - weights[less];
      if (weights[more] >= 1) continue;
      large.pop_back();
      small.push_back(more);
    }
    for (const auto* rest : {&small, &large}) {
      for (const size_t cell : *rest) fill(cell, 1, cell);
    }
  }
};

// Poisson's probabilities from `first` on.
std::vector<double> weights_of(double mean, unsigned first, unsigned length) {
  std::vector<double> weights;
  for (unsigned i = 0; i < length; ++i) {
    const double k = first + i;
    weights.push_back(std::exp(k * std::log(mean) - mean - std::lgamma(k + 1)));
  }
  return weights;
}

// Everything in one piece of memory: the distribution first, since the program's handle is its address.
struct Image {
  Distribution distribution{};
  ShiftedTable table{};
  Histogram histogram{};
};

std::vector<char> image_of(double mean, uint64_t at, const AliasTable& alias, unsigned first) {
  // A uniform number may be 1, whose cell is behind the last: it is the last one's again.
  const size_t length = alias.limits.size(), cells = length + 1;
  Image image;
  image.distribution = {0,    at + offsetof(Image, table),           0, std::sqrt(mean),
                        mean, length > 0 ? kMethodM2 : kMethodGauss, 0};
  image.table = {at + offsetof(Image, histogram), 0, first, static_cast<unsigned>(length), 0};
  const uint64_t limits = at + sizeof(Image), aliases = limits + cells * sizeof(double);
  image.histogram = {limits, 0, aliases, 0, 0};
  std::vector<char> bytes(sizeof image + cells * (sizeof(double) + sizeof(unsigned)));
  std::memcpy(bytes.data(), &image, sizeof image);
  if (length == 0) return bytes;
  char* const to = bytes.data() + sizeof image;
  std::memcpy(to, alias.limits.data(), length * sizeof(double));
  const double none = 0;
  std::memcpy(to + length * sizeof(double), &none, sizeof none);
  std::memcpy(to + cells * sizeof(double), alias.aliases.data(), length * sizeof(unsigned));
  const auto last = static_cast<unsigned>(length - 1);
  std::memcpy(to + cells * sizeof(double) + length * sizeof(unsigned), &last, sizeof last);
  return bytes;
}

Outcome make_poisson(double mean, void** made) {
  const heddle_library_functions* const runtime = library_runtime();
  if (!runtime) return Outcome::kNotInitialized;
  const bool tabled = mean <= kTableLimit;
  const double reach = kDeviations * (std::sqrt(mean) + 1);
  const auto first = static_cast<unsigned>(std::max(0.0, mean - reach)), end = static_cast<unsigned>(mean + reach) + 2;
  const AliasTable alias(tabled ? weights_of(mean, first, end - first) : std::vector<double>());
  const size_t bytes = image_of(mean, 0, alias, first).size();
  void* device;
  if (const int error = runtime->allocate(&device, bytes)) return outcome_of(error);
  const auto image = image_of(mean, reinterpret_cast<uint64_t>(device), alias, first);
  if (const int error = runtime->copy(device, bytes, image.data(), bytes, bytes, 1, nullptr, true)) {
    (void)runtime->release(device);
    return outcome_of(error);
  }
  *made = device;
  return Outcome::kSuccess;
}

}  // namespace

HEDDLE_LIBRARY_EXPORT int curandCreatePoissonDistribution(double mean, void** distribution) {
  return answer([&] {
    if (!(mean > 0) || mean > 400000 || !distribution) return Outcome::kOutOfRange;
    return make_poisson(mean, distribution);
  });
}

HEDDLE_LIBRARY_EXPORT int curandDestroyDistribution(void* distribution) {
  return answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    if (!runtime || !distribution) return Outcome::kNotInitialized;
    return outcome_of(runtime->release(distribution));
  });
}

}  // namespace heddle::client
