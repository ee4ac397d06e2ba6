// histogram: images of 8-bit grey are equalised one after the other, so that all brightnesses occur equally often.
// Four kernels an image, as large as it, 256 threads, 256 threads and as large as it; each image is copied in and out.
#include <array>

#include "options.h"

using namespace workload;

constexpr int kLevels = 256;
constexpr unsigned kThreads = kLevels;  // a thread a level where levels are handled
constexpr unsigned kPixelsAThread = 16;

__global__ void clear(unsigned* counts) {
  counts[threadIdx.x] = 0;
}

// Each block counts in shared memory first, so that few additions meet in device memory.
__global__ void count_levels(const unsigned char* image, size_t pixels, unsigned* counts) {
  __shared__ unsigned mine[kLevels];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += stride) {
    atomicAdd(&mine[image[i]], 1u);
  }
  __syncthreads();
  if (mine[threadIdx.x] > 0) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// The new brightness of a level: the share of pixels that are as dark or darker, without the darkest of the image.
__host__ __device__ inline unsigned char equalised(unsigned long long up_to_level, unsigned long long darkest,
                                                   unsigned long long pixels) {
  if (pixels == darkest) return 0;  // one grey everywhere
  const unsigned long long above = up_to_level - min(up_to_level, darkest), range = pixels - darkest;
  return static_cast<unsigned char>((above * (kLevels - 1) + range / 2) / range);
}

// One block: the running sum of the counts by doubling steps (Hillis, Steele: Data parallel algorithms, 1986).
__global__ void make_table(const unsigned* counts, size_t pixels, unsigned char* table) {
  __shared__ unsigned sums[kLevels];
  __shared__ unsigned darkest;
  const int level = threadIdx.x;
  sums[level] = counts[level];
  for (int reach = 1; reach < kLevels; reach *= 2) {
    __syncthreads();
    const unsigned other = level >= reach ? sums[level - reach] : 0;
    __syncthreads();
    sums[level] += other;
  }
  __syncthreads();
  if (counts[level] > 0 && sums[level] == counts[level]) darkest = counts[level];
  __syncthreads();
  table[level] = equalised(sums[level], darkest, pixels);
}

__global__ void apply_table(const unsigned char* image, size_t pixels, const unsigned char* table, unsigned char* out) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += stride) {
    out[i] = table[image[i]];
  }
}

struct HistogramOptions : CommonOptions {
  long long width = 256, height = 256;
};

size_t footprint(const HistogramOptions& o) {
  return 2 * o.width * o.height + kLevels * (sizeof(unsigned) + sizeof(unsigned char));
}

// Dark and bright images by turns: of every bit, the lesser (or greater) of two random ones.
void draw_image(std::vector<unsigned char>& image, const Random& random, bool bright) {
  for (size_t i = 0; i < image.size(); i += sizeof(uint64_t)) {
    const uint64_t a = random.bits(2 * i), b = random.bits(2 * i + 1), eight = bright ? a | b : a & b;
    std::memcpy(&image[i], &eight, std::min(sizeof(eight), image.size() - i));
  }
}

std::vector<unsigned char> reference(const std::vector<unsigned char>& image) {
  std::array<unsigned long long, kLevels> counts{};
  for (const unsigned char pixel : image) ++counts[pixel];
  const unsigned long long darkest = *std::find_if(counts.begin(), counts.end(), [](auto count) { return count > 0; });
  std::array<unsigned char, kLevels> table{};
  unsigned long long sum = 0;
  for (int level = 0; level < kLevels; ++level) {
    sum += counts[level];
    table[level] = equalised(sum, darkest, image.size());
  }
  std::vector<unsigned char> out(image.size());
  for (size_t i = 0; i < image.size(); ++i) out[i] = table[image[i]];
  return out;
}

class Histogram {
 public:
  explicit Histogram(const HistogramOptions& options)
      : o_(options),
        pixels_(o_.width * o_.height),
        grid_(grid_size(ceil_div(pixels_, kPixelsAThread), kThreads, o_.blocks)),
        random_(o_.seed),
        image_(pixels_),
        result_(pixels_) {}

  int run() {
    CUDA_CHECK(cudaMalloc(&in_, pixels_));
    CUDA_CHECK(cudaMalloc(&out_, pixels_));
    CUDA_CHECK(cudaMalloc(&counts_, kLevels * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&table_, kLevels));
    Verdict verdict(0);
    for (long long k = 0; k < o_.iterations; ++k) {
      draw_image(image_, random_.fork(k), k % 2 == 1);
      equalise();
      const bool last = k + 1 == o_.iterations;
      if (o_.check == Check::kFull || (o_.check == Check::kSample && last)) compare(verdict);
    }
    CUDA_CHECK(cudaFree(in_));
    CUDA_CHECK(cudaFree(out_));
    CUDA_CHECK(cudaFree(counts_));
    CUDA_CHECK(cudaFree(table_));
    return verdict.report(o_.check, std::to_string(o_.width) + "x" + std::to_string(o_.height) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

 private:
  void equalise() {
    CUDA_CHECK(cudaMemcpy(in_, image_.data(), pixels_, cudaMemcpyHostToDevice));
    clear<<<1, kLevels>>>(counts_);
    check_launch("clear");
    count_levels<<<grid_, kThreads>>>(in_, pixels_, counts_);
    check_launch("count_levels");
    make_table<<<1, kLevels>>>(counts_, pixels_, table_);
    check_launch("make_table");
    apply_table<<<grid_, kThreads>>>(in_, pixels_, table_, out_);
    check_launch("apply_table");
    CUDA_CHECK(cudaMemcpy(result_.data(), out_, pixels_, cudaMemcpyDeviceToHost));
  }

  void compare(Verdict& verdict) const {
    const std::vector<unsigned char> expected = reference(image_);
    for (size_t i = 0; i < pixels_; ++i) verdict.compare(i, result_[i], expected[i]);
  }

  const HistogramOptions o_;
  const size_t pixels_;
  const unsigned grid_;
  const Random random_;
  std::vector<unsigned char> image_, result_;
  unsigned char *in_ = nullptr, *out_ = nullptr, *table_ = nullptr;
  unsigned* counts_ = nullptr;
};

int main(int argc, char** argv) {
  HistogramOptions job;
  job.iterations = 2;
  Options options("histogram",
                  "equalises the histograms of grey images.\n"
                  "Device memory: 2 bytes a pixel, and 1280.",
                  &job, "what is compared with the CPU's result; sample: the last image only");
  options.number("--width", &job.width, 1, 1 << 16, "pixels in a row");
  options.number("--height", &job.height, 1, 1 << 15, "rows");
  options.iterations(1LL << 31, "images, one after the other, of four launches each");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Histogram(job).run(); });
}
