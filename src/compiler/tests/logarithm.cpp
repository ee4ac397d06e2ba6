// A logarithm of a constant is a constant, in long double too, so that drawing random numbers costs what it costs by
// g++; one that sets errno stays.
// RUN: %compile -O2 %s 2>/dev/null | %check
// RUN: %compile -O1 %s 2>/dev/null | %check
#include <cmath>
#include <random>

// CHECK-LABEL: define {{.*}}@_Z4logsv(
// CHECK-NOT: call {{.*}}@logl
// CHECK: ret x86_fp80 0xK4003F8
long double logs() { return std::log(2147483648.0L) / std::log(2.0L); }

// CHECK-LABEL: define {{.*}}@_Z4drawRSt26linear_congruential_engine
// CHECK-NOT: call {{.*}}@logl
// CHECK: ret float
float draw(std::minstd_rand &Engine) { return std::uniform_real_distribution<float>(-1, 1)(Engine); }

// CHECK-LABEL: define {{.*}}@_Z4polev(
// CHECK: call {{.*}}@logl(
long double pole() { return std::log(0.0L); }

// CHECK-LABEL: define {{.*}}@_Z7unknowne(
// CHECK: call {{.*}}@logl(
long double unknown(long double X) { return std::log(X); }
