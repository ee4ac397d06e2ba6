// srad_v1: speckle reducing anisotropic diffusion, the formulation with one small kernel a stage.
// The image is taken out of its logarithmic form, then each iteration measures the speckle of the whole image by a
// reduction in several launches, computes the diffusion coefficients and updates; at the end it is compressed again.
// All kernels see the image as a line of pixels; the neighbours' rows and columns come from small index tables.
#include "options.h"
#include "srad_reference.h"

using namespace workload;

constexpr unsigned kThreads = 256;
constexpr float kWhite = 255.0f;

__device__ size_t first_pixel() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ size_t pixel_stride() {
  return static_cast<size_t>(gridDim.x) * blockDim.x;
}

__global__ void extract(float* image, size_t count) {
  for (size_t i = first_pixel(); i < count; i += pixel_stride()) image[i] = expf(image[i] / kWhite);
}

__global__ void compress(float* image, size_t count) {
  for (size_t i = first_pixel(); i < count; i += pixel_stride()) image[i] = kWhite * logf(image[i]);
}

__global__ void prepare(const float* image, float* sums, float* squares, size_t count) {
  for (size_t i = first_pixel(); i < count; i += pixel_stride()) {
    sums[i] = image[i];
    squares[i] = image[i] * image[i];
  }
}

// Adds up groups of kThreads values that lie `spacing` apart; each group's sum replaces its first value. Groups share
// nothing, so this is safe in place.
__global__ void reduce(float* sums, float* squares, size_t count, size_t spacing) {
  __shared__ float shared_sums[kThreads], shared_squares[kThreads];
  const unsigned t = threadIdx.x;
  for (size_t first = static_cast<size_t>(blockIdx.x) * kThreads; first < count; first += pixel_stride()) {
    const bool inside = first + t < count;
    shared_sums[t] = inside ? sums[(first + t) * spacing] : 0.0f;
    shared_squares[t] = inside ? squares[(first + t) * spacing] : 0.0f;
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (t < half) {
        shared_sums[t] += shared_sums[t + half];
        shared_squares[t] += shared_squares[t + half];
      }
    }
    if (t == 0) {
      sums[first * spacing] = shared_sums[0];
      squares[first * spacing] = shared_squares[0];
    }
    __syncthreads();
  }
}

// The tables say, for a row or a column, which one lies before and after it.
struct Neighbours {
  const int *north, *south, *west, *east;
};
struct Gradients {
  float *north, *south, *west, *east, *coefficient;
};

__global__ void srad(const float* image, Neighbours near, Gradients out, size_t count, int columns, float q0_squared) {
  for (size_t i = first_pixel(); i < count; i += pixel_stride()) {
    const size_t row = i / columns, column = i % columns;
    const float value = image[i];
    out.north[i] = image[static_cast<size_t>(near.north[row]) * columns + column] - value;
    out.south[i] = image[static_cast<size_t>(near.south[row]) * columns + column] - value;
    out.west[i] = image[row * columns + near.west[column]] - value;
    out.east[i] = image[row * columns + near.east[column]] - value;
    out.coefficient[i] = diffusion_coefficient(value, out.north[i], out.south[i], out.west[i], out.east[i], q0_squared);
  }
}

__global__ void srad2(float* image, Neighbours near, Gradients in, size_t count, int columns, float lambda) {
  for (size_t i = first_pixel(); i < count; i += pixel_stride()) {
    const size_t row = i / columns, column = i % columns;
    const float here = in.coefficient[i];
    const float south = in.coefficient[static_cast<size_t>(near.south[row]) * columns + column];
    const float east = in.coefficient[row * columns + near.east[column]];
    const float flow = here * in.north[i] + south * in.south[i] + here * in.west[i] + east * in.east[i];
    image[i] += 0.25f * lambda * flow;
  }
}

struct SradOptions : CommonOptions {
  long long rows = 512, columns = 512;
  long long lambda_percent = 50;
};

size_t footprint(const SradOptions& o) {
  return 8 * o.rows * o.columns * sizeof(float) + 2 * (o.rows + o.columns) * sizeof(int);
}

class SradV1 {
 public:
  explicit SradV1(const SradOptions& options)
      : o_(options),
        rows_(o_.rows),
        columns_(o_.columns),
        count_(rows_ * columns_),
        bytes_(count_ * sizeof(float)),
        lambda_(0.01f * static_cast<float>(o_.lambda_percent)),
        grid_(grid_size(count_, kThreads, o_.blocks)) {}

