// dwt2d: forward two-dimensional wavelet transform of an RGB image over several levels, by lifting.
// The 5/3 wavelet works on integers and is exact, the 9/7 wavelet on floats (the two of JPEG 2000, ISO/IEC 15444-1,
// Annex F; lifting: Daubechies, Sweldens, J. Fourier Analysis and Applications 4(3), 1998). One template for both.
// A level transforms all rows, then all columns, of the upper left part that the level before left as its average.
#include "options.h"

using namespace workload;

constexpr int kHalo = 4;         // lifting steps of the longest wavelet
constexpr int kRowSamples = 64;  // a block of `rows` transforms 8 lines of 64 samples, one of `columns` 32 lines of 32
constexpr int kRowLines = 8;
constexpr int kColumnSamples = 32;
constexpr int kColumnLines = 32;
constexpr int kComponents = 3;
constexpr int kThreads = 256;

// A lifting step replaces every second value: `left` and `right` are its neighbours. Even steps change odd positions.
struct Wavelet53 {
  using Value = int;
  static constexpr int kSteps = 2;
  static constexpr const char* kName = "5/3";
  __host__ __device__ static int lift(int step, int left, int middle, int right) {
    return step == 0 ? middle - ((left + right) >> 1) : middle + ((left + right + 2) >> 2);
  }
  __host__ __device__ static int scale_low(int value) { return value; }
  __host__ __device__ static int scale_high(int value) { return value; }
};

struct Wavelet97 {
  using Value = float;
  static constexpr int kSteps = 4;
  static constexpr const char* kName = "9/7";
  __host__ __device__ static float lift(int step, float left, float middle, float right) {
    const float factor = step == 0   ? -1.586134342f
                         : step == 1 ? -0.052980118f
                         : step == 2 ? 0.882911075f
                                     : 0.443506852f;
    return middle + factor * (left + right);
  }
  __host__ __device__ static float scale_low(float value) { return value * (1.0f / 1.230174105f); }
  __host__ __device__ static float scale_high(float value) { return value * (1.230174105f / 2.0f); }
};

// Position in a line of `length` >= 2 samples that mirrors at both ends.
__device__ int mirrored(int position, int length) {
  const int period = 2 * (length - 1);
  position = position < 0 ? -position % period : position % period;
  return position < length ? position : period - position;
}

// Lifts one line in shared memory: `length` values `stride` apart, beginning at an even position of the signal. The
// outermost kHalo values on each side come out undefined. All threads of the block must call this.
template <class Wavelet>
__device__ void lift_line(typename Wavelet::Value* line, int length, int stride, int worker, int workers) {
  for (int step = 0; step < Wavelet::kSteps; ++step) {
    __syncthreads();
    for (int i = 1 + step % 2 + 2 * worker; i + 1 < length; i += 2 * workers) {
      line[i * stride] = Wavelet::lift(step, line[(i - 1) * stride], line[i * stride], line[(i + 1) * stride]);
    }
  }
  __syncthreads();
}

// Where sample `i` of a line goes: averages into the first half, details into the second.
__host__ __device__ inline int sorted_position(int i, int length) {
  return i / 2 + (i % 2) * ((length + 1) / 2);
}

template <class Wavelet>
__device__ typename Wavelet::Value scaled(int i, typename Wavelet::Value value) {
  return i % 2 == 0 ? Wavelet::scale_low(value) : Wavelet::scale_high(value);
}

// Separates component `component` of interleaved bytes and centres it on 0.
template <class Wavelet>
__global__ void separate(const unsigned char* pixels, typename Wavelet::Value* out, size_t count, int component) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    out[i] = static_cast<typename Wavelet::Value>(static_cast<int>(pixels[i * kComponents + component]) - 128);
}

// A tile of one of the two kernels, which transform the upper left width x height part of an image whose rows are
// `pitch` values apart.
template <class Wavelet>
struct Tile {
  int x, y;
  const typename Wavelet::Value* in;
  typename Wavelet::Value* out;
  int width, height;
  size_t pitch;
};

