#include "device/software/simt/matrix.h"

#define HEDDLE_LANES common
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "device/software/simt/barrier.h"
#include "device/software/simt/lanes/access.h"
#include "device/software/simt/lanes/half.h"

namespace heddle::software {
namespace {

using common::u16;
using common::u32;
using common::u64;

constexpr u32 kGroups = 8, kGroup = 4;    // lanes in a group of mma's layouts
constexpr u32 kRows = 8, kRowBytes = 16;  // of a matrix of ldmatrix

struct Place {
  u32 row = 0, column = 0;
};

struct Size {
  u32 rows = 0, columns = 0;
};
Size size_of(const MatrixForm& form, MatrixRole role) {
  return role == MatrixRole::kA   ? Size{form.m, form.k}
         : role == MatrixRole::kB ? Size{form.k, form.n}
                                  : Size{form.m, form.n};
}

// Where element i of a lane stands, as PTX describes the fragments of mma.
Place documented_place(const MatrixForm& form, MatrixRole role, MatrixType type, u32 lane, u32 i) {
  u32 group = lane / kGroup, member = lane % kGroup;
  if (role == MatrixRole::kC) return {group + kGroups * (i >> 1), 2 * member + (i & 1)};
  u32 width = elements_per_register(type), chunk = i / width, along = member * width + i % width;
  if (role == MatrixRole::kB) return {along + chunk * kGroup * width, group};
  bool tall = form.m > kGroups;  // every other register is of the lower half
  u32 right = tall ? chunk >> 1 : chunk;
  return {group + (tall && chunk & 1 ? kGroups : 0), along + right * kGroup * width};
}

// Row after row over the lanes; where there are more registers than elements, again from the beginning.
Place row_place(Size size, u32 per_lane, u32 lane, u32 i) {
  u32 index = (lane * per_lane + i) % (size.rows * size.columns);
  return {index / size.columns, index % size.columns};
}

// An element of a lane's registers as a number; integers are exact in a double.
double element(const Warp& warp, const u32* registers, MatrixType type, u32 lane, u32 i) {
  u32 width = elements_per_register(type), offset = registers[i / width];
  if (type == MatrixType::kF64) return common::lanes_of<double>(warp, offset)[lane];
  u32 bits = common::lanes_of<u32>(warp, offset)[lane];
  u32 part = bits >> (32 / width * (i % width));
  switch (type) {
    case MatrixType::kF16:
      return static_cast<double>(common::widen(common::Half(part)));
    case MatrixType::kBF16:
      return static_cast<double>(common::widen(common::Brain(part)));
    case MatrixType::kTF32:
      return static_cast<double>(std::bit_cast<float>(bits & ~0x1FFFu));
    case MatrixType::kS8:
      return static_cast<int8_t>(part);
    case MatrixType::kU8:
      return static_cast<uint8_t>(part);
    case MatrixType::kS32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<double>(std::bit_cast<float>(bits));
  }
}

void set_element(Warp& warp, const u32* registers, MatrixType type, u32 lane, u32 i, double value) {
  u32 width = elements_per_register(type), offset = registers[i / width];
  if (type == MatrixType::kF64) {
    common::lanes_of<double>(warp, offset)[lane] = value;
    return;
  }
  u32& bits = common::lanes_of<u32>(warp, offset)[lane];
  if (type == MatrixType::kF32) {
    bits = std::bit_cast<u32>(static_cast<float>(value));
  } else if (type == MatrixType::kS32) {
    bits = static_cast<u32>(static_cast<int64_t>(value));
  } else {
    auto half = common::encode<common::Half, common::Rounding::kNearest>(value);
    u32 shift = 16 * (i % 2);
    bits = (bits & ~(0xFFFFu << shift)) | half << shift;
  }
}

// Calls visit(lane, i, place) for every element that the lanes hold.
template <class Visit>
void for_each_element(const MatrixForm& form, MatrixRole role, MatrixType type, Visit visit) {
  u32 count = matrix_registers(form, role, type) * elements_per_register(type);
  Size size = size_of(form, role);
  for (u32 lane = 0; lane < kLanes; ++lane)
    for (u32 i = 0; i < count; ++i)
      visit(lane, i, form.documented ? documented_place(form, role, type, lane, i) : row_place(size, count, lane, i));
}

std::vector<double> matrix_of(const Warp& warp, const MatrixForm& form, MatrixRole role, MatrixType type,
                              const u32* registers) {
  Size size = size_of(form, role);
  std::vector<double> matrix(size_t{size.rows} * size.columns);
  for_each_element(form, role, type, [&](u32 lane, u32 i, Place place) {
    matrix[place.row * size.columns + place.column] = element(warp, registers, type, lane, i);
  });
  return matrix;
}

double saturated(double value) {
  return std::clamp(value, static_cast<double>(INT32_MIN), static_cast<double>(INT32_MAX));
}

// Whether all lanes of the warp are here; if not, those that are wait.
bool all_here(Warp& warp, const Op& op) {
  static constexpr auto kAll = [] {
    std::array<u32, kLanes> masks{};
    masks.fill(kAllLanes);
    return masks;
  }();
  return gather_lanes(warp, op, kAll.data()) == warp.live;
}

u64 resolved(At space, const Warp& warp, u32 lane, u64 address, u64 bytes, bool write) {
  switch (space) {
    case At::kShared:
      return common::resolve<At::kShared>(warp, lane, static_cast<u32>(address), bytes, write);
    case At::kGlobal:
      return common::resolve<At::kGlobal>(warp, lane, address, bytes, write);
    default:
      return common::resolve<At::kGeneric>(warp, lane, address, bytes, write);
  }
}

u64 base_address(const Warp& warp, const Op& op, u32 lane) {
  return op.flags & kAddress64 ? common::lanes_of<u64>(warp, op.a)[lane] : common::lanes_of<u32>(warp, op.a)[lane];
}

// Calls visit(lane, i, address) for every element that wmma.load or wmma.store moves, until one says no.
template <class Visit>
void for_each_moved(const Warp& warp, const Op& op, Visit visit) {
  auto form = std::bit_cast<MatrixTransfer>(op.imm);
  u32 per_lane = op.count * elements_per_register(form.type), dense = form.by_rows ? form.columns : form.rows;
  for (u32 rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<u32>(std::countr_zero(rest));
    u32 stride = op.b == Op::kNone ? dense : common::lanes_of<u32>(warp, op.b)[lane];
    u64 base = base_address(warp, op, lane) + static_cast<u64>(int64_t{form.offset});
    for (u32 i = 0; i < per_lane; ++i) {
      Place place = row_place({form.rows, form.columns}, per_lane, lane, i);
      u64 index = form.by_rows ? u64{place.row} * stride + place.column : u64{place.column} * stride + place.row;
      if (!visit(lane, i, base + index * element_bytes(form.type))) return;
    }
  }
}

// Moves the elements of a matrix between registers and memory; the whole of it is checked as it goes.
void transfer(Warp& warp, const Op& op, bool write) {
  if (!all_here(warp, op)) return;
  auto form = std::bit_cast<MatrixTransfer>(op.imm);
  const u32* registers = warp.block->operands + op.extra;
  u32 bytes = element_bytes(form.type), width = elements_per_register(form.type);
  for_each_moved(warp, op, [&](u32 lane, u32 i, u64 address) {
    u64 host = resolved(static_cast<At>(op.target), warp, lane, address, bytes, write);
    if (host == 0 || address % bytes)
      return raise_access_fault(warp, op, lane, address, bytes, write, host != 0), false;
    std::byte* slot = warp.registers + registers[i / width] + size_t{lane} * (form.type == MatrixType::kF64 ? 8 : 4) +
                      i % width * bytes;
    std::memcpy(write ? reinterpret_cast<void*>(host) : slot, write ? slot : reinterpret_cast<const void*>(host),
                bytes);
    return true;
  });
  if (static_cast<At>(op.target) != At::kShared) warp.global_bytes += u64{form.rows} * form.columns * bytes;
}

}  // namespace

uint32_t element_bytes(MatrixType type) {
  switch (type) {
    case MatrixType::kF64:
      return 8;
    case MatrixType::kF16:
    case MatrixType::kBF16:
      return 2;
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 1;
    default:
      return 4;
  }
}

uint32_t elements_per_register(MatrixType type) {
  return type == MatrixType::kF64 ? 1 : 4 / element_bytes(type);
}

uint32_t matrix_registers(const MatrixForm& form, MatrixRole role, MatrixType type) {
  Size size = size_of(form, role);
  // A and B of f16 have 8 registers in wmma whatever their size.
  if (!form.documented && type == MatrixType::kF16 && role != MatrixRole::kC) return 8;
  return std::max(1u, size.rows * size.columns / kLanes / elements_per_register(type));
}

void multiply_matrices(Warp& warp, const Op& op) {
  if (!all_here(warp, op)) return;
  auto form = std::bit_cast<MatrixForm>(op.imm);
  const u32* d = warp.block->operands + op.extra;
  const u32* a = d + matrix_registers(form, MatrixRole::kC, form.d);
  const u32* b = a + matrix_registers(form, MatrixRole::kA, form.ab);
  const u32* c = b + matrix_registers(form, MatrixRole::kB, form.b);
  std::vector<double> left = matrix_of(warp, form, MatrixRole::kA, form.ab, a);
  std::vector<double> right = matrix_of(warp, form, MatrixRole::kB, form.b, b);
  std::vector<double> sum = matrix_of(warp, form, MatrixRole::kC, form.c, c);
  for (u32 i = 0; i < form.m; ++i)
    for (u32 k = 0; k < form.k; ++k)
      for (u32 j = 0; j < form.n; ++j) sum[i * form.n + j] += left[i * form.k + k] * right[k * form.n + j];
  if (op.flags & kSaturateMatrix) std::transform(sum.begin(), sum.end(), sum.begin(), saturated);
  for_each_element(form, MatrixRole::kC, form.d, [&](u32 lane, u32 i, Place place) {
    if (warp.active >> lane & 1) set_element(warp, d, form.d, lane, i, sum[place.row * form.n + place.column]);
  });
}

void load_matrix(Warp& warp, const Op& op) {
  transfer(warp, op, false);
}

void store_matrix(Warp& warp, const Op& op) {
  transfer(warp, op, true);
}

std::vector<MatrixAccess> matrix_accesses(const Warp& warp, const Op& op, bool write) {
  std::vector<MatrixAccess> accesses;
  u32 bytes = element_bytes(std::bit_cast<MatrixTransfer>(op.imm).type);
  for_each_moved(warp, op, [&](u32 lane, u32, u64 address) {
    u64 host = resolved(static_cast<At>(op.target), warp, lane, address, bytes, write);
    if (host) accesses.push_back({lane, host, bytes});
    return host != 0;
  });
  return accesses;
}

std::vector<MatrixAccess> small_matrix_accesses(const Warp& warp, const Op& op) {
  std::vector<MatrixAccess> accesses;
  for (u32 row = 0; row < op.count * kRows; ++row) {
    u64 address = base_address(warp, op, row) + static_cast<u64>(op.imm);
    u64 host = resolved(static_cast<At>(op.target), warp, row, address, kRowBytes, false);
    if (host) accesses.push_back({row, host, kRowBytes});
  }
  return accesses;
}

void load_small_matrices(Warp& warp, const Op& op) {
  if (!all_here(warp, op)) return;
  u16 rows[4 * kRows][kRows] = {};
  for (u32 row = 0; row < op.count * kRows; ++row) {
    u64 address = base_address(warp, op, row) + static_cast<u64>(op.imm);
    u64 host = resolved(static_cast<At>(op.target), warp, row, address, kRowBytes, false);
    if (host == 0 || address % kRowBytes)
      return raise_access_fault(warp, op, row, address, kRowBytes, false, host != 0);
    std::memcpy(rows[row], reinterpret_cast<const void*>(host), kRowBytes);
  }
  for (u32 matrix = 0; matrix < op.count; ++matrix) {
    u32* d = common::lanes_of<u32>(warp, warp.block->operands[op.extra + matrix]);
    for (u32 lane = 0; lane < kLanes; ++lane) {
      u32 row = lane / kGroup, column = 2 * (lane % kGroup);
      const auto* at = rows + matrix * kRows;
      u32 low = op.c ? at[column][row] : at[row][column], high = op.c ? at[column + 1][row] : at[row][column + 1];
      if (warp.active >> lane & 1) d[lane] = high << 16 | low;
    }
  }
}

}  // namespace heddle::software