  int run() {
    const std::vector<float> original = speckled_image(rows_, columns_, Random(o_.seed));
    std::vector<float> expected(count_), result(count_);
    if (o_.check == Check::kFull) {
      for (size_t i = 0; i < count_; ++i) expected[i] = std::exp(original[i] / kWhite);
    }

    upload(original);
    extract<<<grid_, kThreads>>>(image_, count_);
    check_launch("extract");
    for (long long k = 0; k < o_.iterations; ++k) {
      const bool last = k + 1 == o_.iterations;
      if (o_.check == Check::kSample && last) {
        CUDA_CHECK(cudaMemcpy(expected.data(), image_, bytes_, cudaMemcpyDeviceToHost));
      }
      iterate();
      wait_and_pause(o_);
    }
    compress<<<grid_, kThreads>>>(image_, count_);
    check_launch("compress");
    CUDA_CHECK(cudaMemcpy(result.data(), image_, bytes_, cudaMemcpyDeviceToHost));
    release();
    return check(result, expected);
  }

 private:
  void upload(const std::vector<float>& original) {
    for (float** buffer : {&image_, &sums_, &squares_, &gradients_.north, &gradients_.south, &gradients_.west,
                           &gradients_.east, &gradients_.coefficient}) {
      CUDA_CHECK(cudaMalloc(buffer, bytes_));
    }
    CUDA_CHECK(cudaMemcpy(image_, original.data(), bytes_, cudaMemcpyHostToDevice));
    near_.north = upload_table(rows_, -1);
    near_.south = upload_table(rows_, 1);
    near_.west = upload_table(columns_, -1);
    near_.east = upload_table(columns_, 1);
  }

  static int* upload_table(size_t size, int step) {
    std::vector<int> table(size);
    const int last = static_cast<int>(size) - 1;
    for (int i = 0; i <= last; ++i) table[i] = std::min(std::max(i + step, 0), last);
    int* device;
    CUDA_CHECK(cudaMalloc(&device, size * sizeof(int)));
    CUDA_CHECK(cudaMemcpy(device, table.data(), size * sizeof(int), cudaMemcpyHostToDevice));
    return device;
  }

  void iterate() {
    prepare<<<grid_, kThreads>>>(image_, sums_, squares_, count_);
    check_launch("prepare");
    const float q0_squared = measure_speckle();
    srad<<<grid_, kThreads>>>(image_, near_, gradients_, count_, columns_, q0_squared);
    check_launch("srad");
    srad2<<<grid_, kThreads>>>(image_, near_, gradients_, count_, columns_, lambda_);
    check_launch("srad2");
  }

  // Launches get smaller by kThreads until one sum is left, which the host fetches.
  float measure_speckle() {
    size_t spacing = 1;
    for (size_t left = count_; left > 1; left = ceil_div(left, kThreads)) {
      reduce<<<grid_size(left, kThreads, o_.blocks), kThreads>>>(sums_, squares_, left, spacing);
      check_launch("reduce");
      spacing *= kThreads;
    }
    float sum, squares;
    CUDA_CHECK(cudaMemcpy(&sum, sums_, sizeof(sum), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&squares, squares_, sizeof(squares), cudaMemcpyDeviceToHost));
    return speckle_scale(sum, squares, static_cast<double>(count_));
  }

  void release() {
    for (float* buffer : {image_, sums_, squares_, gradients_.north, gradients_.south, gradients_.west, gradients_.east,
                          gradients_.coefficient}) {
      CUDA_CHECK(cudaFree(buffer));
    }
    for (const int* table : {near_.north, near_.south, near_.west, near_.east}) {
      CUDA_CHECK(cudaFree(const_cast<int*>(table)));
    }
  }

  // `state` is the image before the iterations that remain to be recomputed.
  int check(const std::vector<float>& result, std::vector<float>& state) const {
    Verdict verdict(1e-4);
    if (o_.check != Check::kNone) {
      SradReference reference(rows_, columns_);
      const long long steps = o_.check == Check::kFull ? o_.iterations : 1;
      for (long long k = 0; k < steps; ++k) {
        reference.step(state, lambda_, speckle_scale_of(state, columns_, rows_, columns_));
      }
      for (size_t i = 0; i < count_; ++i) verdict.compare(i, result[i], kWhite * std::log(state[i]));
    }
    return verdict.report(o_.check, std::to_string(rows_) + "x" + std::to_string(columns_) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  const SradOptions o_;
  const size_t rows_, columns_, count_, bytes_;
  const float lambda_;
  const unsigned grid_;
  float *image_ = nullptr, *sums_ = nullptr, *squares_ = nullptr;
  Gradients gradients_{};
  Neighbours near_{};
};

int main(int argc, char** argv) {
  SradOptions job;
  job.iterations = 20;
  Options options("srad_v1",
                  "removes speckle from an image by anisotropic diffusion, one small kernel a stage.\n"
                  "Device memory: eight images of 4 bytes a pixel, and four small tables.",
                  &job, "what is compared with the CPU's result; sample: the last iteration only");
  options.number("--rows", &job.rows, 2, 1 << 20, "height of the image");
  options.number("--columns", &job.columns, 2, 1 << 20, "width of the image");
  options.number("--lambda", &job.lambda_percent, 1, 100, "strength of an iteration, in percent");
  options.iterations(1 << 20, "diffusion steps");
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return SradV1(job).run(); });
}
