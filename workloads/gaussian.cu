// gaussian: an image is blurred by recursive filters, which cost the same for every width of the blur.
// Each column is filtered down and up by one thread; the image is transposed, filtered and transposed back: four
// launches a blur, each of few threads where the image is small.
// Deriche: Recursively implementing the Gaussian and its derivatives, INRIA research report 1893, 1993.
#include "options.h"

using namespace workload;

constexpr int kTile = 16;
constexpr unsigned kThreads = 64;
constexpr long long kMaxGridY = 65535;

// One of the two damped oscillations that add up to the bell: s[n] = now x[n] + before x[n-1] - back1 s[n-1] - back2
// s[n-2], and `gain` is what a constant input is multiplied by.
template <class Real>
struct Section {
  Real now, before, back1, back2, gain;
};

// The filter runs down and up a column, and what both count of the pixel itself (`twice`) is taken off once.
template <class Real>
struct Bell {
  Section<Real> sections[2];
  Real twice;
};

// The report's fit of the half bell (cosine c, sine s, damping b, frequency w), for sigma 1.
Bell<double> make_bell(double sigma) {
  struct Term {
    double c, s, b, w;
  };
  const Term terms[2] = {{1.680, 3.735, 1.783, 0.6318}, {-0.6803, -0.2598, 1.723, 1.997}};
  Bell<double> bell{};
  double total = 0;
  for (int i = 0; i < 2; ++i) {
    const Term& term = terms[i];
    const double damping = std::exp(-term.b / sigma), cosine = std::cos(term.w / sigma);
    Section<double>& section = bell.sections[i];
    section.now = term.c;
    section.before = damping * (term.s * std::sin(term.w / sigma) - term.c * cosine);
    section.back1 = -2 * damping * cosine;
    section.back2 = damping * damping;
    section.gain = (section.now + section.before) / (1 + section.back1 + section.back2);
    total += 2 * section.gain;
    bell.twice += term.c;
  }
  total -= bell.twice;
  for (Section<double>& section : bell.sections) {
    section.now /= total;
    section.before /= total;
    section.gain /= total;
  }
  bell.twice /= total;
  return bell;
}

Bell<float> in_floats(const Bell<double>& bell) {
  Bell<float> floats{};
  for (int i = 0; i < 2; ++i) {
    const Section<double>& s = bell.sections[i];
    floats.sections[i] = {static_cast<float>(s.now), static_cast<float>(s.before), static_cast<float>(s.back1),
                          static_cast<float>(s.back2), static_cast<float>(s.gain)};
  }
  floats.twice = static_cast<float>(bell.twice);
  return floats;
}

// Both sections' memory. It starts as if the edge's pixel had been there for ever.
template <class Real>
struct Run {
  Real last, states[2][2];

  __host__ __device__ Run(const Bell<Real>& bell, Real edge) : last(edge) {
    for (int i = 0; i < 2; ++i) states[i][0] = states[i][1] = edge * bell.sections[i].gain;
  }

  __host__ __device__ Real step(const Bell<Real>& bell, Real pixel) {
    Real sum = 0;
    for (int i = 0; i < 2; ++i) {
      const Section<Real>& s = bell.sections[i];
      const Real state = s.now * pixel + s.before * last - s.back1 * states[i][0] - s.back2 * states[i][1];
      states[i][1] = states[i][0];
      states[i][0] = state;
      sum += state;
    }
    last = pixel;
    return sum;
  }
};

// Filters `length` pixels of `in` that lie `stride` apart, for the CPU and for a thread of the device.
template <class Real>
__host__ __device__ inline void filter_line(const Real* in, Real* out, int length, size_t stride,
                                            const Bell<Real>& bell) {
  Run<Real> down(bell, in[0]);
  for (int i = 0; i < length; ++i) out[i * stride] = down.step(bell, in[i * stride]);
  Run<Real> up(bell, in[(length - 1) * stride]);
  for (int i = length - 1; i >= 0; --i) {
    const Real pixel = in[i * stride];
    out[i * stride] += up.step(bell, pixel) - bell.twice * pixel;
  }
}

__global__ void filter_columns(const float* in, float* out, int width, int height, Bell<float> bell) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < width) filter_line(in + x, out + x, height, static_cast<size_t>(width), bell);
}

__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile, tx = threadIdx.x, ty = threadIdx.y;
  if (left + tx < width && top + ty < height) tile[ty][tx] = in[static_cast<size_t>(top + ty) * width + left + tx];
  __syncthreads();
  if (left + ty < width && top + tx < height) out[static_cast<size_t>(left + ty) * height + top + tx] = tile[tx][ty];
}

struct GaussianOptions : CommonOptions {
  long long width = 50, height = 50;
  long long sigma = 3;
};

size_t footprint(const GaussianOptions& o) {
  return 3 * o.width * o.height * sizeof(float);
}

// Each blur is a little wider than the last, and from the start again.
double sigma_of(const GaussianOptions& o, long long iteration) {
  return static_cast<double>(o.sigma) * (1.0 + static_cast<double>(iteration % 8) / 8.0);
}

class Gaussian {
 public:
  explicit Gaussian(const GaussianOptions& options)
      : o_(options),
        width_(static_cast<int>(o_.width)),
        height_(static_cast<int>(o_.height)),
        pixels_(o_.width * o_.height),
        image_(pixels_) {}

