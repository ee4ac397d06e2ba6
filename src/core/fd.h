#pragma once

#include <cstddef>
#include <utility>

#include "core/result.h"
#include "core/units.h"

namespace heddle {

// Owns a file descriptor; closes it on destruction.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);
  // A second descriptor of the same open file, close-on-exec.
  Result<Fd> duplicate() const;

 private:
  int fd_ = -1;
};

// Owns a mapped range of addresses; unmaps it on destruction.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      address_ = std::exchange(other.address_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~Mapping() { reset(); }

  void* data() const { return address_; }
  size_t size() const { return size_; }
  explicit operator bool() const { return address_ != nullptr; }
  // Gives the range up without unmapping it.
  void* release();
  void reset();

 private:
  void* address_ = nullptr;
  size_t size_ = 0;
};

// Anonymous memory behind a descriptor, of `size` bytes, zero-filled, pages allocated at first touch. Sealed against
// growing and shrinking, so that no peer can make another's mapping fault.
Result<Fd> create_memfd(const char* name, Bytes size);

// The size of a memfd that a peer sent, provided that it is sealed as create_memfd seals; else an error.
Result<Bytes> sealed_size(const Fd& fd);

// Maps all of `fd` shared, readable and writable (or only readable), anywhere.
Result<Mapping> map_shared(const Fd& fd, Bytes size, bool writable = true);

// Reserves addresses [base, base+size) without memory behind them; an error if any of them is taken.
Result<Mapping> reserve_addresses(uint64_t base, Bytes size);

}  // namespace heddle
