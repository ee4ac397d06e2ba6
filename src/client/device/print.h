#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <span>

namespace heddle::client {

// Writes what came into an area of the ring since the last call to `to`, through stdio, so that it keeps its place
// among what the program prints. One thread at a time. The worker is not trusted to keep its bounds.
void drain(std::span<const char> area, const std::atomic<uint64_t>& tail, std::atomic<uint64_t>& head, std::FILE* to);

}  // namespace heddle::client
