// eigenvalues: all eigenvalues of a symmetric tridiagonal matrix by bisection, in doubles.
// Three launches a matrix: bounds of all eigenvalues, counts below evenly spaced points, and each eigenvalue on its
// own. Barth, Martin, Wilkinson: Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of
// bisection, Numerische Mathematik 9, 1967.
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 128;
constexpr unsigned kPoints = 512;
constexpr int kMaxHalvings = 80;

struct Bounds {
  double least, greatest;
};

// How many eigenvalues are less than x: the negative ones of the leading minors' ratios (Sturm's sequence). A ratio too
// near 0 to divide by counts as a small negative one. `squares` are those of the off-diagonal, behind a 0.
__host__ __device__ inline unsigned count_below(double x, const double* diagonal, const double* squares, size_t size,
                                                double least_ratio) {
  unsigned count = 0;
  double ratio = 1;
  for (size_t i = 0; i < size; ++i) {
    ratio = diagonal[i] - x - squares[i] / ratio;
    if (fabs(ratio) < least_ratio) ratio = -least_ratio;
    if (ratio < 0) ++count;
  }
  return count;
}

__host__ __device__ inline double least_ratio_of(const Bounds& bounds) {
  return 1e-290 + 1e-30 * (bounds.greatest - bounds.least);
}

// One block: the ends of Gershgorin's circles, and a little room.
__global__ void bound(const double* diagonal, const double* squares, size_t size, Bounds* bounds) {
  __shared__ double least[kThreads], greatest[kThreads];
  double low = diagonal[0], high = diagonal[0];
  for (size_t i = threadIdx.x; i < size; i += kThreads) {
    const double radius = sqrt(squares[i]) + (i + 1 < size ? sqrt(squares[i + 1]) : 0);
    low = fmin(low, diagonal[i] - radius);
    high = fmax(high, diagonal[i] + radius);
  }
  least[threadIdx.x] = low;
  greatest[threadIdx.x] = high;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + half]);
    greatest[threadIdx.x] = fmax(greatest[threadIdx.x], greatest[threadIdx.x + half]);
  }
  if (threadIdx.x > 0) return;
  const double room = 1e-12 * fmax(fabs(least[0]), fabs(greatest[0])) + 1e-300;
  *bounds = {least[0] - room, greatest[0] + room};
}

__host__ __device__ inline double point_of(const Bounds& bounds, unsigned point) {
  return bounds.least + (bounds.greatest - bounds.least) * point / (kPoints - 1);
}

// counts[p] = eigenvalues below the point p of kPoints between the bounds.
__global__ void separate(const double* diagonal, const double* squares, size_t size, const Bounds* bounds,
                         unsigned* counts) {
  const unsigned point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= kPoints) return;
  counts[point] = count_below(point_of(*bounds, point), diagonal, squares, size, least_ratio_of(*bounds));
}

// Eigenvalue k lies between the points that have at most k and more than k below them; then the half that it is in is
// taken until there is no double between the ends.
__global__ void bisect(const double* diagonal, const double* squares, size_t size, const Bounds* bounds,
                       const unsigned* counts, double* values) {
  const double least_ratio = least_ratio_of(*bounds);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t k = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < size; k += stride) {
    unsigned below = 0, above = kPoints - 1;
    while (above - below > 1) {
      const unsigned middle = (below + above) / 2;
      (counts[middle] <= k ? below : above) = middle;
    }
    double low = point_of(*bounds, below), high = point_of(*bounds, above);
    for (int n = 0; n < kMaxHalvings; ++n) {
      const double middle = 0.5 * (low + high);
      if (middle <= low || middle >= high) break;
      (count_below(middle, diagonal, squares, size, least_ratio) <= k ? low : high) = middle;
    }
    values[k] = 0.5 * (low + high);
  }
}

struct EigenOptions : CommonOptions {
  long long size = 256;
};

size_t footprint(const EigenOptions& o) {
  return 3 * o.size * sizeof(double) + kPoints * sizeof(unsigned) + sizeof(Bounds);
}

struct Matrix {
  std::vector<double> diagonal, squares;

  Matrix(size_t size, const Random& random) : diagonal(size), squares(size) {
    for (size_t i = 0; i < size; ++i) {
      diagonal[i] = random.symmetric(2 * i);
      const double beside = i == 0 ? 0 : random.symmetric(2 * i + 1);
      squares[i] = beside * beside;
    }
  }
};

