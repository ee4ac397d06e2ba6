// needle: global alignment of two sequences of equal length, by anti-diagonals of tiles.
// Tiles on one anti-diagonal depend only on earlier ones: the first phase runs the growing diagonals up to the corner,
// the second the shrinking ones, one launch each. A block is one tile in shared memory, one warp, a row of cells a
// step. Needleman, Wunsch: A general method applicable to the search for similarities in the amino acid sequence of two
// proteins, J. Molecular Biology 48, 1970.
#include "options.h"

using namespace workload;

constexpr int kTile = 32;
constexpr int kLetters = 24;

// Fills one tile from the row above it and the column left of it. `width` is the row length of `scores`, one more
// than the sequences' `length`: row and column 0 are the border.
__device__ void align_tile(const int* similarity, int* scores, size_t length, int tile_x, int tile_y, int penalty) {
  __shared__ int cells[kTile + 1][kTile + 1];
  __shared__ int match[kTile][kTile];
  const size_t width = length + 1;
  const size_t x0 = static_cast<size_t>(tile_x) * kTile, y0 = static_cast<size_t>(tile_y) * kTile;
  const int t = threadIdx.x;
  const int columns = min(static_cast<size_t>(kTile), length - x0), rows = min(static_cast<size_t>(kTile), length - y0);

  if (t == 0) cells[0][0] = scores[y0 * width + x0];
  if (t < columns) cells[0][t + 1] = scores[y0 * width + x0 + t + 1];
  if (t < rows) cells[t + 1][0] = scores[(y0 + t + 1) * width + x0];
  for (int y = 0; y < rows; ++y) {
    if (t < columns) match[y][t] = similarity[(y0 + y) * length + x0 + t];
  }
  __syncthreads();

  // Thread t owns column t; in step s it computes row s - t.
  for (int step = 0; step < 2 * kTile - 1; ++step) {
    const int y = step - t;
    if (y >= 0 && y < rows && t < columns) {
      const int diagonal = cells[y][t] + match[y][t];
      cells[y + 1][t + 1] = max(diagonal, max(cells[y][t + 1], cells[y + 1][t]) - penalty);
    }
    __syncthreads();
  }
  for (int y = 0; y < rows; ++y) {
    if (t < columns) scores[(y0 + y + 1) * width + x0 + t + 1] = cells[y + 1][t + 1];
  }
}

// Diagonals up to the corner: block b is the tile b from the left, `diagonal` - b from the top.
__global__ void align_growing(const int* similarity, int* scores, size_t length, int diagonal, int penalty) {
  align_tile(similarity, scores, length, blockIdx.x, diagonal - blockIdx.x, penalty);
}

// Diagonals after it: their tiles begin in the last row of tiles.
__global__ void align_shrinking(const int* similarity, int* scores, size_t length, int diagonal, int last,
                                int penalty) {
  align_tile(similarity, scores, length, diagonal - last + blockIdx.x, last - blockIdx.x, penalty);
}

struct NeedleOptions : CommonOptions {
  long long length = 1024;
  long long penalty = 10;
};

size_t footprint(const NeedleOptions& o) {
  return (o.length * o.length + (o.length + 1) * (o.length + 1)) * sizeof(int);
}

// How well letters match: symmetric, best on the diagonal, in the range of the usual substitution tables.
class LetterScores {
 public:
  explicit LetterScores(const Random& random) {
    for (int a = 0; a < kLetters; ++a) {
      for (int b = 0; b <= a; ++b) {
        const int score = a == b ? 4 + static_cast<int>(random.below(8, a))
                                 : static_cast<int>(random.below(8, 100 + a * kLetters + b)) - 4;
        scores_[a][b] = scores_[b][a] = score;
      }
    }
  }
  const int* row(int letter) const { return scores_[letter]; }

 private:
  int scores_[kLetters][kLetters];
};

class Needle {
 public:
  explicit Needle(const NeedleOptions& options)
      : o_(options),
        length_(o_.length),
        width_(length_ + 1),
        penalty_(static_cast<int>(o_.penalty)),
        letters_(Random(o_.seed)),
        similarity_(length_ * length_),
        scores_(width_ * width_) {}

