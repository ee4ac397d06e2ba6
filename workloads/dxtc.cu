// dxtc: an image is compressed to BC1 (also called DXT1), eight bytes for each square of 4x4 pixels, at high quality.
// A block of threads for each square: its 16 colours are put in order along their principal axis, and every way to cut
// that order into four groups is tried (969), each with the two end colours that suit it best by least squares.
// Castano: High quality DXT compression using CUDA, NVIDIA 2007 (the cluster fit of Brown's squish).
#include "options.h"

using namespace workload;

constexpr int kSide = 4;
constexpr int kPixels = kSide * kSide;
constexpr int kCuts = 969;  // of 0 <= first <= second <= third <= 16
constexpr unsigned kThreads = 64;

// --- Colours -----------------------------------------------------------------------------------------------------

struct Colour {
  float r, g, b;
};

__host__ __device__ inline Colour operator+(Colour x, Colour y) {
  return {x.r + y.r, x.g + y.g, x.b + y.b};
}
__host__ __device__ inline Colour operator-(Colour x, Colour y) {
  return {x.r - y.r, x.g - y.g, x.b - y.b};
}
__host__ __device__ inline Colour operator*(float f, Colour x) {
  return {f * x.r, f * x.g, f * x.b};
}
__host__ __device__ inline float dot(Colour x, Colour y) {
  return x.r * y.r + x.g * y.g + x.b * y.b;
}
__host__ __device__ inline float squared_distance(Colour x, Colour y) {
  return dot(x - y, x - y);
}

__host__ __device__ inline Colour colour_of(uchar4 pixel) {
  return {pixel.x / 255.0f, pixel.y / 255.0f, pixel.z / 255.0f};
}

__host__ __device__ inline float snapped(float value, float steps) {
  return floorf(fminf(fmaxf(value, 0.0f), 1.0f) * steps + 0.5f) / steps;
}

// The nearest colour of 5 bits red, 6 green and 5 blue, as a colour and packed.
__host__ __device__ inline Colour on_grid(Colour x) {
  return {snapped(x.r, 31), snapped(x.g, 63), snapped(x.b, 31)};
}
__host__ __device__ inline unsigned packed(Colour x) {
  const unsigned r = static_cast<unsigned>(x.r * 31 + 0.5f), g = static_cast<unsigned>(x.g * 63 + 0.5f);
  return r << 11 | g << 5 | static_cast<unsigned>(x.b * 31 + 0.5f);
}
__host__ __device__ inline Colour unpacked(unsigned bits) {
  return {(bits >> 11 & 31) / 31.0f, (bits >> 5 & 63) / 63.0f, (bits & 31) / 31.0f};
}

// What the two bits of a pixel choose from: the ends, and the colours a third and two thirds between them.
struct Palette {
  Colour colours[4];

  __host__ __device__ Palette(Colour a, Colour b) : colours{a, b, (1 / 3.0f) * (a + a + b), (1 / 3.0f) * (a + b + b)} {}

  __host__ __device__ unsigned nearest(Colour x) const {
    unsigned best = 0;
    for (unsigned i = 1; i < 4; ++i) {
      if (squared_distance(x, colours[i]) < squared_distance(x, colours[best])) best = i;
    }
    return best;
  }
};

// --- The search --------------------------------------------------------------------------------------------------

// The direction in which the colours differ most: the covariance applied again and again to a start.
__host__ __device__ inline Colour principal_axis(const Colour* colours) {
  Colour mean{0, 0, 0};
  for (int i = 0; i < kPixels; ++i) mean = mean + (1.0f / kPixels) * colours[i];
  Colour red{0, 0, 0}, green{0, 0, 0}, blue{0, 0, 0};
  for (int i = 0; i < kPixels; ++i) {
    const Colour d = colours[i] - mean;
    red = red + d.r * d;
    green = green + d.g * d;
    blue = blue + d.b * d;
  }
  Colour axis{0.9f, 1.0f, 0.7f};
  for (int n = 0; n < 8; ++n) {
    axis = {dot(red, axis), dot(green, axis), dot(blue, axis)};
    const float largest = fmaxf(fabsf(axis.r), fmaxf(fabsf(axis.g), fabsf(axis.b)));
    if (largest < 1e-12f) return {1, 1, 1};  // one colour: any order will do
    axis = (1 / largest) * axis;
  }
  return axis;
}

