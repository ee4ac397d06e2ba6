// bfs: breadth-first search over a random directed graph, level by level, from several sources.
// Two kernels a level: one visits the neighbours of the frontier, one turns what was found into the next frontier,
// counts it, and raises the flag that the host reads to decide whether to go on.
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 256;
constexpr int kUnreached = -1;

// `offsets` has one entry more than there are nodes; a node's edges are the targets between two of them.
struct Graph {
  const unsigned long long* offsets;
  const unsigned* targets;
  size_t nodes;
};
struct Progress {
  int go_on;
  unsigned long long reached;
};

__device__ size_t first_node() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ size_t node_stride() {
  return static_cast<size_t>(gridDim.x) * blockDim.x;
}

// Threads may mark the same neighbour: all of them write the same level.
__global__ void expand(Graph graph, unsigned char* frontier, unsigned char* found, int* levels) {
  for (size_t n = first_node(); n < graph.nodes; n += node_stride()) {
    if (!frontier[n]) continue;
    frontier[n] = 0;
    for (unsigned long long e = graph.offsets[n]; e < graph.offsets[n + 1]; ++e) {
      const unsigned target = graph.targets[e];
      if (levels[target] == kUnreached) found[target] = 1;
    }
  }
}

__global__ void advance(size_t nodes, unsigned char* frontier, unsigned char* found, int* levels, int level,
                        Progress* progress) {
  for (size_t n = first_node(); n < nodes; n += node_stride()) {
    if (!found[n]) continue;
    found[n] = 0;
    frontier[n] = 1;
    levels[n] = level;
    progress->go_on = 1;
    atomicAdd(&progress->reached, 1ULL);
  }
}

struct BfsOptions : CommonOptions {
  long long nodes = 1 << 16;
  long long degree = 8;
  size_t edges() const { return static_cast<size_t>(nodes) * degree; }
};

size_t footprint(const BfsOptions& o) {
  const size_t graph = (o.nodes + 1) * sizeof(unsigned long long) + o.edges() * sizeof(unsigned);
  return graph + o.nodes * (sizeof(int) + 2 * sizeof(unsigned char)) + sizeof(Progress);
}

class Bfs {
 public:
  explicit Bfs(const BfsOptions& options) : o_(options), nodes_(o_.nodes), random_(o_.seed), offsets_(nodes_ + 1) {
    make_offsets();
    const Random random = random_.fork(1);
    targets_.resize(o_.edges());
    for (size_t e = 0; e < targets_.size(); ++e) targets_[e] = static_cast<unsigned>(random.below(nodes_, e));
  }

  int run() {
    allocate();
    Verdict verdict(0);
    for (long long k = 0; k < o_.iterations; ++k) {
      const size_t source = random_.fork(2).below(nodes_, k);
      const unsigned long long reached = search(source);
      wait_and_pause(o_);
      if (o_.check == Check::kFull || (o_.check == Check::kSample && k == 0)) compare(source, reached, verdict);
    }
    release();
    return verdict.report(o_.check, std::to_string(nodes_) + " nodes, " + std::to_string(targets_.size()) + " edges, " +
                                        std::to_string(o_.iterations) + " iterations");
  }

 private:
  // Degrees vary from 1 to 2 * degree - 1 in pairs of equal sum, so the number of edges is known in advance.
  void make_offsets() {
    const size_t degree = o_.degree;
    for (size_t n = 0; n < nodes_; ++n) {
      const size_t spread = n + 1 == nodes_ && n % 2 == 0 ? 0 : random_.below(degree, n / 2);
      offsets_[n + 1] = offsets_[n] + (n % 2 == 0 ? degree + spread : degree - spread);
    }
  }

  void allocate() {
    const size_t offset_bytes = offsets_.size() * sizeof(offsets_[0]),
                 target_bytes = targets_.size() * sizeof(unsigned);
    CUDA_CHECK(cudaMalloc(&device_offsets_, offset_bytes));
    CUDA_CHECK(cudaMalloc(&device_targets_, target_bytes));
    CUDA_CHECK(cudaMalloc(&levels_, nodes_ * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&frontier_, nodes_));
    CUDA_CHECK(cudaMalloc(&found_, nodes_));
    CUDA_CHECK(cudaMalloc(&progress_, sizeof(Progress)));
    CUDA_CHECK(cudaMemcpy(device_offsets_, offsets_.data(), offset_bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_targets_, targets_.data(), target_bytes, cudaMemcpyHostToDevice));
  }