template <class Wavelet, int kLength>
__device__ void transform_rows_of(const Tile<Wavelet>& tile, typename Wavelet::Value (&lines)[kRowLines][kLength]) {
  const auto [tile_x, tile_y, in, out, width, height, pitch] = tile;
  const int x0 = tile_x * kRowSamples, y = tile_y * kRowLines + threadIdx.y;
  const size_t row = static_cast<size_t>(min(y, height - 1)) * pitch;
  typename Wavelet::Value* line = lines[threadIdx.y];
  for (int i = threadIdx.x; i < kLength; i += blockDim.x) line[i] = in[row + mirrored(x0 - kHalo + i, width)];
  lift_line<Wavelet>(line, kLength, 1, threadIdx.x, blockDim.x);
  for (int i = threadIdx.x; i < kRowSamples; i += blockDim.x) {
    if (y < height && x0 + i < width) out[row + sorted_position(x0 + i, width)] = scaled<Wavelet>(i, line[kHalo + i]);
  }
}

template <class Wavelet>
__global__ void transform_rows(const typename Wavelet::Value* in, typename Wavelet::Value* out, int width, int height,
                               size_t pitch) {
  __shared__ typename Wavelet::Value lines[kRowLines][kRowSamples + 2 * kHalo];
  for_each_tile(ceil_div(width, kRowSamples), ceil_div(height, kRowLines), [&](int x, int y) {
    transform_rows_of(Tile<Wavelet>{x, y, in, out, width, height, pitch}, lines);
  });
}

template <class Wavelet, int kLength>
__device__ void transform_columns_of(const Tile<Wavelet>& tile,
                                     typename Wavelet::Value (&lines)[kLength][kColumnLines]) {
  const auto [tile_x, tile_y, in, out, width, height, pitch] = tile;
  const int x = tile_x * kColumnLines + threadIdx.x, y0 = tile_y * kColumnSamples;
  const int column = min(x, width - 1);
  for (int i = threadIdx.y; i < kLength; i += blockDim.y) {
    lines[i][threadIdx.x] = in[mirrored(y0 - kHalo + i, height) * pitch + column];
  }
  lift_line<Wavelet>(&lines[0][threadIdx.x], kLength, kColumnLines, threadIdx.y, blockDim.y);
  for (int i = threadIdx.y; i < kColumnSamples; i += blockDim.y) {
    if (x < width && y0 + i < height) {
      out[sorted_position(y0 + i, height) * pitch + x] = scaled<Wavelet>(i, lines[kHalo + i][threadIdx.x]);
    }
  }
}

template <class Wavelet>
__global__ void transform_columns(const typename Wavelet::Value* in, typename Wavelet::Value* out, int width,
                                  int height, size_t pitch) {
  __shared__ typename Wavelet::Value lines[kColumnSamples + 2 * kHalo][kColumnLines];
  for_each_tile(ceil_div(width, kColumnLines), ceil_div(height, kColumnSamples), [&](int x, int y) {
    transform_columns_of(Tile<Wavelet>{x, y, in, out, width, height, pitch}, lines);
  });
}

struct DwtOptions : CommonOptions {
  long long width = 512, height = 512;
  long long levels = 3;
  std::string wavelet = "9/7";
};

size_t footprint(const DwtOptions& o) {
  const size_t pixels = o.width * o.height;
  return pixels * (kComponents + (kComponents + 1) * sizeof(int));
}