// Where colour `i` comes in the order along the axis.
__host__ __device__ inline int rank_of(const Colour* colours, Colour axis, int i) {
  const float mine = dot(colours[i], axis);
  int rank = 0;
  for (int j = 0; j < kPixels; ++j) {
    const float other = dot(colours[j], axis);
    if (other < mine || (other == mine && j < i)) ++rank;
  }
  return rank;
}

struct Fit {
  float error;  // without the sum of the colours' squares, which is the same for all cuts
  Colour a, b;
};

constexpr float kNoFit = 1e30f;

// sums[n] is that of the first n colours in order; the groups take a, 2/3 a + 1/3 b, 1/3 a + 2/3 b, b.
__host__ __device__ inline Fit fit_of(const Colour* sums, unsigned cut) {
  const int first = cut & 31, second = cut >> 5 & 31, third = cut >> 10 & 31;
  const float n0 = first, n1 = second - first, n2 = third - second, n3 = kPixels - third;
  const float aa = n0 + (4 * n1 + n2) / 9, bb = n3 + (4 * n2 + n1) / 9, ab = 2 * (n1 + n2) / 9;
  const float determinant = aa * bb - ab * ab;
  if (determinant < 1e-4f) return {kNoFit, {0, 0, 0}, {0, 0, 0}};  // all in one group
  const Colour ax = (1 / 3.0f) * (sums[first] + sums[second] + sums[third]), bx = sums[kPixels] - ax;
  const Colour a = on_grid((1 / determinant) * (bb * ax - ab * bx));
  const Colour b = on_grid((1 / determinant) * (aa * bx - ab * ax));
  return {aa * dot(a, a) + bb * dot(b, b) + 2 * (ab * dot(a, b) - dot(a, ax) - dot(b, bx)), a, b};
}

__constant__ unsigned short cuts[kCuts];

// out[n].x holds the ends, the greater one in the lower half; .y two bits for each pixel of the square, row by row.
__global__ void compress(const uchar4* image, uint2* out, int width, int height) {
  __shared__ Colour colours[kPixels], ordered[kPixels], sums[kPixels + 1];
  __shared__ Fit fits[kThreads];
  __shared__ unsigned choice;
  const int across = (width + kSide - 1) / kSide, t = threadIdx.x;
  const int squares = across * ((height + kSide - 1) / kSide);
  for (int square = blockIdx.x; square < squares; square += gridDim.x) {
    if (t < kPixels) {
      const int x = min(square % across * kSide + t % kSide, width - 1);
      const int y = min(square / across * kSide + t / kSide, height - 1);
      colours[t] = colour_of(image[static_cast<size_t>(y) * width + x]);
    }
    __syncthreads();
    if (t < kPixels) ordered[rank_of(colours, principal_axis(colours), t)] = colours[t];
    __syncthreads();
    if (t <= kPixels) {
      Colour sum{0, 0, 0};
      for (int i = 0; i < t; ++i) sum = sum + ordered[i];
      sums[t] = sum;
    }
    __syncthreads();
    Fit best{kNoFit, {0, 0, 0}, {0, 0, 0}};
    for (int n = t; n < kCuts; n += kThreads) {
      const Fit fit = fit_of(sums, cuts[n]);
      if (fit.error < best.error) best = fit;
    }
    fits[t] = best;
    if (t == 0) choice = 0;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (t < half && fits[t + half].error < fits[t].error) fits[t] = fits[t + half];
    }
    __syncthreads();
    // The order of the ends says that there are four colours; with equal ends there is one, the first.
    const unsigned a = packed(fits[0].a), b = packed(fits[0].b), high = max(a, b), low = min(a, b);
    const Palette palette(unpacked(high), unpacked(low));
    if (t < kPixels && high > low) atomicOr(&choice, palette.nearest(colours[t]) << (2 * t));
    __syncthreads();
    if (t == 0) out[square] = make_uint2(low << 16 | high, choice);
    __syncthreads();
  }
}

