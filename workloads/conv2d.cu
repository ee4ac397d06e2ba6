// conv2d: a square filter, held in constant memory, is convolved with an image, pass after pass.
// The image lies in pitched memory; each block stages its tile with a rim in shared memory. Borders repeat the edge.
#include "options.h"

using namespace workload;

constexpr int kTile = 16;
constexpr int kMaxRadius = 7;
constexpr int kMaxTaps = (2 * kMaxRadius + 1) * (2 * kMaxRadius + 1);
constexpr int kMaxStage = kTile + 2 * kMaxRadius;
constexpr long long kMaxGridY = 65535;
constexpr size_t kPitchAlignment = 512;  // what cudaMallocPitch rounds rows up to, on every device so far

__constant__ float taps[kMaxTaps];

__global__ void convolve(const float* in, float* out, size_t pitch, int width, int height, int radius) {
  __shared__ float stage[kMaxStage * kMaxStage];
  const int side = kTile + 2 * radius;
  const int left = blockIdx.x * kTile - radius, top = blockIdx.y * kTile - radius;
  for (int i = threadIdx.y * kTile + threadIdx.x; i < side * side; i += kTile * kTile) {
    const int x = min(max(left + i % side, 0), width - 1);
    const int y = min(max(top + i / side, 0), height - 1);
    stage[i] = in[y * pitch + x];
  }
  __syncthreads();
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  if (x >= width || y >= height) return;
  const int edge = 2 * radius + 1;
  float sum = 0;
  for (int dy = 0; dy < edge; ++dy) {
    for (int dx = 0; dx < edge; ++dx) {
      sum += taps[dy * edge + dx] * stage[(threadIdx.y + dy) * side + threadIdx.x + dx];
    }
  }
  out[y * pitch + x] = sum;
}

struct ConvOptions : CommonOptions {
  long long width = 512, height = 512;
  long long radius = 2;
};

size_t footprint(const ConvOptions& options) {
  return 2 * ceil_div(options.width * sizeof(float), kPitchAlignment) * kPitchAlignment * options.height;
}

// Positive values that add up to 1, so that any number of passes keeps the image's brightness.
std::vector<float> make_filter(int radius, const Random& random) {
  const size_t count = (2 * radius + 1) * (2 * radius + 1);
  std::vector<float> filter(count);
  float total = 0;
  for (size_t i = 0; i < count; ++i) {
    filter[i] = 0.1f + random.unit(i);
    total += filter[i];
  }
  for (float& tap : filter) tap /= total;
  return filter;
}

// One pass on the CPU. Each row of `in` is widened by its edge values once, so that the inner loop has no cases.
std::vector<float> reference_pass(const std::vector<float>& in, int width, int height, int radius,
                                  const std::vector<float>& filter) {
  const int edge = 2 * radius + 1;
  const size_t wide = width + 2 * radius;
  std::vector<float> padded(wide * height), out(in.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < static_cast<int>(wide); ++x) {
      padded[y * wide + x] = in[static_cast<size_t>(y) * width + std::min(std::max(x - radius, 0), width - 1)];
    }
  }
  for (int y = 0; y < height; ++y) {
    float* sums = &out[static_cast<size_t>(y) * width];
    for (int dy = 0; dy < edge; ++dy) {
      const float* row = &padded[std::min(std::max(y + dy - radius, 0), height - 1) * wide];
      for (int dx = 0; dx < edge; ++dx) {
        const float tap = filter[dy * edge + dx];
        for (int x = 0; x < width; ++x) sums[x] += tap * row[x + dx];
      }
    }
  }
  return out;
}

int run(const ConvOptions& options) {
  const size_t width = options.width, height = options.height, row_bytes = width * sizeof(float);
  const int radius = static_cast<int>(options.radius);
  const Random random(options.seed);
  std::vector<float> image(width * height);
  for (size_t i = 0; i < image.size(); ++i) image[i] = random.unit(i);
  const std::vector<float> filter = make_filter(radius, random.fork(1));

  float *in, *out;
  size_t pitch = 0;
  CUDA_CHECK(cudaMallocPitch(&in, &pitch, row_bytes, height));
  CUDA_CHECK(cudaMallocPitch(&out, &pitch, row_bytes, height));
  CUDA_CHECK(cudaMemcpy2D(in, pitch, image.data(), row_bytes, row_bytes, height, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpyToSymbol(taps, filter.data(), filter.size() * sizeof(float)));

  const dim3 threads(kTile, kTile), grid(ceil_div(width, kTile), ceil_div(height, kTile));
  long long passes_to_check = options.iterations;
  for (long long k = 0; k < options.iterations; ++k) {
    if (options.check == Check::kSample && k + 1 == options.iterations) {
      CUDA_CHECK(cudaMemcpy2D(image.data(), row_bytes, in, pitch, row_bytes, height, cudaMemcpyDeviceToHost));
      passes_to_check = 1;
    }
    convolve<<<grid, threads>>>(in, out, pitch / sizeof(float), width, height, radius);
    check_launch("convolve");
    std::swap(in, out);
  }
  std::vector<float> result(image.size());
  CUDA_CHECK(cudaMemcpy2D(result.data(), row_bytes, in, pitch, row_bytes, height, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(out));

  Verdict verdict(1e-5, 0.5);
  if (options.check != Check::kNone) {
    for (long long k = 0; k < passes_to_check; ++k) image = reference_pass(image, width, height, radius, filter);
    for (size_t i = 0; i < image.size(); ++i) verdict.compare(i, result[i], image[i]);
  }
  return verdict.report(options.check, std::to_string(width) + "x" + std::to_string(height) + ", radius " +
                                           std::to_string(radius) + ", " + std::to_string(options.iterations) +
                                           " iterations");
}

int main(int argc, char** argv) {
  ConvOptions job;
  job.iterations = 4;
  Options options("conv2d",
                  "convolves an image with a filter in constant memory; rows in pitched memory.\n"
                  "Device memory: two images; a row is rounded up to 512 bytes.",
                  &job, "what is compared with the CPU's result; sample: the last pass only");
  options.number("--width", &job.width, 1, 1 << 20, "pixels in a row");
  options.number("--height", &job.height, 1, kMaxGridY * kTile, "rows");
  options.number("--radius", &job.radius, 0, kMaxRadius, "reach of the filter: 2 means 5x5");
  options.iterations(1 << 20, "passes, each over the result of the one before");
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return run(job); });
}