// Coarse blocks of colour with a little noise; a new image for each frame. Eight bytes share a random number and rows
// share their colours, so that making an image does not take longer than all that is done with it.
void make_image(std::vector<unsigned char>& image, size_t width, size_t height, const Random& random) {
  constexpr size_t kBlock = 32;
  constexpr uint64_t kNoise = 0x1f1f1f1f1f1f1f1f;  // 0 to 31 for each byte
  for (size_t at = 0; at < image.size(); at += sizeof kNoise) {
    const uint64_t noise = random.bits(at / sizeof noise) & kNoise;
    std::memcpy(&image[at], &noise, std::min(sizeof noise, image.size() - at));
  }
  std::vector<unsigned char> shades(width * kComponents);
  for (size_t y = 0; y < height; ++y) {
    for (size_t i = 0; i < shades.size() && y % kBlock == 0; ++i) {
      const size_t x = i / kComponents, component = i % kComponents;
      shades[i] = static_cast<unsigned char>((x / kBlock * 37 + y / kBlock * 59 + component * 85) % 224);
    }
    unsigned char* row = &image[y * shades.size()];
    for (size_t i = 0; i < shades.size(); ++i) row[i] += shades[i];
  }
}

// The same transform on the CPU, line by line; columns are taken a strip at a time so that they share cache lines.
template <class Wavelet>
class Reference {
 public:
  using Value = typename Wavelet::Value;

  void transform(std::vector<Value>& image, size_t pitch, int width, int height, int levels) {
    for (int level = 0; level < levels; ++level) {
      for (int y = 0; y < height; ++y) lines_of(&image[y * pitch], 1, width, 1, 0);
      for (int x = 0; x < width; x += kStrip) lines_of(&image[x], pitch, height, std::min(kStrip, width - x), 1);
      width = (width + 1) / 2;
      height = (height + 1) / 2;
    }
  }

 private:
  static constexpr int kStrip = 16;

  // Transforms `lines` lines at once; samples of a line lie `along` apart, lines `across` apart.
  void lines_of(Value* data, size_t along, int length, int lines, size_t across) {
    line_.resize(static_cast<size_t>(length) * lines);
    for (int i = 0; i < length; ++i) {
      for (int l = 0; l < lines; ++l) line_[i * lines + l] = data[i * along + l * across];
    }
    for (int step = 0; step < Wavelet::kSteps; ++step) {
      for (int i = 1 - step % 2; i < length; i += 2) {
        Value* middle = &line_[i * lines];
        const Value* left = &line_[(i > 0 ? i - 1 : 1) * lines];
        const Value* right = &line_[(i + 1 < length ? i + 1 : i - 1) * lines];
        for (int l = 0; l < lines; ++l) middle[l] = Wavelet::lift(step, left[l], middle[l], right[l]);
      }
    }
    for (int i = 0; i < length; ++i) {
      Value* out = &data[sorted_position(i, length) * along];
      for (int l = 0; l < lines; ++l) {
        const Value value = line_[i * lines + l];
        out[l * across] = i % 2 == 0 ? Wavelet::scale_low(value) : Wavelet::scale_high(value);
      }
    }
  }

  std::vector<Value> line_;
};

template <class Wavelet>
class Dwt {
 public:
  using Value = typename Wavelet::Value;

  explicit Dwt(const DwtOptions& options)
      : o_(options), width_(o_.width), height_(o_.height), pixels_(o_.width * o_.height) {}

  int run() {
    CUDA_CHECK(cudaMalloc(&bytes_, pixels_ * kComponents));
    for (Value*& component : components_) CUDA_CHECK(cudaMalloc(&component, pixels_ * sizeof(Value)));
    CUDA_CHECK(cudaMalloc(&scratch_, pixels_ * sizeof(Value)));
    // Integers must agree exactly; values of the 9/7 transform are of the size of a grey level.
    Verdict verdict(std::is_same_v<Value, int> ? 0 : 1e-5, 128);
    std::vector<unsigned char> image(pixels_ * kComponents);
    for (long long k = 0; k < o_.iterations; ++k) {
      make_image(image, width_, height_, Random(o_.seed).fork(k));
      CUDA_CHECK(cudaMemcpy(bytes_, image.data(), image.size(), cudaMemcpyHostToDevice));
      for (int c = 0; c < kComponents; ++c) transform(c);
      CUDA_CHECK(cudaDeviceSynchronize());
      pause(o_);
      if (o_.check == Check::kFull || (o_.check == Check::kSample && k == 0)) compare(image, verdict);
    }
    CUDA_CHECK(cudaFree(bytes_));
    for (Value* component : components_) CUDA_CHECK(cudaFree(component));
    CUDA_CHECK(cudaFree(scratch_));
    return verdict.report(o_.check, std::to_string(width_) + "x" + std::to_string(height_) + ", " + Wavelet::kName +
                                        ", " + std::to_string(o_.levels) + " levels, " + std::to_string(o_.iterations) +
                                        " iterations");
  }

