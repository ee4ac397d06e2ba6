// The parts that both programs which price options share: the market drawn from a seed, and the formula of Black and
// Scholes on the CPU. Black, Scholes: The pricing of options and corporate liabilities, J. Political Economy 81(3),
// 1973.
#pragma once

#include "common.h"

namespace workload {

constexpr float kVolatility = 0.30f;  // a year

// European options: what the share costs today, what the holder may buy or sell it for, and when.
struct Market {
  std::vector<float> prices, strikes, years;

  Market(size_t count, const Random& random) : prices(count), strikes(count), years(count) {
    for (size_t i = 0; i < count; ++i) {
      prices[i] = 5 + 25 * random.unit(3 * i);
      strikes[i] = 1 + 99 * random.unit(3 * i + 1);
      years[i] = 0.25f + 9.75f * random.unit(3 * i + 2);
    }
  }
};

struct FairPrice {
  double call, put;
};

inline double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// `rate` is the riskless interest a year, compounded continuously.
inline FairPrice fair_price(double price, double strike, double years, double rate) {
  const double spread = kVolatility * std::sqrt(years);
  const double d1 = (std::log(price / strike) + (rate + 0.5 * kVolatility * kVolatility) * years) / spread;
  const double d2 = d1 - spread, discounted = strike * std::exp(-rate * years);
  return {price * normal_distribution(d1) - discounted * normal_distribution(d2),
          discounted * normal_distribution(-d2) - price * normal_distribution(-d1)};
}

}  // namespace workload
