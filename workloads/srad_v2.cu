// srad_v2: speckle reducing anisotropic diffusion, the formulation with two kernels over two-dimensional tiles.
// The host measures the speckle in a corner of the image that counts as homogeneous, so the whole image travels to
// the device and back in every iteration. Each block stages its tile in shared memory.
#include "options.h"
#include "srad_reference.h"

using namespace workload;

constexpr int kTile = 16;
constexpr long long kMaxGridY = 65535;

struct Gradients {
  float *north, *south, *west, *east;
};

// Loads a tile of `source`; positions outside the image repeat its edge.
__device__ void stage_tile(float tile[kTile][kTile], const float* source, int tile_x, int tile_y, int rows,
                           int columns) {
  const int x = min(static_cast<int>(tile_x * kTile + threadIdx.x), columns - 1);
  const int y = min(static_cast<int>(tile_y * kTile + threadIdx.y), rows - 1);
  tile[threadIdx.y][threadIdx.x] = source[static_cast<size_t>(y) * columns + x];
  __syncthreads();
}

__device__ void coefficients_of(float tile[kTile][kTile], int tile_x, int tile_y, const float* image,
                                const Gradients& out, float* coefficient, int rows, int columns, float q0_squared) {
  stage_tile(tile, image, tile_x, tile_y, rows, columns);
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = tile_x * kTile + tx, y = tile_y * kTile + ty;
  if (x >= columns || y >= rows) return;
  const size_t at = static_cast<size_t>(y) * columns + x;
  const float value = tile[ty][tx];
  // A neighbour comes from the tile, from the next tile in memory, or is the pixel itself at the image's edge.
  const float north = ty > 0 ? tile[ty - 1][tx] : y > 0 ? image[at - columns] : value;
  const float south = ty + 1 < kTile ? tile[ty + 1][tx] : y + 1 < rows ? image[at + columns] : value;
  const float west = tx > 0 ? tile[ty][tx - 1] : x > 0 ? image[at - 1] : value;
  const float east = tx + 1 < kTile ? tile[ty][tx + 1] : x + 1 < columns ? image[at + 1] : value;
  out.north[at] = north - value;
  out.south[at] = south - value;
  out.west[at] = west - value;
  out.east[at] = east - value;
  coefficient[at] = diffusion_coefficient(value, north - value, south - value, west - value, east - value, q0_squared);
}

__global__ void coefficients(const float* image, Gradients out, float* coefficient, int rows, int columns,
                             float q0_squared) {
  __shared__ float tile[kTile][kTile];
  for_each_tile(ceil_div(columns, kTile), ceil_div(rows, kTile),
                [&](int x, int y) { coefficients_of(tile, x, y, image, out, coefficient, rows, columns, q0_squared); });
}

__device__ void update_tile(float tile[kTile][kTile], int tile_x, int tile_y, float* image, const Gradients& in,
                            const float* coefficient, int rows, int columns, float lambda) {
  stage_tile(tile, coefficient, tile_x, tile_y, rows, columns);
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = tile_x * kTile + tx, y = tile_y * kTile + ty;
  if (x >= columns || y >= rows) return;
  const size_t at = static_cast<size_t>(y) * columns + x;
  const float here = tile[ty][tx];
  const float south = ty + 1 < kTile ? tile[ty + 1][tx] : y + 1 < rows ? coefficient[at + columns] : here;
  const float east = tx + 1 < kTile ? tile[ty][tx + 1] : x + 1 < columns ? coefficient[at + 1] : here;
  image[at] += 0.25f * lambda * (here * in.north[at] + south * in.south[at] + here * in.west[at] + east * in.east[at]);
}

__global__ void update(float* image, Gradients in, const float* coefficient, int rows, int columns, float lambda) {
  __shared__ float tile[kTile][kTile];
  for_each_tile(ceil_div(columns, kTile), ceil_div(rows, kTile),
                [&](int x, int y) { update_tile(tile, x, y, image, in, coefficient, rows, columns, lambda); });
}

