#pragma once

// One hostile ring, for the fuzzer and for the test that replays its corpus.

#include <span>

namespace heddle::worker {

// Lays `input` into a ring's record area and takes every record through the reader and validation, as the issuer does.
// A deviation is a crash or a sanitizer's report.
void run_ring_case(std::span<const char> input);

}  // namespace heddle::worker
