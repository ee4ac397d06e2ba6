#pragma once

// Every cuBLAS function that heddle serves, one line each. From a line follow the client's entry (and its _64 twin),
// the packing of its arguments, the worker's check of them, the call of NVIDIA's library on a GPU and the call of a
// BLAS on a software device.
//
// X(name, element, shape, blas, arguments...): cublas<name>(handle, arguments...); `element` is the type of what the
// operands hold (kMixed: arguments say), `shape` says which operands the arguments describe (*_operands.cc), and `blas`
// is the Fortran BLAS or LAPACK subroutine that takes the same arguments in the same order ("": software devices have
// something of their own). Y(...) is the same for functions without a _64 twin. V(old, name, ...) is X for functions
// that have a form of cublas.h, too: cublas<old>(arguments...), without a handle, scalars by value. W(old, name,
// element, shape, blas, answer, arguments...): the same for functions whose last argument is an answer, which the form
// of cublas.h returns.

// NOLINTBEGIN(cppcoreguidelines-macro-usage): lists that become declarations, tables and definitions alike.
#define HEDDLE_REAL(X, rest, shape, base, ...)       \
  X(S##rest, kF32, shape, "s" base "_", __VA_ARGS__) \
  X(D##rest, kF64, shape, "d" base "_", __VA_ARGS__)
#define HEDDLE_COMPLEX(X, rest, shape, base, ...)    \
  X(C##rest, kC32, shape, "c" base "_", __VA_ARGS__) \
  X(Z##rest, kC64, shape, "z" base "_", __VA_ARGS__)
#define HEDDLE_ALL(X, rest, shape, base, ...)    \
  HEDDLE_REAL(X, rest, shape, base, __VA_ARGS__) \
  HEDDLE_COMPLEX(X, rest, shape, base, __VA_ARGS__)
#define HEDDLE_OLD_REAL(V, rest, shape, base, ...)                 \
  V(S##rest, S##rest##_v2, kF32, shape, "s" base "_", __VA_ARGS__) \
  V(D##rest, D##rest##_v2, kF64, shape, "d" base "_", __VA_ARGS__)
#define HEDDLE_OLD_COMPLEX(V, rest, shape, base, ...)              \
  V(C##rest, C##rest##_v2, kC32, shape, "c" base "_", __VA_ARGS__) \
  V(Z##rest, Z##rest##_v2, kC64, shape, "z" base "_", __VA_ARGS__)
#define HEDDLE_OLD_ALL(V, rest, shape, base, ...)    \
  HEDDLE_OLD_REAL(V, rest, shape, base, __VA_ARGS__) \
  HEDDLE_OLD_COMPLEX(V, rest, shape, base, __VA_ARGS__)
#define HEDDLE_OWN_COMPLEX(X, rest, shape, ...) \
  X(C##rest, kC32, shape, "", __VA_ARGS__)      \
  X(Z##rest, kC64, shape, "", __VA_ARGS__)
#define HEDDLE_OWN_ALL(X, rest, shape, ...) \
  X(S##rest, kF32, shape, "", __VA_ARGS__)  \
  X(D##rest, kF64, shape, "", __VA_ARGS__)  \
  HEDDLE_OWN_COMPLEX(X, rest, shape, __VA_ARGS__)
/* Half precision and bfloat16 (T), calculated in single precision; the last letter is the result's. */
#define HEDDLE_OWN_HALVES(X, rest, shape, ...) \
  X(HSH##rest, kHsh, shape, "", __VA_ARGS__)   \
  X(HSS##rest, kHss, shape, "", __VA_ARGS__)   \
  X(TST##rest, kTst, shape, "", __VA_ARGS__)   \
  X(TSS##rest, kTss, shape, "", __VA_ARGS__)

#define HEDDLE_GEMV Op, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_GEMV_STRIDED Op, Dim, Dim, Scalar, In, Dim, Stride, In, Dim, Stride, Scalar, Out, Dim, Stride, Dim
#define HEDDLE_GEMV_BATCHED HEDDLE_GEMV, Dim
#define HEDDLE_SYMV Fill, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_SBMV Fill, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_SPMV Fill, Dim, Scalar, In, In, Dim, Scalar, Out, Dim
#define HEDDLE_GER Dim, Dim, Scalar, In, Dim, In, Dim, Out, Dim
#define HEDDLE_SYR2 Fill, Dim, Scalar, In, Dim, In, Dim, Out, Dim
#define HEDDLE_SPR2 Fill, Dim, Scalar, In, Dim, In, Dim, Out
#define HEDDLE_GEMM Op, Op, Dim, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_GEMM_STRIDED \
  Op, Op, Dim, Dim, Dim, Scalar, In, Dim, Stride, In, Dim, Stride, Scalar, Out, Dim, Stride, Dim
#define HEDDLE_GEMM_BATCHED HEDDLE_GEMM, Dim
#define HEDDLE_GEMM_TYPED Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, In, Type, Dim, Scalar, Out, Type, Dim
#define HEDDLE_SYMM Side, Fill, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_RANK_2K Fill, Op, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim
#define HEDDLE_HERMITIAN_2K Fill, Op, Dim, Dim, Scalar, In, Dim, In, Dim, RealScalar, Out, Dim
#define HEDDLE_SYRK_TYPED Fill, Op, Dim, Dim, Scalar, In, Type, Dim, Scalar, Out, Type, Dim
#define HEDDLE_HERK_TYPED Fill, Op, Dim, Dim, RealScalar, In, Type, Dim, RealScalar, Out, Type, Dim

#define HEDDLE_CUBLAS_FUNCTIONS(X, Y, V, W)                                                                           \
  /* Level 1 */                                                                                                       \
  W(Isamax, Isamax_v2, kF32, kIndex, "isamax_", IndexAnswer, Dim, In, Dim)                                            \
  W(Idamax, Idamax_v2, kF64, kIndex, "idamax_", IndexAnswer, Dim, In, Dim)                                            \
  W(Icamax, Icamax_v2, kC32, kIndex, "icamax_", IndexAnswer, Dim, In, Dim)                                            \
  W(Izamax, Izamax_v2, kC64, kIndex, "izamax_", IndexAnswer, Dim, In, Dim)                                            \
  W(Isamin, Isamin_v2, kF32, kIndex, "isamin_", IndexAnswer, Dim, In, Dim)                                            \
  W(Idamin, Idamin_v2, kF64, kIndex, "idamin_", IndexAnswer, Dim, In, Dim)                                            \
  W(Icamin, Icamin_v2, kC32, kIndex, "icamin_", IndexAnswer, Dim, In, Dim)                                            \
  W(Izamin, Izamin_v2, kC64, kIndex, "izamin_", IndexAnswer, Dim, In, Dim)                                            \
  HEDDLE_OLD_REAL(W, asum, kReduce, "asum", Answer, Dim, In, Dim)                                                     \
  W(Scasum, Scasum_v2, kC32, kReduce, "scasum_", RealAnswer, Dim, In, Dim)                                            \
  W(Dzasum, Dzasum_v2, kC64, kReduce, "dzasum_", RealAnswer, Dim, In, Dim)                                            \
  HEDDLE_OLD_REAL(W, nrm2, kReduce, "nrm2", Answer, Dim, In, Dim)                                                     \
  W(Scnrm2, Scnrm2_v2, kC32, kReduce, "scnrm2_", RealAnswer, Dim, In, Dim)                                            \
  W(Dznrm2, Dznrm2_v2, kC64, kReduce, "dznrm2_", RealAnswer, Dim, In, Dim)                                            \
  HEDDLE_OLD_REAL(W, dot, kDot, "dot", Answer, Dim, In, Dim, In, Dim)                                                 \
  W(Cdotu, Cdotu_v2, kC32, kDot, "", Answer, Dim, In, Dim, In, Dim)                                                   \
  W(Zdotu, Zdotu_v2, kC64, kDot, "", Answer, Dim, In, Dim, In, Dim)                                                   \
  W(Cdotc, Cdotc_v2, kC32, kDot, "", Answer, Dim, In, Dim, In, Dim)                                                   \
  W(Zdotc, Zdotc_v2, kC64, kDot, "", Answer, Dim, In, Dim, In, Dim)                                                   \
  HEDDLE_OLD_ALL(V, axpy, kAxpy, "axpy", Dim, Scalar, In, Dim, Out, Dim)                                              \
  HEDDLE_OLD_ALL(V, scal, kScal, "scal", Dim, Scalar, Out, Dim)                                                       \
  V(Csscal, Csscal_v2, kC32, kScal, "csscal_", Dim, RealScalar, Out, Dim)                                             \
  V(Zdscal, Zdscal_v2, kC64, kScal, "zdscal_", Dim, RealScalar, Out, Dim)                                             \
  HEDDLE_OLD_ALL(V, copy, kCopy, "copy", Dim, In, Dim, Out, Dim)                                                      \
  HEDDLE_OLD_ALL(V, swap, kSwap, "swap", Dim, Out, Dim, Out, Dim)                                                     \
  HEDDLE_OLD_REAL(V, rot, kRot, "rot", Dim, Out, Dim, Out, Dim, Scalar, Scalar)                                       \
  HEDDLE_OLD_COMPLEX(V, rot, kRot, "rot", Dim, Out, Dim, Out, Dim, RealScalar, Scalar)                                \
  V(Csrot, Csrot_v2, kC32, kRot, "csrot_", Dim, Out, Dim, Out, Dim, RealScalar, RealScalar)                           \
  V(Zdrot, Zdrot_v2, kC64, kRot, "zdrot_", Dim, Out, Dim, Out, Dim, RealScalar, RealScalar)                           \
  HEDDLE_OLD_REAL(V, rotm, kRotm, "rotm", Dim, Out, Dim, Out, Dim, Parameters)                                        \
  HEDDLE_REAL(Y, rotg_v2, kRotg, "rotg", Answer, Answer, Answer, Answer)                                              \
  HEDDLE_COMPLEX(Y, rotg_v2, kRotg, "rotg", Answer, Answer, RealAnswer, Answer)                                       \
  HEDDLE_REAL(Y, rotmg_v2, kRotmg, "rotmg", Answer, Answer, Answer, In, Answer)                                       \
  /* Level 2 */                                                                                                       \
  HEDDLE_OLD_ALL(V, gemv, kGemv, "gemv", HEDDLE_GEMV)                                                                 \
  HEDDLE_OLD_ALL(V, gbmv, kGbmv, "gbmv", Op, Dim, Dim, Dim, Dim, Scalar, In, Dim, In, Dim, Scalar, Out, Dim)          \
  HEDDLE_OLD_REAL(V, ger, kGer, "ger", HEDDLE_GER)                                                                    \
  HEDDLE_OLD_COMPLEX(V, geru, kGer, "geru", HEDDLE_GER)                                                               \
  HEDDLE_OLD_COMPLEX(V, gerc, kGer, "gerc", HEDDLE_GER)                                                               \
  HEDDLE_OLD_REAL(V, symv, kSymv, "symv", HEDDLE_SYMV)                                                                \
  HEDDLE_COMPLEX(X, symv_v2, kSymv, "symv", HEDDLE_SYMV)                                                              \
  HEDDLE_OLD_COMPLEX(V, hemv, kSymv, "hemv", HEDDLE_SYMV)                                                             \
  HEDDLE_OLD_REAL(V, sbmv, kSbmv, "sbmv", HEDDLE_SBMV)                                                                \
  HEDDLE_OLD_COMPLEX(V, hbmv, kSbmv, "hbmv", HEDDLE_SBMV)                                                             \
  HEDDLE_OLD_REAL(V, spmv, kSpmv, "spmv", HEDDLE_SPMV)                                                                \
  HEDDLE_OLD_COMPLEX(V, hpmv, kSpmv, "hpmv", HEDDLE_SPMV)                                                             \
  HEDDLE_OLD_REAL(V, syr, kSyr, "syr", Fill, Dim, Scalar, In, Dim, Out, Dim)                                          \
  HEDDLE_COMPLEX(X, syr_v2, kSyr, "syr", Fill, Dim, Scalar, In, Dim, Out, Dim)                                        \
  HEDDLE_OLD_COMPLEX(V, her, kSyr, "her", Fill, Dim, RealScalar, In, Dim, Out, Dim)                                   \
  HEDDLE_OLD_REAL(V, syr2, kSyr2, "syr2", HEDDLE_SYR2)                                                                \
  HEDDLE_COMPLEX(X, syr2_v2, kSyr2, "syr2", HEDDLE_SYR2)                                                              \
  HEDDLE_OLD_COMPLEX(V, her2, kSyr2, "her2", HEDDLE_SYR2)                                                             \
  HEDDLE_OLD_REAL(V, spr, kSpr, "spr", Fill, Dim, Scalar, In, Dim, Out)                                               \
  HEDDLE_OLD_COMPLEX(V, hpr, kSpr, "hpr", Fill, Dim, RealScalar, In, Dim, Out)                                        \
  HEDDLE_OLD_REAL(V, spr2, kSpr2, "spr2", HEDDLE_SPR2)                                                                \
  HEDDLE_OLD_COMPLEX(V, hpr2, kSpr2, "hpr2", HEDDLE_SPR2)                                                             \
  HEDDLE_OLD_ALL(V, trmv, kTriangular, "trmv", Fill, Op, Diag, Dim, In, Dim, Out, Dim)                                \
  HEDDLE_OLD_ALL(V, trsv, kTriangular, "trsv", Fill, Op, Diag, Dim, In, Dim, Out, Dim)                                \
  HEDDLE_OLD_ALL(V, tbmv, kTriangularBand, "tbmv", Fill, Op, Diag, Dim, Dim, In, Dim, Out, Dim)                       \
  HEDDLE_OLD_ALL(V, tbsv, kTriangularBand, "tbsv", Fill, Op, Diag, Dim, Dim, In, Dim, Out, Dim)                       \
  HEDDLE_OLD_ALL(V, tpmv, kTriangularPacked, "tpmv", Fill, Op, Diag, Dim, In, Out, Dim)                               \
  HEDDLE_OLD_ALL(V, tpsv, kTriangularPacked, "tpsv", Fill, Op, Diag, Dim, In, Out, Dim)                               \
  HEDDLE_OWN_ALL(X, gemvStridedBatched, kGemvStrided, HEDDLE_GEMV_STRIDED)                                            \
  HEDDLE_OWN_HALVES(X, gemvStridedBatched, kGemvStrided, HEDDLE_GEMV_STRIDED)                                         \
  HEDDLE_OWN_ALL(X, gemvBatched, kGemvBatched, HEDDLE_GEMV_BATCHED)                                                   \
  HEDDLE_OWN_HALVES(X, gemvBatched, kGemvBatched, HEDDLE_GEMV_BATCHED)                                                \
  /* Level 3 */                                                                                                       \
  HEDDLE_OLD_ALL(V, gemm, kGemm, "gemm", HEDDLE_GEMM)                                                                 \
  X(Hgemm, kF16, kGemm, "", HEDDLE_GEMM)                                                                              \
  HEDDLE_OWN_COMPLEX(X, gemm3m, kGemm, HEDDLE_GEMM)                                                                   \
  HEDDLE_OLD_ALL(V, symm, kSymm, "symm", HEDDLE_SYMM)                                                                 \
  HEDDLE_OLD_COMPLEX(V, hemm, kSymm, "hemm", HEDDLE_SYMM)                                                             \
  HEDDLE_OLD_ALL(V, syrk, kSyrk, "syrk", Fill, Op, Dim, Dim, Scalar, In, Dim, Scalar, Out, Dim)                       \
  HEDDLE_OLD_COMPLEX(V, herk, kSyrk, "herk", Fill, Op, Dim, Dim, RealScalar, In, Dim, RealScalar, Out, Dim)           \
  HEDDLE_OLD_ALL(V, syr2k, kSyr2k, "syr2k", HEDDLE_RANK_2K)                                                           \
  HEDDLE_OLD_COMPLEX(V, her2k, kSyr2k, "her2k", HEDDLE_HERMITIAN_2K)                                                  \
  HEDDLE_OWN_ALL(X, syrkx, kSyrkx, HEDDLE_RANK_2K)                                                                    \
  HEDDLE_OWN_COMPLEX(X, herkx, kSyrkx, HEDDLE_HERMITIAN_2K)                                                           \
  HEDDLE_ALL(X, trmm_v2, kTrmm, "trmm", Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, In, Dim, Out, Dim)           \
  HEDDLE_OLD_ALL(V, trsm, kTrsm, "trsm", Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, Out, Dim)                   \
  HEDDLE_OWN_ALL(X, geam, kGeam, Op, Op, Dim, Dim, Scalar, In, Dim, Scalar, In, Dim, Out, Dim)                        \
  HEDDLE_OWN_ALL(X, dgmm, kDgmm, Side, Dim, Dim, In, Dim, In, Dim, Out, Dim)                                          \
  HEDDLE_OWN_ALL(Y, tpttr, kTpttr, Fill, Dim, In, Out, Dim)                                                           \
  HEDDLE_OWN_ALL(Y, trttp, kTrttp, Fill, Dim, In, Dim, Out)                                                           \
  HEDDLE_OWN_ALL(X, gemmStridedBatched, kGemmStrided, HEDDLE_GEMM_STRIDED)                                            \
  X(HgemmStridedBatched, kF16, kGemmStrided, "", HEDDLE_GEMM_STRIDED)                                                 \
  X(Cgemm3mStridedBatched, kC32, kGemmStrided, "", HEDDLE_GEMM_STRIDED)                                               \
  HEDDLE_OWN_ALL(X, gemmBatched, kGemmBatched, HEDDLE_GEMM_BATCHED)                                                   \
  X(HgemmBatched, kF16, kGemmBatched, "", HEDDLE_GEMM_BATCHED)                                                        \
  X(Cgemm3mBatched, kC32, kGemmBatched, "", HEDDLE_GEMM_BATCHED)                                                      \
  HEDDLE_ALL(X, trsmBatched, kTrsmBatched, "trsm", Side, Fill, Op, Diag, Dim, Dim, Scalar, In, Dim, Out, Dim, Dim)    \
  /* Of LAPACK, batches by arrays of addresses */                                                                     \
  HEDDLE_OWN_ALL(Y, getrfBatched, kGetrf, Dim, Out, Dim, Out, Out, Dim)                                               \
  HEDDLE_OWN_ALL(Y, getriBatched, kGetri, Dim, In, Dim, In, Out, Dim, Out, Dim)                                       \
  HEDDLE_OWN_ALL(Y, getrsBatched, kGetrs, Op, Dim, Dim, In, Dim, In, Out, Dim, Info, Dim)                             \
  HEDDLE_OWN_ALL(Y, matinvBatched, kMatinv, Dim, In, Dim, Out, Dim, Out, Dim)                                         \
  HEDDLE_OWN_ALL(Y, geqrfBatched, kGeqrf, Dim, Dim, Out, Dim, Out, Info, Dim)                                         \
  HEDDLE_OWN_ALL(Y, gelsBatched, kGels, Op, Dim, Dim, Dim, Out, Dim, Out, Dim, Info, Out, Dim)                        \
  /* Types by argument: vectors; the last one is what is calculated in */                                             \
  X(IamaxEx, kMixed, kIndexEx, "", Dim, In, Type, Dim, IndexAnswer)                                                   \
  X(IaminEx, kMixed, kIndexEx, "", Dim, In, Type, Dim, IndexAnswer)                                                   \
  X(AsumEx, kMixed, kReduceEx, "", Dim, In, Type, Dim, TypedAnswer, Type, Type)                                       \
  X(Nrm2Ex, kMixed, kReduceEx, "", Dim, In, Type, Dim, TypedAnswer, Type, Type)                                       \
  X(DotEx, kMixed, kDotEx, "", Dim, In, Type, Dim, In, Type, Dim, TypedAnswer, Type, Type)                            \
  X(DotcEx, kMixed, kDotEx, "", Dim, In, Type, Dim, In, Type, Dim, TypedAnswer, Type, Type)                           \
  X(AxpyEx, kMixed, kAxpyEx, "", Dim, TypedScalar, Type, In, Type, Dim, Out, Type, Dim, Type)                         \
  X(ScalEx, kMixed, kScalEx, "", Dim, TypedScalar, Type, Out, Type, Dim, Type)                                        \
  X(CopyEx, kMixed, kCopyEx, "", Dim, In, Type, Dim, Out, Type, Dim)                                                  \
  X(SwapEx, kMixed, kSwapEx, "", Dim, Out, Type, Dim, Out, Type, Dim)                                                 \
  X(RotEx, kMixed, kRotEx, "", Dim, Out, Type, Dim, Out, Type, Dim, TypedScalar, TypedScalar, Type, Type)             \
  X(RotmEx, kMixed, kRotmEx, "", Dim, Out, Type, Dim, Out, Type, Dim, TypedParameters, Type, Type)                    \
  Y(RotgEx, kMixed, kRotgEx, "", TypedAnswer, TypedAnswer, Type, TypedAnswer, TypedAnswer, Type, Type)                \
  Y(RotmgEx, kMixed, kRotmgEx, "", TypedAnswer, Type, TypedAnswer, Type, TypedAnswer, Type, In, Type, TypedAnswer,    \
    Type, Type)                                                                                                       \
  /* Types by argument: matrices */                                                                                   \
  X(SgemmEx, kMixed, kSgemmEx, "", HEDDLE_GEMM_TYPED)                                                                 \
  X(CgemmEx, kC32, kSgemmEx, "", HEDDLE_GEMM_TYPED)                                                                   \
  X(Cgemm3mEx, kC32, kSgemmEx, "", HEDDLE_GEMM_TYPED)                                                                 \
  X(GemmEx, kMixed, kGemmEx, "", HEDDLE_GEMM_TYPED, Compute, Algorithm)                                               \
  X(GemmStridedBatchedEx, kMixed, kGemmStridedEx, "", Op, Op, Dim, Dim, Dim, Scalar, In, Type, Dim, Stride, In, Type, \
    Dim, Stride, Scalar, Out, Type, Dim, Stride, Dim, Compute, Algorithm)                                             \
  X(GemmBatchedEx, kMixed, kGemmBatchedEx, "", HEDDLE_GEMM_TYPED, Dim, Compute, Algorithm)                            \
  X(CsyrkEx, kC32, kSyrkEx, "csyrk_", HEDDLE_SYRK_TYPED)                                                              \
  X(Csyrk3mEx, kC32, kSyrkEx, "csyrk_", HEDDLE_SYRK_TYPED)                                                            \
  X(CherkEx, kC32, kSyrkEx, "cherk_", HEDDLE_HERK_TYPED)                                                              \
  X(Cherk3mEx, kC32, kSyrkEx, "cherk_", HEDDLE_HERK_TYPED)

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

// OLD_PARAMETERS(element, kinds...) -> `Old<element, Kind> a1, ...`.
#define HEDDLE_OLD_PARAMETERS(E, K, ...) Old<E, K> a1 __VA_OPT__(HEDDLE_O2(E, __VA_ARGS__))
#define HEDDLE_O2(E, K, ...) , Old<E, K> a2 __VA_OPT__(HEDDLE_O3(E, __VA_ARGS__))
#define HEDDLE_O3(E, K, ...) , Old<E, K> a3 __VA_OPT__(HEDDLE_O4(E, __VA_ARGS__))
#define HEDDLE_O4(E, K, ...) , Old<E, K> a4 __VA_OPT__(HEDDLE_O5(E, __VA_ARGS__))
#define HEDDLE_O5(E, K, ...) , Old<E, K> a5 __VA_OPT__(HEDDLE_O6(E, __VA_ARGS__))
#define HEDDLE_O6(E, K, ...) , Old<E, K> a6 __VA_OPT__(HEDDLE_O7(E, __VA_ARGS__))
#define HEDDLE_O7(E, K, ...) , Old<E, K> a7 __VA_OPT__(HEDDLE_O8(E, __VA_ARGS__))
#define HEDDLE_O8(E, K, ...) , Old<E, K> a8 __VA_OPT__(HEDDLE_O9(E, __VA_ARGS__))
#define HEDDLE_O9(E, K, ...) , Old<E, K> a9 __VA_OPT__(HEDDLE_O10(E, __VA_ARGS__))
#define HEDDLE_O10(E, K, ...) , Old<E, K> a10 __VA_OPT__(HEDDLE_O11(E, __VA_ARGS__))
#define HEDDLE_O11(E, K, ...) , Old<E, K> a11 __VA_OPT__(HEDDLE_O12(E, __VA_ARGS__))
#define HEDDLE_O12(E, K, ...) , Old<E, K> a12 __VA_OPT__(HEDDLE_O13(E, __VA_ARGS__))
#define HEDDLE_O13(E, K, ...) , Old<E, K> a13 __VA_OPT__(HEDDLE_TOO_MANY_PARAMETERS)
// NOLINTEND(cppcoreguidelines-macro-usage)