// --- The job -----------------------------------------------------------------------------------------------------

struct DxtcOptions : CommonOptions {
  long long width = 64, height = 64;
  size_t squares() const { return ceil_div(width, kSide) * ceil_div(height, kSide); }
};

size_t footprint(const DxtcOptions& o) {
  return o.width * o.height * sizeof(uchar4) + o.squares() * sizeof(uint2);
}

std::vector<unsigned short> make_cuts() {
  std::vector<unsigned short> all;
  for (unsigned third = 0; third <= kPixels; ++third) {
    for (unsigned second = 0; second <= third; ++second) {
      for (unsigned first = 0; first <= second; ++first) {
        all.push_back(static_cast<unsigned short>(first | second << 5 | third << 10));
      }
    }
  }
  return all;
}

// Waves of colour under noise: squares with one clear direction, and some without.
std::vector<uchar4> make_image(const DxtcOptions& o) {
  const Random random(o.seed);
  std::vector<uchar4> image(o.width * o.height);
  for (size_t i = 0; i < image.size(); ++i) {
    const float x = static_cast<float>(i % o.width), y = static_cast<float>(i / o.width);
    const auto level = [&](float wave, size_t stream) {
      const float value = 128 + 90 * std::sin(wave) + 30 * random.symmetric(3 * i + stream);
      return static_cast<unsigned char>(std::min(std::max(value, 0.0f), 255.0f));
    };
    image[i] = make_uchar4(level(x * 0.13f, 0), level(y * 0.09f + x * 0.05f, 1), level(y * 0.17f, 2), 255);
  }
  return image;
}

class Dxtc {
 public:
  explicit Dxtc(const DxtcOptions& options) : o_(options), cuts_(make_cuts()), image_(make_image(o_)) {}