struct SradOptions : CommonOptions {
  long long rows = 512, columns = 512;
  long long region = 128;
  long long lambda_percent = 50;
};

size_t footprint(const SradOptions& o) {
  return 6 * o.rows * o.columns * sizeof(float);
}

class SradV2 {
 public:
  explicit SradV2(const SradOptions& options)
      : o_(options),
        rows_(o_.rows),
        columns_(o_.columns),
        bytes_(rows_ * columns_ * sizeof(float)),
        lambda_(0.01f * static_cast<float>(o_.lambda_percent)) {}

  int run() {
    std::vector<float> image = speckled_image(rows_, columns_, Random(o_.seed));
    for (float& value : image) value = std::exp(value / 255.0f);
    std::vector<float> expected = o_.check == Check::kFull ? image : std::vector<float>();

    for (float** buffer : buffers()) CUDA_CHECK(cudaMalloc(buffer, bytes_));
    for (long long k = 0; k < o_.iterations; ++k) {
      if (o_.check == Check::kSample && k + 1 == o_.iterations) expected = image;
      iterate(image);
      wait_and_pause(o_);
    }
    for (float** buffer : buffers()) CUDA_CHECK(cudaFree(*buffer));
    return check(image, expected);
  }

 private:
  std::vector<float**> buffers() {
    return {&image_, &coefficient_, &gradients_.north, &gradients_.south, &gradients_.west, &gradients_.east};
  }

  float speckle(const std::vector<float>& image) const {
    const size_t region = o_.region;
    return speckle_scale_of(image, columns_, std::min(region, rows_), std::min(region, columns_));
  }

  void iterate(std::vector<float>& image) {
    const dim3 threads(kTile, kTile), grid = tile_grid(ceil_div(columns_, kTile), ceil_div(rows_, kTile), o_.blocks);
    CUDA_CHECK(cudaMemcpy(image_, image.data(), bytes_, cudaMemcpyHostToDevice));
    coefficients<<<grid, threads>>>(image_, gradients_, coefficient_, rows_, columns_, speckle(image));
    check_launch("coefficients");
    update<<<grid, threads>>>(image_, gradients_, coefficient_, rows_, columns_, lambda_);
    check_launch("update");
    CUDA_CHECK(cudaMemcpy(image.data(), image_, bytes_, cudaMemcpyDeviceToHost));
  }

  // `state` is the image before the iterations that remain to be recomputed.
  int check(const std::vector<float>& result, std::vector<float>& state) const {
    Verdict verdict(1e-4);
    if (o_.check != Check::kNone) {
      SradReference reference(rows_, columns_);
      const long long steps = o_.check == Check::kFull ? o_.iterations : 1;
      for (long long k = 0; k < steps; ++k) reference.step(state, lambda_, speckle(state));
      for (size_t i = 0; i < result.size(); ++i) verdict.compare(i, result[i], state[i]);
    }
    return verdict.report(o_.check, std::to_string(rows_) + "x" + std::to_string(columns_) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  const SradOptions o_;
  const size_t rows_, columns_, bytes_;
  const float lambda_;
  float *image_ = nullptr, *coefficient_ = nullptr;
  Gradients gradients_{};
};

int main(int argc, char** argv) {
  SradOptions job;
  job.iterations = 20;
  Options options("srad_v2",
                  "removes speckle from an image by anisotropic diffusion, two kernels over tiles;\n"
                  "the image goes to the device and back in every iteration.\n"
                  "Device memory: six images of 4 bytes a pixel.",
                  &job, "what is compared with the CPU's result; sample: the last iteration only");
  options.number("--rows", &job.rows, 2, kMaxGridY * kTile, "height of the image");
  options.number("--columns", &job.columns, 2, 1 << 20, "width of the image");
  options.number("--region", &job.region, 2, 1 << 20, "side of the corner in which speckle is measured");
  options.number("--lambda", &job.lambda_percent, 1, 100, "strength of an iteration, in percent");
  options.iterations(1 << 20, "diffusion steps");
  options.blocks();
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return SradV2(job).run(); });
}
