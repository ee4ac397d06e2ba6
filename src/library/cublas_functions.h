#pragma once

// Every cuBLAS function that heddle serves, one line each. From a line follow the client's entry (and its _64 twin),
// the packing of its arguments, the worker's check of them, the call of NVIDIA's library on a GPU and the call of a
// BLAS on a software device.
//
// X(name, element, shape, blas, arguments...): cublas<name>(handle, arguments...); `element` is the type of what the
// operands hold (kMixed: arguments say), `shape` says which operands the arguments describe (cublas_operands.cc), and
// `blas` is the Fortran BLAS subroutine that takes the same arguments in the same order ("": software devices have
// something of their own). Y(...) is the same for functions without a _64 twin.

// NOLINTBEGIN(cppcoreguidelines-macro-usage): lists that become declarations, tables and definitions alike.
#define HEDDLE_REAL(X, rest, shape, base, ...)       \
  X(S##rest, kF32, shape, "s" base "_", __VA_ARGS__) \
  X(D##rest, kF64, shape, "d" base "_", __VA_ARGS__)
#define HEDDLE_ALL(X, rest, shape, base, ...)        \
  HEDDLE_REAL(X, rest, shape, base, __VA_ARGS__)     \
  X(C##rest, kC32, shape, "c" base "_", __VA_ARGS__) \
  X(Z##rest, kC64, shape, "z" base "_", __VA_ARGS__)
#define HEDDLE_OWN(X, rest, shape, ...)    \
  X(S##rest, kF32, shape, "", __VA_ARGS__) \
  X(D##rest, kF64, shape, "", __VA_ARGS__)
#define HEDDLE_OWN_ALL(X, rest, shape, ...) \
  HEDDLE_OWN(X, rest, shape, __VA_ARGS__)   \
  X(C##rest, kC32, shape, "", __VA_ARGS__)  \
  X(Z##rest, kC64, shape, "", __VA_ARGS__)

#define HEDDLE_GEMM Op, Op, Dim, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_GEMM_STRIDED \
  Op, Op, Dim, Dim, Dim, Scalar, In, Dim, Stride, In, Dim, Stride, Scalar, Out, Dim, Stride, Dim
#define HEDDLE_GEMM_BATCHED Op, Op, Dim, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim, Dim
#define HEDDLE_RANK_2K Fill, Op, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim

#define HEDDLE_CUBLAS_FUNCTIONS(X, Y)                                                                                 \
  /* Level 1 */                                                                                                       \
  X(Isamax_v2, kF32, kIndex, "isamax_", Dim, In, Dim, Answer)                                                         \
  X(Idamax_v2, kF64, kIndex, "idamax_", Dim, In, Dim, Answer)                                                         \
  X(Isamin_v2, kF32, kIndex, "isamin_", Dim, In, Dim, Answer)                                                         \
  X(Idamin_v2, kF64, kIndex, "idamin_", Dim, In, Dim, Answer)                                                         \
  HEDDLE_REAL(X, asum_v2, kReduce, "asum", Dim, In, Dim, Answer)                                                      \
  HEDDLE_REAL(X, nrm2_v2, kReduce, "nrm2", Dim, In, Dim, Answer)                                                      \
  HEDDLE_REAL(X, dot_v2, kDot, "dot", Dim, In, Dim, In, Dim, Answer)                                                  \
  HEDDLE_REAL(X, axpy_v2, kAxpy, "axpy", Dim, Scalar, In, Dim, Out, Dim)                                              \
  HEDDLE_REAL(X, scal_v2, kScal, "scal", Dim, Scalar, Out, Dim)                                                       \
  HEDDLE_REAL(X, copy_v2, kCopy, "copy", Dim, In, Dim, Out, Dim)                                                      \
  HEDDLE_REAL(X, swap_v2, kSwap, "swap", Dim, Out, Dim, Out, Dim)                                                     \
  HEDDLE_REAL(X, rot_v2, kRot, "rot", Dim, Out, Dim, Out, Dim, Scalar, Scalar)                                        \
  HEDDLE_REAL(X, rotm_v2, kRotm, "rotm", Dim, Out, Dim, Out, Dim, Parameters)                                         \
  HEDDLE_REAL(Y, rotg_v2, kRotg, "rotg", Answer, Answer, Answer, Answer)                                              \
  HEDDLE_REAL(Y, rotmg_v2, kRotmg, "rotmg", Answer, Answer, Answer, In, Answer)                                       \
  /* Level 2 */                                                                                                       \
  HEDDLE_REAL(X, gemv_v2, kGemv, "gemv", Op, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)                    \
  HEDDLE_REAL(X, gbmv_v2, kGbmv, "gbmv", Op, Dim, Dim, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)          \
  HEDDLE_REAL(X, ger_v2, kGer, "ger", Dim, Dim, Scalar, In, Dim, In, Dim, Out, Dim)                                   \
  HEDDLE_REAL(X, symv_v2, kSymv, "symv", Fill, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)                       \
  HEDDLE_REAL(X, sbmv_v2, kSbmv, "sbmv", Fill, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)                  \
  HEDDLE_REAL(X, spmv_v2, kSpmv, "spmv", Fill, Dim, Scalar, In, In, Dim, Scalar, Out, Dim)                            \
  HEDDLE_REAL(X, syr_v2, kSyr, "syr", Fill, Dim, Scalar, In, Dim, Out, Dim)                                           \
  HEDDLE_REAL(X, syr2_v2, kSyr2, "syr2", Fill, Dim, Scalar, In, Dim, In, Dim, Out, Dim)                               \
  HEDDLE_REAL(X, spr_v2, kSpr, "spr", Fill, Dim, Scalar, In, Dim, Out)                                                \
  HEDDLE_REAL(X, spr2_v2, kSpr2, "spr2", Fill, Dim, Scalar, In, Dim, In, Dim, Out)                                    \
  HEDDLE_REAL(X, trmv_v2, kTriangular, "trmv", Fill, Op, Diag, Dim, In, Dim, Out, Dim)                                \
  HEDDLE_REAL(X, trsv_v2, kTriangular, "trsv", Fill, Op, Diag, Dim, In, Dim, Out, Dim)                                \
  HEDDLE_REAL(X, tbmv_v2, kTriangularBand, "tbmv", Fill, Op, Diag, Dim, Dim, In, Dim, Out, Dim)                       \
  HEDDLE_REAL(X, tbsv_v2, kTriangularBand, "tbsv", Fill, Op, Diag, Dim, Dim, In, Dim, Out, Dim)                       \
  HEDDLE_REAL(X, tpmv_v2, kTriangularPacked, "tpmv", Fill, Op, Diag, Dim, In, Out, Dim)                               \
  HEDDLE_REAL(X, tpsv_v2, kTriangularPacked, "tpsv", Fill, Op, Diag, Dim, In, Out, Dim)                               \
  /* Level 3 */                                                                                                       \
  HEDDLE_ALL(X, gemm_v2, kGemm, "gemm", HEDDLE_GEMM)                                                                  \
  X(Hgemm, kF16, kGemm, "", HEDDLE_GEMM)                                                                              \
  HEDDLE_ALL(X, symm_v2, kSymm, "symm", Side, Fill, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)             \
  HEDDLE_ALL(X, syrk_v2, kSyrk, "syrk", Fill, Op, Dim, Dim, Scalar, In, Dim, Scalar, Out, Dim)                        \
  HEDDLE_ALL(X, syr2k_v2, kSyr2k, "syr2k", HEDDLE_RANK_2K)                                                            \
  HEDDLE_OWN_ALL(X, syrkx, kSyrkx, HEDDLE_RANK_2K)                                                                    \
  HEDDLE_ALL(X, trmm_v2, kTrmm, "trmm", Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, In, Dim, Out, Dim)           \
  HEDDLE_ALL(X, trsm_v2, kTrsm, "trsm", Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, Out, Dim)                    \
  HEDDLE_OWN_ALL(X, geam, kGeam, Op, Op, Dim, Dim, Scalar, In, Dim, Scalar, In, Dim, Out, Dim)                        \
  HEDDLE_OWN_ALL(X, dgmm, kDgmm, Side, Dim, Dim, In, Dim, In, Dim, Out, Dim)                                          \
  HEDDLE_OWN_ALL(X, gemmStridedBatched, kGemmStrided, HEDDLE_GEMM_STRIDED)                                            \
  X(HgemmStridedBatched, kF16, kGemmStrided, "", HEDDLE_GEMM_STRIDED)                                                 \
  HEDDLE_OWN_ALL(X, gemmBatched, kGemmBatched, HEDDLE_GEMM_BATCHED)                                                   \
  X(HgemmBatched, kF16, kGemmBatched, "", HEDDLE_GEMM_BATCHED)                                                        \
  /* Types by argument */                                                                                             \
  X(SgemmEx, kMixed, kSgemmEx, "", Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, In, Type, Dim, Scalar, Out, Type,    \
    Dim)                                                                                                              \
  X(GemmEx, kMixed, kGemmEx, "", Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, In, Type, Dim, Scalar, Out, Type, Dim, \
    Compute, Algorithm)                                                                                               \
  X(GemmStridedBatchedEx, kMixed, kGemmStridedEx, "", Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, Stride, In, Type, \
    Dim, Stride, Scalar, Out, Type, Dim, Stride, Dim, Compute, Algorithm)                                             \
  X(GemmBatchedEx, kMixed, kGemmBatchedEx, "", Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, In, Type, Dim, Scalar,   \
    Out, Type, Dim, Dim, Compute, Algorithm)

// PARAMETERS(Integer, kinds...) -> `Kind::Argument<Integer> a1, ...`; ARGUMENTS(kinds...) -> `a1, ...`.
#define HEDDLE_PARAMETERS(I, K, ...) K::Argument<I> a1 __VA_OPT__(HEDDLE_P2(I, __VA_ARGS__))
#define HEDDLE_P2(I, K, ...) , K::Argument<I> a2 __VA_OPT__(HEDDLE_P3(I, __VA_ARGS__))
#define HEDDLE_P3(I, K, ...) , K::Argument<I> a3 __VA_OPT__(HEDDLE_P4(I, __VA_ARGS__))
#define HEDDLE_P4(I, K, ...) , K::Argument<I> a4 __VA_OPT__(HEDDLE_P5(I, __VA_ARGS__))
#define HEDDLE_P5(I, K, ...) , K::Argument<I> a5 __VA_OPT__(HEDDLE_P6(I, __VA_ARGS__))
#define HEDDLE_P6(I, K, ...) , K::Argument<I> a6 __VA_OPT__(HEDDLE_P7(I, __VA_ARGS__))
#define HEDDLE_P7(I, K, ...) , K::Argument<I> a7 __VA_OPT__(HEDDLE_P8(I, __VA_ARGS__))
#define HEDDLE_P8(I, K, ...) , K::Argument<I> a8 __VA_OPT__(HEDDLE_P9(I, __VA_ARGS__))
#define HEDDLE_P9(I, K, ...) , K::Argument<I> a9 __VA_OPT__(HEDDLE_P10(I, __VA_ARGS__))
#define HEDDLE_P10(I, K, ...) , K::Argument<I> a10 __VA_OPT__(HEDDLE_P11(I, __VA_ARGS__))
#define HEDDLE_P11(I, K, ...) , K::Argument<I> a11 __VA_OPT__(HEDDLE_P12(I, __VA_ARGS__))
#define HEDDLE_P12(I, K, ...) , K::Argument<I> a12 __VA_OPT__(HEDDLE_P13(I, __VA_ARGS__))
#define HEDDLE_P13(I, K, ...) , K::Argument<I> a13 __VA_OPT__(HEDDLE_P14(I, __VA_ARGS__))
#define HEDDLE_P14(I, K, ...) , K::Argument<I> a14 __VA_OPT__(HEDDLE_P15(I, __VA_ARGS__))
#define HEDDLE_P15(I, K, ...) , K::Argument<I> a15 __VA_OPT__(HEDDLE_P16(I, __VA_ARGS__))
#define HEDDLE_P16(I, K, ...) , K::Argument<I> a16 __VA_OPT__(HEDDLE_P17(I, __VA_ARGS__))
#define HEDDLE_P17(I, K, ...) , K::Argument<I> a17 __VA_OPT__(HEDDLE_P18(I, __VA_ARGS__))
#define HEDDLE_P18(I, K, ...) , K::Argument<I> a18 __VA_OPT__(HEDDLE_P19(I, __VA_ARGS__))
#define HEDDLE_P19(I, K, ...) , K::Argument<I> a19 __VA_OPT__(HEDDLE_P20(I, __VA_ARGS__))
#define HEDDLE_P20(I, K, ...) , K::Argument<I> a20 __VA_OPT__(HEDDLE_P21(I, __VA_ARGS__))
#define HEDDLE_P21(I, K, ...) , K::Argument<I> a21 __VA_OPT__(HEDDLE_P22(I, __VA_ARGS__))
#define HEDDLE_P22(I, K, ...) , K::Argument<I> a22 __VA_OPT__(HEDDLE_P23(I, __VA_ARGS__))
#define HEDDLE_P23(I, K, ...) , K::Argument<I> a23 __VA_OPT__(HEDDLE_TOO_MANY_PARAMETERS)

#define HEDDLE_ARGUMENTS(K, ...) a1 __VA_OPT__(HEDDLE_A2(__VA_ARGS__))
#define HEDDLE_A2(K, ...) , a2 __VA_OPT__(HEDDLE_A3(__VA_ARGS__))
#define HEDDLE_A3(K, ...) , a3 __VA_OPT__(HEDDLE_A4(__VA_ARGS__))
#define HEDDLE_A4(K, ...) , a4 __VA_OPT__(HEDDLE_A5(__VA_ARGS__))
#define HEDDLE_A5(K, ...) , a5 __VA_OPT__(HEDDLE_A6(__VA_ARGS__))
#define HEDDLE_A6(K, ...) , a6 __VA_OPT__(HEDDLE_A7(__VA_ARGS__))
#define HEDDLE_A7(K, ...) , a7 __VA_OPT__(HEDDLE_A8(__VA_ARGS__))
#define HEDDLE_A8(K, ...) , a8 __VA_OPT__(HEDDLE_A9(__VA_ARGS__))
#define HEDDLE_A9(K, ...) , a9 __VA_OPT__(HEDDLE_A10(__VA_ARGS__))
#define HEDDLE_A10(K, ...) , a10 __VA_OPT__(HEDDLE_A11(__VA_ARGS__))
#define HEDDLE_A11(K, ...) , a11 __VA_OPT__(HEDDLE_A12(__VA_ARGS__))
#define HEDDLE_A12(K, ...) , a12 __VA_OPT__(HEDDLE_A13(__VA_ARGS__))
#define HEDDLE_A13(K, ...) , a13 __VA_OPT__(HEDDLE_A14(__VA_ARGS__))
#define HEDDLE_A14(K, ...) , a14 __VA_OPT__(HEDDLE_A15(__VA_ARGS__))
#define HEDDLE_A15(K, ...) , a15 __VA_OPT__(HEDDLE_A16(__VA_ARGS__))
#define HEDDLE_A16(K, ...) , a16 __VA_OPT__(HEDDLE_A17(__VA_ARGS__))
#define HEDDLE_A17(K, ...) , a17 __VA_OPT__(HEDDLE_A18(__VA_ARGS__))
#define HEDDLE_A18(K, ...) , a18 __VA_OPT__(HEDDLE_A19(__VA_ARGS__))
#define HEDDLE_A19(K, ...) , a19 __VA_OPT__(HEDDLE_A20(__VA_ARGS__))
#define HEDDLE_A20(K, ...) , a20 __VA_OPT__(HEDDLE_A21(__VA_ARGS__))
#define HEDDLE_A21(K, ...) , a21 __VA_OPT__(HEDDLE_A22(__VA_ARGS__))
#define HEDDLE_A22(K, ...) , a22 __VA_OPT__(HEDDLE_A23(__VA_ARGS__))
#define HEDDLE_A23(K, ...) , a23
// NOLINTEND(cppcoreguidelines-macro-usage)