  int run() {
    uchar4* image;
    uint2* compressed;
    std::vector<uint2> result(o_.squares());
    CUDA_CHECK(cudaMalloc(&image, image_.size() * sizeof(uchar4)));
    CUDA_CHECK(cudaMalloc(&compressed, result.size() * sizeof(uint2)));
    CUDA_CHECK(cudaMemcpy(image, image_.data(), image_.size() * sizeof(uchar4), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpyToSymbol(cuts, cuts_.data(), sizeof(cuts)));
    const unsigned grid = grid_size(result.size(), 1, o_.blocks);
    for (long long k = 0; k < o_.iterations; ++k) {
      compress<<<grid, kThreads>>>(image, compressed, static_cast<int>(o_.width), static_cast<int>(o_.height));
      check_launch("compress");
    }
    CUDA_CHECK(cudaMemcpy(result.data(), compressed, result.size() * sizeof(uint2), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(image));
    CUDA_CHECK(cudaFree(compressed));
    return check(result);
  }

 private:
  struct Square {
    Colour colours[kPixels];
  };

  Square square_at(size_t n) const {
    Square square;
    const size_t across = ceil_div(o_.width, kSide);
    for (size_t i = 0; i < kPixels; ++i) {
      const size_t x = std::min<size_t>(n % across * kSide + i % kSide, o_.width - 1);
      const size_t y = std::min<size_t>(n / across * kSide + i / kSide, o_.height - 1);
      square.colours[i] = colour_of(image_[y * o_.width + x]);
    }
    return square;
  }

  // What a decoder makes of each square is compared with the best that the CPU finds (roundings may choose another
  // order or cut, which must be nearly as good), and altogether with a simple compressor: that of the colours' box.
  int check(const std::vector<uint2>& result) const {
    constexpr size_t kSamples = 64;
    Verdict verdict(0.05, 0.02);
    Errors total;
    if (o_.check == Check::kFull) {
      for (size_t n = 0; n < result.size(); ++n) check_square(n, result[n], verdict, total);
    } else if (o_.check == Check::kSample) {
      const Random random = Random(o_.seed).fork(1);
      for (size_t s = 0; s < kSamples; ++s) {
        const size_t n = random.below(result.size(), s);
        check_square(n, result[n], verdict, total);
      }
    }
    if (o_.check != Check::kNone) {
      verdict.require(0, std::fabs(total.device - total.best) <= 1e-3 * total.best && total.device <= total.simple);
    }
    return verdict.report(o_.check, std::to_string(o_.width) + "x" + std::to_string(o_.height) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  struct Errors {
    double device = 0, best = 0, simple = 0;
  };

  void check_square(size_t n, uint2 bits, Verdict& verdict, Errors& total) const {
    const Square square = square_at(n);
    const unsigned high = bits.x & 0xffff, low = bits.x >> 16;
    verdict.require(n, high > low || (high == low && bits.y == 0));
    const double device = error_of(square, Palette(unpacked(high), unpacked(low)), &bits.y);
    const double best = best_error(square);
    verdict.compare(n, device, best);
    total.device += device;
    total.best += best;
    total.simple += simple_error(square);
  }

  // Squared distances of the pixels to what they become; without `choices`, to their nearest colours.
  static double error_of(const Square& square, const Palette& palette, const unsigned* choices = nullptr) {
    double error = 0;
    for (int i = 0; i < kPixels; ++i) {
      const Colour x = square.colours[i];
      const unsigned choice = choices != nullptr ? *choices >> (2 * i) & 3 : palette.nearest(x);
      error += squared_distance(x, palette.colours[choice]);
    }
    return error;
  }

  double best_error(const Square& square) const {
    Colour ordered[kPixels], sums[kPixels + 1] = {};
    const Colour axis = principal_axis(square.colours);
    for (int i = 0; i < kPixels; ++i) ordered[rank_of(square.colours, axis, i)] = square.colours[i];
    for (int i = 0; i < kPixels; ++i) sums[i + 1] = sums[i] + ordered[i];
    Fit best{kNoFit, {0, 0, 0}, {0, 0, 0}};
    for (const unsigned short cut : cuts_) {
      const Fit fit = fit_of(sums, cut);
      if (fit.error < best.error) best = fit;
    }
    return error_of(square, Palette(best.a, best.b));
  }

  static double simple_error(const Square& square) {
    Colour least{1, 1, 1}, greatest{0, 0, 0};
    for (const Colour& x : square.colours) {
      least = {std::min(least.r, x.r), std::min(least.g, x.g), std::min(least.b, x.b)};
      greatest = {std::max(greatest.r, x.r), std::max(greatest.g, x.g), std::max(greatest.b, x.b)};
    }
    return error_of(square, Palette(on_grid(greatest), on_grid(least)));
  }

  const DxtcOptions o_;
  const std::vector<unsigned short> cuts_;
  const std::vector<uchar4> image_;
};

int main(int argc, char** argv) {
  DxtcOptions job;
  Options options("dxtc",
                  "compresses an image to BC1 (DXT1), trying all cuts of each 4x4 pixels' colours.\n"
                  "Device memory: 4 bytes a pixel and 8 a square of 4x4.",
                  &job, "which squares are decoded and compared with the CPU's best; sample: 64");
  options.number("--width", &job.width, 1, 1 << 15, "pixels in a row");
  options.number("--height", &job.height, 1, 1 << 15, "rows");
  options.iterations(1LL << 31, "launches, each of the whole image");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Dxtc(job).run(); });
}
