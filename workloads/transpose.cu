// transpose: a matrix is transposed through tiles in shared memory, there and back, pass after pass.
// Each pass adds one to every value, so that no pass can be missing unnoticed.
#include "options.h"

using namespace workload;

constexpr int kTile = 32;
constexpr int kRowsAtOnce = 8;  // a block has kTile x kRowsAtOnce threads

// out (columns x rows) = in (rows x columns) transposed, plus one. Blocks stride over the tiles. The tile is one column
// wider than its data, so that neither direction of it meets one bank of shared memory twice.
__global__ void transpose(const unsigned* in, unsigned* out, int rows, int columns) {
  __shared__ unsigned tile[kTile][kTile + 1];
  const int tiles_across = (columns + kTile - 1) / kTile, tiles_down = (rows + kTile - 1) / kTile;
  const size_t tiles = static_cast<size_t>(tiles_across) * tiles_down;
  for (size_t n = blockIdx.x; n < tiles; n += gridDim.x) {
    const int top = static_cast<int>(n / tiles_across) * kTile, left = static_cast<int>(n % tiles_across) * kTile;
    for (int y = threadIdx.y; y < kTile; y += kRowsAtOnce) {
      const int row = top + y, column = left + threadIdx.x;
      if (row < rows && column < columns) tile[y][threadIdx.x] = in[static_cast<size_t>(row) * columns + column];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < kTile; y += kRowsAtOnce) {
      const int row = top + threadIdx.x, column = left + y;
      if (row < rows && column < columns) out[static_cast<size_t>(column) * rows + row] = tile[threadIdx.x][y] + 1;
    }
    __syncthreads();
  }
}

struct TransposeOptions : CommonOptions {
  long long rows = 400, columns = 300;
};

size_t footprint(const TransposeOptions& o) {
  return 2 * o.rows * o.columns * sizeof(unsigned);
}

int run(const TransposeOptions& o) {
  const size_t rows = o.rows, columns = o.columns, count = rows * columns, bytes = count * sizeof(unsigned);
  const Random random(o.seed);
  std::vector<unsigned> matrix(count), result(count);
  for (size_t i = 0; i < count; ++i) matrix[i] = static_cast<unsigned>(random.bits(i));

  unsigned *in, *out;
  CUDA_CHECK(cudaMalloc(&in, bytes));
  CUDA_CHECK(cudaMalloc(&out, bytes));
  CUDA_CHECK(cudaMemcpy(in, matrix.data(), bytes, cudaMemcpyHostToDevice));
  const dim3 threads(kTile, kRowsAtOnce);
  const unsigned grid = grid_size(ceil_div(rows, kTile) * ceil_div(columns, kTile), 1, o.blocks);
  for (long long k = 0; k < o.iterations; ++k) {
    const bool back = k % 2 == 1;
    transpose<<<grid, threads>>>(in, out, static_cast<int>(back ? columns : rows),
                                 static_cast<int>(back ? rows : columns));
    check_launch("transpose");
    std::swap(in, out);
  }
  CUDA_CHECK(cudaMemcpy(result.data(), in, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(out));

  Verdict verdict(0);
  const unsigned passes = static_cast<unsigned>(o.iterations);
  if (o.check != Check::kNone) {
    for (size_t i = 0; i < count; i += o.check == Check::kSample ? 61 : 1) {
      const size_t from = o.iterations % 2 == 0 ? i : i % rows * columns + i / rows;
      verdict.compare(i, result[i], matrix[from] + passes);
    }
  }
  return verdict.report(o.check, std::to_string(rows) + "x" + std::to_string(columns) + ", " +
                                     std::to_string(o.iterations) + " iterations");
}

int main(int argc, char** argv) {
  TransposeOptions job;
  job.iterations = 3;
  Options options("transpose",
                  "transposes a matrix and adds one to it, there and back.\n"
                  "Device memory: 8 bytes a value.",
                  &job, "what is compared with the CPU's result; sample: every 61st value");
  options.number("--rows", &job.rows, 1, 1 << 20, "rows of the matrix");
  options.number("--columns", &job.columns, 1, 1 << 20, "columns of the matrix");
  options.iterations(1LL << 31, "transpositions, each of the last result");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return run(job); });
}
