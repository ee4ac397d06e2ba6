#include "core/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Fd> Fd::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno(-1, "cannot duplicate descriptor %d", fd_);
  return Fd(copy);
}

void* Mapping::release() {
  size_ = 0;
  return std::exchange(address_, nullptr);
}

void Mapping::reset() {
  if (address_) ::munmap(address_, size_);
  address_ = nullptr;
  size_ = 0;
}

Result<Fd> create_memfd(const char* name, Bytes size) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno(-1, "cannot create memory '%s'", name);
  if (::ftruncate(fd.get(), static_cast<off_t>(size.value)) != 0)
    return fail_errno(-1, "cannot size memory '%s' to %s", name, to_string(size).c_str());
  if (::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals) != 0) return fail_errno(-1, "cannot seal memory '%s'", name);
  return fd;
}

Result<Bytes> sealed_size(const Fd& fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) return fail(ErrorCode::kProtocol, "descriptor %d is not a memfd", fd.get());
  if ((seals & kSizeSeals) != kSizeSeals)
    return fail(ErrorCode::kProtocol, "memfd %d is not sealed against resizing (seals %#x)", fd.get(), seals);
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return fail_errno(-1, "cannot stat descriptor %d", fd.get());
  return Bytes{static_cast<uint64_t>(status.st_size)};
}

Result<Mapping> map_shared(const Fd& fd, Bytes size, bool writable) {
  void* address = ::mmap(nullptr, size.value, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return fail_errno(-1, "cannot map %s", to_string(size).c_str());
  return Mapping(address, size.value);
}

Result<Mapping> reserve_addresses(uint64_t base, Bytes size) {
  void* wanted = reinterpret_cast<void*>(base);  // NOLINT(performance-no-int-to-ptr): an address chosen by number
  void* address =
      ::mmap(wanted, size.value, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (address == MAP_FAILED)
    return fail_errno(-1, "cannot reserve %s at %#lx", to_string(size).c_str(), static_cast<unsigned long>(base));
  Mapping mapping(address, size.value);
  if (address != wanted)  // kernels before 4.17 take the flag for a hint
    return fail(ErrorCode::kSystem, "asked for addresses at %#lx, got %p", static_cast<unsigned long>(base), address);
  return mapping;
}

}  // namespace heddle