  int run() {
    CUDA_CHECK(cudaMalloc(&device_similarity_, similarity_.size() * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&device_scores_, scores_.size() * sizeof(int)));
    Verdict verdict(0);
    for (long long k = 0; k < o_.iterations; ++k) {
      make_pair(Random(o_.seed).fork(k + 1));
      align();
      wait_and_pause(o_);
      const bool check = o_.check == Check::kFull || (o_.check == Check::kSample && k == 0);
      if (check) compare(verdict);
    }
    CUDA_CHECK(cudaFree(device_similarity_));
    CUDA_CHECK(cudaFree(device_scores_));
    return verdict.report(o_.check,
                          "length " + std::to_string(length_) + ", " + std::to_string(o_.iterations) + " iterations");
  }

 private:
  // The table of all letter pairs' scores, and the border: gaps only.
  void make_pair(const Random& random) {
    std::vector<int> across(length_);
    for (size_t x = 0; x < length_; ++x) across[x] = static_cast<int>(random.below(kLetters, 2 * x));
    for (size_t y = 0; y < length_; ++y) {
      const int* row = letters_.row(static_cast<int>(random.below(kLetters, 2 * y + 1)));
      for (size_t x = 0; x < length_; ++x) similarity_[y * length_ + x] = row[across[x]];
    }
    std::fill(scores_.begin(), scores_.end(), 0);
    for (size_t i = 0; i < width_; ++i) scores_[i] = scores_[i * width_] = border(i);
  }

  void align() {
    const size_t score_bytes = scores_.size() * sizeof(int);
    CUDA_CHECK(
        cudaMemcpy(device_similarity_, similarity_.data(), similarity_.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_scores_, scores_.data(), score_bytes, cudaMemcpyHostToDevice));
    const int tiles = static_cast<int>(ceil_div(length_, kTile));
    for (int diagonal = 0; diagonal < tiles; ++diagonal) {
      align_growing<<<diagonal + 1, kTile>>>(device_similarity_, device_scores_, length_, diagonal, penalty_);
      check_launch("align_growing");
    }
    for (int diagonal = tiles; diagonal < 2 * tiles - 1; ++diagonal) {
      align_shrinking<<<2 * tiles - 1 - diagonal, kTile>>>(device_similarity_, device_scores_, length_, diagonal,
                                                           tiles - 1, penalty_);
      check_launch("align_shrinking");
    }
    CUDA_CHECK(cudaMemcpy(scores_.data(), device_scores_, score_bytes, cudaMemcpyDeviceToHost));
  }

  // The border is compared too: nothing may have written there.
  void compare(Verdict& verdict) const {
    std::vector<int> above(width_), here(width_);
    for (size_t y = 0; y < width_; ++y) {
      here[0] = border(y);
      for (size_t x = 1; x < width_; ++x) here[x] = y == 0 ? border(x) : best(above, here[x - 1], x, y);
      for (size_t x = 0; x < width_; ++x) verdict.compare(y * width_ + x, scores_[y * width_ + x], here[x]);
      above.swap(here);
    }
  }

  int border(size_t gaps) const { return -penalty_ * static_cast<int>(gaps); }

  int best(const std::vector<int>& above, int left, size_t x, size_t y) const {
    const int diagonal = above[x - 1] + similarity_[(y - 1) * length_ + x - 1];
    return std::max(diagonal, std::max(above[x], left) - penalty_);
  }

  const NeedleOptions o_;
  const size_t length_, width_;
  const int penalty_;
  const LetterScores letters_;
  std::vector<int> similarity_, scores_;
  int *device_similarity_ = nullptr, *device_scores_ = nullptr;
};

int main(int argc, char** argv) {
  NeedleOptions job;
  Options options("needle",
                  "aligns pairs of sequences with the algorithm of Needleman and Wunsch.\n"
                  "Device memory: two tables of 4 bytes a pair of letters.",
                  &job, "what is compared with the CPU's result; sample: the first pair only");
  options.number("--length", &job.length, 1, 1 << 18, "letters in each sequence");
  options.number("--penalty", &job.penalty, 0, 1000, "cost of a gap of one letter");
  options.iterations(1 << 20, "pairs of sequences, aligned one after the other");
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Needle(job).run(); });
}