  int run() {
    const Random random(o_.seed);
    for (size_t i = 0; i < pixels_; ++i) image_[i] = random.unit(i);
    const size_t bytes = pixels_ * sizeof(float);
    for (float** buffer : {&source_, &a_, &b_}) CUDA_CHECK(cudaMalloc(buffer, bytes));
    CUDA_CHECK(cudaMemcpy(source_, image_.data(), bytes, cudaMemcpyHostToDevice));
    for (long long k = 0; k < o_.iterations; ++k) blur(in_floats(make_bell(sigma_of(o_, k))));
    std::vector<float> result(pixels_);
    CUDA_CHECK(cudaMemcpy(result.data(), b_, bytes, cudaMemcpyDeviceToHost));
    for (float* buffer : {source_, a_, b_}) CUDA_CHECK(cudaFree(buffer));
    return check(result);
  }

 private:
  void blur(const Bell<float>& bell) {
    filter(source_, a_, width_, height_, bell);
    turn(a_, b_, width_, height_);
    filter(b_, a_, height_, width_, bell);
    turn(a_, b_, height_, width_);
  }

  static void filter(const float* in, float* out, int width, int height, const Bell<float>& bell) {
    filter_columns<<<static_cast<unsigned>(ceil_div(width, kThreads)), kThreads>>>(in, out, width, height, bell);
    check_launch("filter_columns");
  }

  static void turn(const float* in, float* out, int width, int height) {
    const dim3 grid(ceil_div(width, kTile), ceil_div(height, kTile));
    transpose<<<grid, dim3(kTile, kTile)>>>(in, out, width, height);
    check_launch("transpose");
  }

  int check(const std::vector<float>& result) const {
    Verdict verdict(1e-5);
    if (o_.check != Check::kNone) {
      const double sigma = sigma_of(o_, o_.iterations - 1);
      if (o_.check == Check::kFull) compare_with_filter(result, sigma, verdict);
      compare_with_bell(result, sigma, verdict);
    }
    return verdict.report(o_.check, std::to_string(width_) + "x" + std::to_string(height_) + ", sigma " +
                                        std::to_string(o_.sigma) + ", " + std::to_string(o_.iterations) +
                                        " iterations");
  }

  // The same filters in doubles, rows first.
  void compare_with_filter(const std::vector<float>& result, double sigma, Verdict& verdict) const {
    const Bell<double> bell = make_bell(sigma);
    std::vector<double> rows(image_.begin(), image_.end()), between(pixels_), expected(pixels_);
    for (int y = 0; y < height_; ++y) {
      const size_t first = static_cast<size_t>(y) * width_;
      filter_line(&rows[first], &between[first], width_, 1, bell);
    }
    for (int x = 0; x < width_; ++x) {
      filter_line(&between[x], &expected[x], height_, static_cast<size_t>(width_), bell);
    }
    for (size_t i = 0; i < pixels_; ++i) verdict.compare(i, result[i], expected[i]);
  }

  // Sampled pixels against the blur itself, weighted sums with the bell, which owe nothing to the filters. What these
  // differ by, on noise between 0 and 1, was 2e-4 at a sigma of 1 and less above.
  void compare_with_bell(const std::vector<float>& result, double sigma, Verdict& verdict) const {
    constexpr size_t kSamples = 256;
    constexpr double kFit = 4e-4;
    const int reach = static_cast<int>(std::ceil(5 * sigma));
    std::vector<double> weights(2 * reach + 1);
    double total = 0;
    for (int d = -reach; d <= reach; ++d) total += weights[d + reach] = std::exp(-d * d / (2 * sigma * sigma));
    const Random random = Random(o_.seed).fork(1);
    for (size_t n = 0; n < kSamples; ++n) {
      const int x = static_cast<int>(random.below(width_, 2 * n)),
                y = static_cast<int>(random.below(height_, 2 * n + 1));
      double sum = 0;
      for (int dy = -reach; dy <= reach; ++dy) {
        const size_t row = static_cast<size_t>(std::clamp(y + dy, 0, height_ - 1)) * width_;
        for (int dx = -reach; dx <= reach; ++dx) {
          sum += weights[dy + reach] * weights[dx + reach] * image_[row + std::clamp(x + dx, 0, width_ - 1)];
        }
      }
      const size_t i = static_cast<size_t>(y) * width_ + x;
      verdict.require(i, std::fabs(result[i] - sum / (total * total)) <= kFit);
    }
  }

  const GaussianOptions o_;
  const int width_, height_;
  const size_t pixels_;
  std::vector<float> image_;
  float *source_ = nullptr, *a_ = nullptr, *b_ = nullptr;
};

int main(int argc, char** argv) {
  GaussianOptions job;
  job.iterations = 4;
  Options options("gaussian",
                  "blurs an image by recursive filters along columns and rows.\n"
                  "Device memory: 12 bytes a pixel.",
                  &job,
                  "what is compared with the CPU's result; sample: 256 pixels, with the weighted sum that the filters "
                  "stand for");
  options.number("--width", &job.width, 1, kMaxGridY * kTile, "pixels in a row");
  options.number("--height", &job.height, 1, kMaxGridY * kTile, "rows");
  options.number("--sigma", &job.sigma, 1, 16, "width of the blur: the bell's standard deviation in pixels");
  options.iterations(1LL << 31, "blurs of the same image, of sigma and up to twice as much, of four launches each");
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Gaussian(job).run(); });
}
