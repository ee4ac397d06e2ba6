#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>

// For tests: a reader must survive every way in which its input can be cut or damaged. Inputs are handed over in heap
// blocks of their exact size, so that a sanitizer sees one byte too far.
namespace heddle::image {

template <class Reader>
void read_exactly(std::string_view bytes, Reader&& reader) {
  const std::unique_ptr<char[]> block(new char[bytes.size()]);
  bytes.copy(block.get(), bytes.size());
  reader(std::string_view(block.get(), bytes.size()));
}

// Every prefix, in steps that keep large inputs affordable.
template <class Reader>
void read_prefixes(std::string_view bytes, Reader&& reader) {
  const size_t step = 1 + bytes.size() / 4096;
  for (size_t size = 0; size < bytes.size(); size += step) read_exactly(bytes.substr(0, size), reader);
}

// The same bytes with one to eight of them changed, over and over.
template <class Reader>
void read_damaged(std::string_view bytes, unsigned rounds, Reader&& reader) {
  std::mt19937 random(20250);
  for (unsigned round = 0; round < rounds; ++round) {
    std::string damaged(bytes);
    for (unsigned flips = 1 + random() % 8; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    read_exactly(damaged, reader);
  }
}

}  // namespace heddle::image
