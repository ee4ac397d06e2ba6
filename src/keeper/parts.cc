#include "keeper/parts.h"

#include <algorithm>

#include "device/cuda/transfer.h"

namespace heddle::keeper {
namespace {

using device::CopyEnd;
using device::CopyShape;

CopyEnd moved(CopyEnd end, uint64_t x, uint64_t y, uint64_t z) {
  end.address += z * end.slice + y * end.pitch + x;
  return end;
}

// Slices of one row each are rows.
CopyShape flattened(CopyShape shape) {
  if (shape.height > 1 || shape.depth == 1) return shape;
  for (CopyEnd* end : {&shape.to, &shape.from}) end->pitch = end->slice;
  std::swap(shape.height, shape.depth);
  return shape;
}

}  // namespace

Parts::Parts(const CopyShape& whole) : whole_(flattened(cuda::merged(whole))) {}

std::optional<CopyShape> Parts::next() {
  if (z_ == whole_.depth) return std::nullopt;
  CopyShape part{moved(whole_.to, x_, y_, z_), moved(whole_.from, x_, y_, z_), std::min(whole_.width - x_, kBytes)};
  x_ += part.width;
  if (x_ < whole_.width) return part;
  // The end of a long row, or whole rows.
  if (part.width == whole_.width) part.height = std::clamp<uint64_t>(kBytes / part.width, 1, kRows);
  part.height = std::min(part.height, whole_.height - y_);
  x_ = 0;
  y_ += part.height;
  if (y_ == whole_.height) y_ = 0, ++z_;
  return part;
}

}  // namespace heddle::keeper
