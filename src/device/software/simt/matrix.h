#pragma once

#include <cstdint>
#include <vector>

#include "device/software/simt/op.h"

// Products of matrices by a whole warp: wmma and mma, and ldmatrix. The result is the exact sum of all products and the
// addend, rounded once (integers wrap, or saturate where asked): closer than a tensor core, which cuts off the low bits
// of what it adds.
namespace heddle::software {

enum class MatrixType : uint8_t { kF16, kBF16, kTF32, kF32, kF64, kS8, kU8, kS32 };
enum class MatrixRole : uint8_t { kA, kB, kC };  // kC: addend and result

// Kept in Op::imm.
struct MatrixForm {
  uint8_t m = 0, n = 0, k = 0;
  // How elements lie in the registers of lanes: of mma as PTX says, of wmma (which leaves it open) in rows.
  bool documented = false;
  MatrixType ab = MatrixType::kF16, b = MatrixType::kF16;  // of A and of B
  MatrixType c = MatrixType::kF32;
  MatrixType d = MatrixType::kF32;
};
static_assert(sizeof(MatrixForm) == sizeof(int64_t));

// wmma.load and wmma.store; kept in Op::imm. Registers at extra, count of them; address in a, in the space of target
// (At) plus the offset that is operand number `count` of the list; stride in elements in b, or none: the matrix is
// dense.
struct MatrixTransfer {
  uint8_t rows = 0, columns = 0;
  MatrixType type = MatrixType::kF16;
  bool by_rows = true;  // in memory
  int32_t offset = 0;
};
static_assert(sizeof(MatrixTransfer) == sizeof(int64_t));

// Bytes of an element in memory; elements in one register.
uint32_t element_bytes(MatrixType type);
uint32_t elements_per_register(MatrixType type);

// The registers of d, a, b and c, one list behind the other, at extra; flags: kSaturate.
inline constexpr uint8_t kSaturateMatrix = 1;
void multiply_matrices(Warp& warp, const Op& op);
void load_matrix(Warp& warp, const Op& op);
void store_matrix(Warp& warp, const Op& op);
// ldmatrix: count matrices of 8 x 8 16-bit elements, one to a register at extra; lane 8i + j has the address of row j
// of matrix i (a + imm, shared or generic as target says). c: 1 if transposed.
void load_small_matrices(Warp& warp, const Op& op);

// What load_matrix and store_matrix, or load_small_matrices, touch, as far as it may be touched. For checks.
struct MatrixAccess {
  uint32_t lane = 0;
  uint64_t host = 0;
  uint32_t bytes = 0;
};
std::vector<MatrixAccess> matrix_accesses(const Warp& warp, const Op& op, bool write);
std::vector<MatrixAccess> small_matrix_accesses(const Warp& warp, const Op& op);

// Registers of a lane for a matrix of mma or wmma.
uint32_t matrix_registers(const MatrixForm& form, MatrixRole role, MatrixType type);

}  // namespace heddle::software