class Eigenvalues {
 public:
  explicit Eigenvalues(const EigenOptions& options) : o_(options), size_(o_.size), bytes_(size_ * sizeof(double)) {}

  int run() {
    for (double** array : {&diagonal_, &squares_, &values_}) CUDA_CHECK(cudaMalloc(array, bytes_));
    CUDA_CHECK(cudaMalloc(&counts_, kPoints * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&bounds_, sizeof(Bounds)));
    Verdict verdict(1e-10);
    std::vector<double> values(size_);
    for (long long k = 0; k < o_.iterations; ++k) {
      const Matrix matrix(size_, Random(o_.seed).fork(k));
      solve(matrix, values);
      check(matrix, values, verdict);
    }
    for (double* array : {diagonal_, squares_, values_}) CUDA_CHECK(cudaFree(array));
    CUDA_CHECK(cudaFree(counts_));
    CUDA_CHECK(cudaFree(bounds_));
    return verdict.report(o_.check, std::to_string(size_) + "x" + std::to_string(size_) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

 private:
  void solve(const Matrix& matrix, std::vector<double>& values) {
    CUDA_CHECK(cudaMemcpy(diagonal_, matrix.diagonal.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(squares_, matrix.squares.data(), bytes_, cudaMemcpyHostToDevice));
    bound<<<1, kThreads>>>(diagonal_, squares_, size_, bounds_);
    check_launch("bound");
    separate<<<kPoints / kThreads, kThreads>>>(diagonal_, squares_, size_, bounds_, counts_);
    check_launch("separate");
    bisect<<<grid_size(size_, kThreads, o_.blocks), kThreads>>>(diagonal_, squares_, size_, bounds_, counts_, values_);
    check_launch("bisect");
    CUDA_CHECK(cudaMemcpy(values.data(), values_, bytes_, cudaMemcpyDeviceToHost));
  }

  // Their sums and the sums of their squares are the matrix's, whatever the method; then each is looked at.
  void check(const Matrix& matrix, const std::vector<double>& values, Verdict& verdict) const {
    constexpr size_t kSamples = 64;
    if (o_.check == Check::kNone) return;
    compare_sums(matrix, values, verdict);
    if (o_.check == Check::kFull) {
      for (size_t k = 0; k < size_; ++k) verdict.require(k, is_eigenvalue(matrix, k, values[k]));
      return;
    }
    for (size_t n = 0; n < kSamples; ++n) {
      const size_t k = Random(o_.seed).below(size_, n);
      verdict.require(k, is_eigenvalue(matrix, k, values[k]));
    }
  }

  void compare_sums(const Matrix& matrix, const std::vector<double>& values, Verdict& verdict) const {
    double trace = 0, squares = 0, sum = 0, sum_of_squares = 0;
    for (size_t i = 0; i < size_; ++i) {
      trace += matrix.diagonal[i];
      squares += matrix.diagonal[i] * matrix.diagonal[i] + 2 * matrix.squares[i];
      sum += values[i];
      sum_of_squares += values[i] * values[i];
    }
    verdict.compare(0, sum, trace);
    verdict.compare(1, sum_of_squares, squares);
  }

  // Just below it lie at most k eigenvalues, and just above it more than k. All are between -3 and 3.
  bool is_eigenvalue(const Matrix& matrix, size_t k, double value) const {
    constexpr double kTolerance = 1e-12;
    const auto count = [&](double x) {
      return count_below(x, matrix.diagonal.data(), matrix.squares.data(), size_, 1e-30);
    };
    return count(value - kTolerance) <= k && count(value + kTolerance) > k;
  }

  const EigenOptions o_;
  const size_t size_, bytes_;
  double *diagonal_ = nullptr, *squares_ = nullptr, *values_ = nullptr;
  unsigned* counts_ = nullptr;
  Bounds* bounds_ = nullptr;
};

int main(int argc, char** argv) {
  EigenOptions job;
  Options options("eigenvalues",
                  "all eigenvalues of symmetric tridiagonal matrices by bisection.\n"
                  "Device memory: 24 bytes a row, and 2064.",
                  &job, "which eigenvalues the CPU looks at beside their sums; sample: 64 of each matrix");
  options.number("--size", &job.size, 1, 1LL << 31, "rows of the matrix");
  options.iterations(1LL << 31, "matrices, one after the other, of three launches each");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Eigenvalues(job).run(); });
}