  void release() {
    CUDA_CHECK(cudaFree(device_offsets_));
    CUDA_CHECK(cudaFree(device_targets_));
    CUDA_CHECK(cudaFree(levels_));
    CUDA_CHECK(cudaFree(frontier_));
    CUDA_CHECK(cudaFree(found_));
    CUDA_CHECK(cudaFree(progress_));
  }

  // Returns how many nodes were reached, the source included.
  unsigned long long search(size_t source) {
    start(source);
    const Graph graph{device_offsets_, device_targets_, nodes_};
    const unsigned grid = grid_size(nodes_, kThreads, o_.blocks);
    Progress progress{1, 1};
    for (int level = 1; progress.go_on != 0; ++level) {
      progress.go_on = 0;
      CUDA_CHECK(cudaMemcpy(progress_, &progress, sizeof(progress), cudaMemcpyHostToDevice));
      expand<<<grid, kThreads>>>(graph, frontier_, found_, levels_);
      check_launch("expand");
      advance<<<grid, kThreads>>>(nodes_, frontier_, found_, levels_, level, progress_);
      check_launch("advance");
      CUDA_CHECK(cudaMemcpy(&progress, progress_, sizeof(progress), cudaMemcpyDeviceToHost));
    }
    return progress.reached;
  }

  void start(size_t source) {
    const unsigned char yes = 1;
    const int zero = 0;
    static_assert(kUnreached == -1, "memset fills bytes");
    CUDA_CHECK(cudaMemset(levels_, 0xff, nodes_ * sizeof(int)));
    CUDA_CHECK(cudaMemset(frontier_, 0, nodes_));
    CUDA_CHECK(cudaMemset(found_, 0, nodes_));
    CUDA_CHECK(cudaMemcpy(frontier_ + source, &yes, sizeof(yes), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(levels_ + source, &zero, sizeof(zero), cudaMemcpyHostToDevice));
  }

  void compare(size_t source, unsigned long long reached, Verdict& verdict) const {
    std::vector<int> levels(nodes_), expected(nodes_, kUnreached);
    CUDA_CHECK(cudaMemcpy(levels.data(), levels_, nodes_ * sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<unsigned> queue{static_cast<unsigned>(source)};
    expected[source] = 0;
    for (size_t head = 0; head < queue.size(); ++head) {
      const unsigned node = queue[head];
      for (unsigned long long e = offsets_[node]; e < offsets_[node + 1]; ++e) {
        if (expected[targets_[e]] != kUnreached) continue;
        expected[targets_[e]] = expected[node] + 1;
        queue.push_back(targets_[e]);
      }
    }
    verdict.require(source, reached == queue.size());
    for (size_t n = 0; n < nodes_; ++n) verdict.compare(n, levels[n], expected[n]);
  }

  const BfsOptions o_;
  const size_t nodes_;
  const Random random_;
  std::vector<unsigned long long> offsets_;
  std::vector<unsigned> targets_;
  unsigned long long* device_offsets_ = nullptr;
  unsigned* device_targets_ = nullptr;
  int* levels_ = nullptr;
  unsigned char *frontier_ = nullptr, *found_ = nullptr;
  Progress* progress_ = nullptr;
};

int main(int argc, char** argv) {
  BfsOptions job;
  job.iterations = 4;
  Options options("bfs",
                  "breadth-first searches over a random directed graph, level by level.\n"
                  "Device memory: 14 bytes a node and 4 an edge; there are nodes * degree edges.",
                  &job, "what is compared with the CPU's result; sample: the first search only");
  options.number("--nodes", &job.nodes, 1, 1LL << 31, "nodes of the graph");
  options.number("--degree", &job.degree, 1, 1024, "edges that leave a node, on average");
  options.iterations(1 << 20, "searches, each from another source");
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Bfs(job).run(); });
}
