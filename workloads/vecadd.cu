// vecadd: c = a + b, then c += b again and again; streamed through pinned buffers with several streams and events.
// The vectors stay on the device as a whole, so the footprint follows --size; on the host there are only the pinned
// buffers, whose contents are made and checked while other streams work.
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 256;
constexpr unsigned kMaxValue = 1024;  // whole numbers below this: float sums stay exact over all iterations

__global__ void add(const float* a, const float* b, float* c, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    c[i] = a[i] + b[i];
  }
}

// One atomic a block; `sum` must be zero before.
__global__ void sum_all(const float* values, size_t count, unsigned long long* sum) {
  __shared__ unsigned long long partial[kThreads];
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    mine += static_cast<unsigned long long>(values[i]);
  }
  partial[threadIdx.x] = mine;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(sum, partial[0]);
}

struct VecaddOptions : CommonOptions {
  long long size = 1 << 20;
  long long chunk = 1 << 16;
  long long streams = 3;
};

size_t footprint(const VecaddOptions& options) {
  return 3 * options.size * sizeof(float) + sizeof(unsigned long long);
}

// A stream with its pinned buffers; `first` and `count` say which chunk it has in flight.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  size_t first = 0, count = 0;
};

Lane make_lane(size_t chunk) {
  Lane lane;
  CUDA_CHECK(cudaStreamCreate(&lane.stream));
  CUDA_CHECK(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming));
  for (float** buffer : {&lane.a, &lane.b, &lane.c}) CUDA_CHECK(cudaMallocHost(buffer, chunk * sizeof(float)));
  return lane;
}

void destroy_lane(const Lane& lane) {
  for (float* buffer : {lane.a, lane.b, lane.c}) CUDA_CHECK(cudaFreeHost(buffer));
  CUDA_CHECK(cudaEventDestroy(lane.done));
  CUDA_CHECK(cudaStreamDestroy(lane.stream));
}

class Vecadd {
 public:
  explicit Vecadd(const VecaddOptions& options)
      : options_(options), size_(options.size), random_a_(options.seed), random_b_(random_a_.fork(1)), verdict_(0) {}

  int run() {
    allocate();
    for (size_t k = 0; k * options_.chunk < size_; ++k) {
      Lane& lane = lanes_[k % lanes_.size()];
      collect(lane);
      issue(lane, k * options_.chunk);
    }
    check_sum();
    for (Lane& lane : lanes_) collect(lane);
    release();
    return verdict_.report(options_.check, std::to_string(size_) + " elements, " + std::to_string(options_.iterations) +
                                               " iterations, " + std::to_string(lanes_.size()) + " streams");
  }

 private:
  void allocate() {
    for (float** vector : {&a_, &b_, &c_}) CUDA_CHECK(cudaMalloc(vector, size_ * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&sum_, sizeof(*sum_)));
    CUDA_CHECK(cudaMemset(sum_, 0, sizeof(*sum_)));
    for (long long i = 0; i < options_.streams; ++i) lanes_.push_back(make_lane(options_.chunk));
  }

  void release() {
    for (const Lane& lane : lanes_) destroy_lane(lane);
    for (float* vector : {a_, b_, c_}) CUDA_CHECK(cudaFree(vector));
    CUDA_CHECK(cudaFree(sum_));
  }

  // Everything of one chunk goes into the lane's stream; nothing here waits.
  void issue(Lane& lane, size_t first) {
    lane.first = first;
    lane.count = std::min<size_t>(options_.chunk, size_ - first);
    for (size_t i = 0; i < lane.count; ++i) {
      lane.a[i] = value(random_a_, first + i);
      lane.b[i] = value(random_b_, first + i);
      expected_sum_ += static_cast<unsigned long long>(expected(lane.a[i], lane.b[i]));
    }
    const size_t bytes = lane.count * sizeof(float);
    CUDA_CHECK(cudaMemcpyAsync(a_ + first, lane.a, bytes, cudaMemcpyHostToDevice, lane.stream));
    CUDA_CHECK(cudaMemcpyAsync(b_ + first, lane.b, bytes, cudaMemcpyHostToDevice, lane.stream));
    const unsigned grid = grid_size(lane.count, kThreads, options_.blocks);
    for (long long k = 0; k < options_.iterations; ++k) {
      add<<<grid, kThreads, 0, lane.stream>>>((k == 0 ? a_ : c_) + first, b_ + first, c_ + first, lane.count);
      check_launch("add");
    }
    CUDA_CHECK(cudaMemcpyAsync(lane.c, c_ + first, bytes, cudaMemcpyDeviceToHost, lane.stream));
    CUDA_CHECK(cudaEventRecord(lane.done, lane.stream));
  }

  // Waits for the chunk in flight, if any, and checks it before the buffers are used again.
  void collect(Lane& lane) {
    CUDA_CHECK(cudaEventSynchronize(lane.done));
    const size_t step = options_.check == Check::kSample ? 61 : 1;
    if (options_.check != Check::kNone) {
      for (size_t i = 0; i < lane.count; i += step) {
        const size_t at = lane.first + i;
        verdict_.compare(at, lane.c[i], expected(value(random_a_, at), value(random_b_, at)));
      }
    }
    lane.count = 0;
  }

  // A last kernel over the whole vector, in a stream that waits for all others by their events.
  void check_sum() {
    cudaStream_t last;
    CUDA_CHECK(cudaStreamCreate(&last));
    for (const Lane& lane : lanes_) CUDA_CHECK(cudaStreamWaitEvent(last, lane.done, 0));
    sum_all<<<grid_size(size_, kThreads * 16, options_.blocks), kThreads, 0, last>>>(c_, size_, sum_);
    check_launch("sum_all");
    unsigned long long sum = 0;
    CUDA_CHECK(cudaMemcpyAsync(&sum, sum_, sizeof(sum), cudaMemcpyDeviceToHost, last));
    CUDA_CHECK(cudaStreamSynchronize(last));
    CUDA_CHECK(cudaStreamDestroy(last));
    if (options_.check != Check::kNone) verdict_.require(size_, sum == expected_sum_);
  }

  static float value(const Random& random, size_t index) { return static_cast<float>(random.bits(index) % kMaxValue); }
  float expected(float a, float b) const { return a + static_cast<float>(options_.iterations) * b; }

  const VecaddOptions options_;
  const size_t size_;
  const Random random_a_, random_b_;
  Verdict verdict_;
  std::vector<Lane> lanes_;
  float *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  unsigned long long* sum_ = nullptr;
  unsigned long long expected_sum_ = 0;
};

int main(int argc, char** argv) {
  VecaddOptions job;
  Options options("vecadd",
                  "adds two vectors, chunk by chunk, with pinned buffers, streams and events.\n"
                  "Device memory: 12 bytes an element.",
                  &job, "what is compared with the CPU's result; sample: every 61st element");
  options.number("--size", &job.size, 1, 1LL << 40, "elements of each vector");
  options.number("--chunk", &job.chunk, 1, 1LL << 28, "elements copied and added at a time");
  options.number("--streams", &job.streams, 1, 64, "streams that work at once, each with its own pinned buffers");
  options.iterations(10000, "how often b is added to each chunk");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Vecadd(job).run(); });
}
