// What cuBLAS's level 1 describes.

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

void vectors(OperandReader& in, Shape shape) {
  const uint64_t n = in.length();
  const bool has_alpha = shape == Shape::kAxpy || shape == Shape::kScal;
  if (has_alpha) in.scalar();
  const bool one = shape == Shape::kIndex || shape == Shape::kReduce || shape == Shape::kScal;
  const bool changes_both = shape == Shape::kSwap || shape == Shape::kRot || shape == Shape::kRotm;
  in.vector(n, changes_both || shape == Shape::kScal ? Kind::kOut : Kind::kIn);
  if (!one) in.vector(n, shape == Shape::kDot ? Kind::kIn : Kind::kOut);
  if (shape == Shape::kRot) in.scalar(), in.scalar();
  if (shape == Shape::kRotm) in.parameters();
  if (shape == Shape::kIndex || shape == Shape::kReduce || shape == Shape::kDot) in.answer();
  in.work(real(n));
  in.elements(n);
}

void rotations(OperandReader& in, Shape shape) {
  for (int i = 0; i < 3; ++i) in.answer();
  if (shape == Shape::kRotmg) in.input();
  in.answer(shape == Shape::kRotmg ? 5 : 1);
}

}  // namespace

void read_vectors(OperandReader& in, Shape shape) {
  if (shape == Shape::kRotg || shape == Shape::kRotmg) return rotations(in, shape);
  vectors(in, shape);
}

}  // namespace heddle::library::cublas
