// mm2: D = A * B * C by two tiled matrix products; the middle result stays on the device.
// A is rows x inner, B inner x inner, C inner x columns: a large D with a small `inner` is much memory and little work.
#include "options.h"

using namespace workload;

constexpr int kTile = 16;

// out (rows x columns) = a (rows x inner) * b (inner x columns), all row-major. Blocks stride over the tiles of `out`.
__global__ void multiply(const float* a, const float* b, float* out, int rows, int inner, int columns) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const unsigned tiles_across = (columns + kTile - 1) / kTile, tiles_down = (rows + kTile - 1) / kTile;
  const size_t tiles = static_cast<size_t>(tiles_across) * tiles_down;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int row = static_cast<int>(tile / tiles_across) * kTile + ty;
    const int column = static_cast<int>(tile % tiles_across) * kTile + tx;
    float sum = 0;
    for (int start = 0; start < inner; start += kTile) {
      const bool in_a = row < rows && start + tx < inner, in_b = start + ty < inner && column < columns;
      tile_a[ty][tx] = in_a ? a[static_cast<size_t>(row) * inner + start + tx] : 0.0f;
      tile_b[ty][tx] = in_b ? b[static_cast<size_t>(start + ty) * columns + column] : 0.0f;
      __syncthreads();
      for (int k = 0; k < kTile; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
      __syncthreads();
    }
    if (row < rows && column < columns) out[static_cast<size_t>(row) * columns + column] = sum;
  }
}

struct Mm2Options : CommonOptions {
  long long rows = 256, inner = 256, columns = 256;
};

size_t footprint(const Mm2Options& o) {
  return (2 * o.rows * o.inner + o.inner * o.inner + o.inner * o.columns + o.rows * o.columns) * sizeof(float);
}

std::vector<float> make_matrix(size_t rows, size_t columns, const Random& random) {
  std::vector<float> matrix(rows * columns);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = random.symmetric(i);
  return matrix;
}

// Adds row `row` of a * b to `out`; the innermost loop runs along rows of b.
template <class Value>
void add_product_row(const Value* a_row, const std::vector<float>& b, size_t inner, size_t columns, double* out) {
  for (size_t k = 0; k < inner; ++k) {
    const double factor = a_row[k];
    const float* b_row = &b[k * columns];
    for (size_t j = 0; j < columns; ++j) out[j] += factor * b_row[j];
  }
}

class Reference {
 public:
  Reference(const Mm2Options& o, const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c)
      : inner_(o.inner), columns_(o.columns), rows_(o.rows), a_(a), b_(b), c_(c), middle_(inner_) {}

  void check_all(const std::vector<float>& d, Verdict& verdict) {
    std::vector<double> row(columns_);
    for (size_t i = 0; i < rows_; ++i) {
      compute_middle(i);
      std::fill(row.begin(), row.end(), 0.0);
      add_product_row(middle_.data(), c_, inner_, columns_, row.data());
      for (size_t j = 0; j < columns_; ++j) verdict.compare(i * columns_ + j, d[i * columns_ + j], row[j]);
    }
  }

  // A few rows, and in each a few columns: a row of the middle product costs inner squared.
  void check_sample(const std::vector<float>& d, const Random& random, Verdict& verdict) {
    constexpr size_t kRows = 8, kColumns = 64;
    for (size_t r = 0; r < kRows; ++r) {
      const size_t i = random.below(rows_, r);
      compute_middle(i);
      for (size_t n = 0; n < kColumns; ++n) {
        const size_t j = random.below(columns_, kRows + r * kColumns + n);
        double sum = 0;
        for (size_t k = 0; k < inner_; ++k) sum += middle_[k] * c_[k * columns_ + j];
        verdict.compare(i * columns_ + j, d[i * columns_ + j], sum);
      }
    }
  }

 private:
  void compute_middle(size_t row) {
    std::fill(middle_.begin(), middle_.end(), 0.0);
    add_product_row(&a_[row * inner_], b_, inner_, inner_, middle_.data());
  }

  const size_t inner_, columns_, rows_;
  const std::vector<float>&a_, &b_, &c_;
  std::vector<double> middle_;
};

float* upload(const std::vector<float>& matrix) {
  float* device;
  CUDA_CHECK(cudaMalloc(&device, matrix.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(device, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

void launch_multiply(const float* a, const float* b, float* out, int rows, int inner, int columns, long long blocks) {
  const size_t tiles = ceil_div(rows, kTile) * ceil_div(columns, kTile);
  multiply<<<grid_size(tiles, 1, blocks), dim3(kTile, kTile)>>>(a, b, out, rows, inner, columns);
  check_launch("multiply");
}

int run(const Mm2Options& options) {
  const size_t rows = options.rows, inner = options.inner, columns = options.columns;
  const Random random(options.seed);
  const std::vector<float> a = make_matrix(rows, inner, random.fork(1));
  const std::vector<float> b = make_matrix(inner, inner, random.fork(2));
  const std::vector<float> c = make_matrix(inner, columns, random.fork(3));
  std::vector<float> d(rows * columns);

  float *device_a = upload(a), *device_b = upload(b), *device_c = upload(c), *middle, *device_d;
  CUDA_CHECK(cudaMalloc(&middle, rows * inner * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&device_d, rows * columns * sizeof(float)));
  for (long long k = 0; k < options.iterations; ++k) {
    launch_multiply(device_a, device_b, middle, rows, inner, inner, options.blocks);
    launch_multiply(middle, device_c, device_d, rows, inner, columns, options.blocks);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(d.data(), device_d, d.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (float* buffer : {device_a, device_b, device_c, middle, device_d}) CUDA_CHECK(cudaFree(buffer));

  // Entries of D are sums of inner^2 products of numbers below 1: their typical size is inner.
  Verdict verdict(1e-5, static_cast<double>(inner));
  Reference reference(options, a, b, c);
  if (options.check == Check::kFull) reference.check_all(d, verdict);
  if (options.check == Check::kSample) reference.check_sample(d, random.fork(4), verdict);
  return verdict.report(options.check, std::to_string(rows) + "x" + std::to_string(inner) + "x" +
                                           std::to_string(columns) + ", " + std::to_string(options.iterations) +
                                           " iterations");
}

int main(int argc, char** argv) {
  Mm2Options job;
  Options options("mm2",
                  "D = A * B * C; A is rows x inner, B inner x inner, C inner x columns.\n"
                  "Device memory: the four matrices and A * B, 4 bytes a value.",
                  &job, "what is compared with the CPU's result; sample: 512 values of D");
  options.number("--rows", &job.rows, 1, 1 << 20, "rows of A and D");
  options.number("--inner", &job.inner, 1, 1 << 16, "columns of A, both sides of B, rows of C");
  options.number("--columns", &job.columns, 1, 1 << 20, "columns of C and D");
  options.iterations(1 << 20, "how often the product is computed");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return run(job); });
}