 private:
  void transform(int c) {
    separate<Wavelet><<<grid_size(pixels_, kThreads, o_.blocks), kThreads>>>(bytes_, components_[c], pixels_, c);
    check_launch("separate");
    int width = width_, height = height_;
    for (long long level = 0; level < o_.levels; ++level) {
      const dim3 row_grid = tile_grid(ceil_div(width, kRowSamples), ceil_div(height, kRowLines), o_.blocks);
      transform_rows<Wavelet>
          <<<row_grid, dim3(kThreads / kRowLines, kRowLines)>>>(components_[c], scratch_, width, height, width_);
      check_launch("transform_rows");
      const dim3 column_grid = tile_grid(ceil_div(width, kColumnLines), ceil_div(height, kColumnSamples), o_.blocks);
      transform_columns<Wavelet><<<column_grid, dim3(kColumnLines, kThreads / kColumnLines)>>>(scratch_, components_[c],
                                                                                               width, height, width_);
      check_launch("transform_columns");
      width = (width + 1) / 2;
      height = (height + 1) / 2;
    }
  }

  void compare(const std::vector<unsigned char>& image, Verdict& verdict) const {
    std::vector<Value> expected(pixels_), result(pixels_);
    Reference<Wavelet> reference;
    for (int c = 0; c < kComponents; ++c) {
      for (size_t i = 0; i < pixels_; ++i) expected[i] = static_cast<Value>(image[i * kComponents + c] - 128);
      reference.transform(expected, width_, width_, height_, static_cast<int>(o_.levels));
      CUDA_CHECK(cudaMemcpy(result.data(), components_[c], pixels_ * sizeof(Value), cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < pixels_; ++i) verdict.compare(c * pixels_ + i, result[i], expected[i]);
    }
  }

  const DwtOptions o_;
  const int width_, height_;
  const size_t pixels_;
  unsigned char* bytes_ = nullptr;
  Value* components_[kComponents] = {};
  Value* scratch_ = nullptr;
};

// Every level halves both sides, rounding up, and needs at least two samples.
bool too_many_levels(const DwtOptions& o) {
  return (std::min(o.width, o.height) - 1) >> (o.levels - 1) < 1;
}

int main(int argc, char** argv) {
  DwtOptions job;
  Options options("dwt2d",
                  "forward wavelet transform of RGB images over several levels.\n"
                  "Device memory: 19 bytes a pixel.",
                  &job, "what is compared with the CPU's result; sample: the first image only");
  constexpr long long kMaxHeight = 65535LL * kRowLines;
  options.number("--width", &job.width, 2, 1 << 20, "pixels in a row");
  options.number("--height", &job.height, 2, kMaxHeight, "rows");
  options.number("--levels", &job.levels, 1, 20, "levels; each transforms the average of the one before");
  options.choice("--wavelet", &job.wavelet, {"5/3", "9/7"}, "integers or floats");
  options.iterations(1 << 20, "images, one after the other");
  options.blocks();
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.parse(argc, argv);
  if (too_many_levels(job)) {
    Options::usage("--levels is " + std::to_string(job.levels) + ", too many for " + std::to_string(job.width) + "x" +
                   std::to_string(job.height) + " pixels: each level halves both sides and needs two samples");
  }
  return run_or_print(job, footprint(job),
                      [&] { return job.wavelet == "5/3" ? Dwt<Wavelet53>(job).run() : Dwt<Wavelet97>(job).run(); });
}
