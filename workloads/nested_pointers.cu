// nested_pointers: addresses of device memory that are themselves stored in device memory.
// Rows are allocated one by one; the host uploads a table of their addresses. The device then builds linked lists
// whose nodes point to each other and to rows. Kernels change the rows through the table and read them through the
// lists. Neither the rows nor the nodes' targets are visible among those kernels' parameters.
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 128;
constexpr unsigned kFactor = 1664525;  // of a linear congruential step; arithmetic is modulo 2^32

struct Node {
  Node* next;
  const unsigned* row;
};

// Each value of row r becomes value * kFactor + r. A block works on one row at a time.
__global__ void update_rows(unsigned* const* rows, size_t count, size_t length) {
  for (size_t r = blockIdx.x; r < count; r += gridDim.x) {
    unsigned* row = rows[r];
    for (size_t i = threadIdx.x; i < length; i += blockDim.x) row[i] = row[i] * kFactor + static_cast<unsigned>(r);
  }
}

// Node order[k] is followed by node order[k + 1], except at the end of each chain; node n belongs to row n % count.
__global__ void link_nodes(Node* pool, const unsigned* order, size_t nodes, size_t chain_length, unsigned* const* rows,
                           size_t count, const Node** heads) {
  const size_t k = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= nodes) return;
  Node* node = pool + order[k];
  const bool last = (k + 1) % chain_length == 0;
  node->next = last ? nullptr : pool + order[k + 1];
  node->row = rows[order[k] % count];
  if (k % chain_length == 0) heads[k / chain_length] = node;
}

// Thread c follows chain c and adds one value of each row that it meets.
__global__ void walk_chains(const Node* const* heads, size_t chains, size_t length, unsigned long long* sums) {
  const size_t c = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= chains) return;
  size_t step = 0;
  for (const Node* node = heads[c]; node != nullptr; node = node->next) sums[c] += node->row[(c + step++) % length];
}

struct PointerOptions : CommonOptions {
  long long rows = 64, length = 4096;
  long long chains = 512, chain_length = 64;
  size_t nodes() const { return static_cast<size_t>(chains) * chain_length; }
};

size_t footprint(const PointerOptions& o) {
  const size_t row_bytes = o.rows * (o.length * sizeof(unsigned) + sizeof(unsigned*));
  return row_bytes + o.nodes() * (sizeof(Node) + sizeof(unsigned)) +
         o.chains * (sizeof(Node*) + sizeof(unsigned long long));
}

std::vector<unsigned> make_order(size_t count, const Random& random) {
  std::vector<unsigned> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<unsigned>(i);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

class NestedPointers {
 public:
  explicit NestedPointers(const PointerOptions& options)
      : o_(options), order_(make_order(o_.nodes(), Random(o_.seed).fork(1))), expected_sums_(o_.chains) {
    const Random random(o_.seed);
    for (long long r = 0; r < o_.rows; ++r) {
      expected_.emplace_back(o_.length);
      for (long long i = 0; i < o_.length; ++i) {
        expected_[r][i] = static_cast<unsigned>(random.bits(r * o_.length + i));
      }
    }
  }

  int run() {
    upload();
    const size_t nodes = o_.nodes();
    link_nodes<<<grid_size(nodes, kThreads, 0), kThreads>>>(pool_, device_order_, nodes, o_.chain_length, table_,
                                                            o_.rows, heads_);
    check_launch("link_nodes");
    for (long long k = 0; k < o_.iterations; ++k) {
      update_rows<<<grid_size(o_.rows, 1, o_.blocks), kThreads>>>(table_, o_.rows, o_.length);
      check_launch("update_rows");
      walk_chains<<<grid_size(o_.chains, kThreads, 0), kThreads>>>(heads_, o_.chains, o_.length, sums_);
      check_launch("walk_chains");
    }
    CUDA_CHECK(cudaDeviceSynchronize());

    Verdict verdict(0);
    if (o_.check != Check::kNone) {
      compute_reference();
      check_links(verdict);
      check_sums(verdict);
      check_rows(verdict);
    }
    release();
    return verdict.report(o_.check, std::to_string(o_.rows) + " rows of " + std::to_string(o_.length) + ", " +
                                        std::to_string(o_.chains) + " chains of " + std::to_string(o_.chain_length) +
                                        ", " + std::to_string(o_.iterations) + " iterations");
  }

 private:
  void upload() {
    const size_t row_bytes = o_.length * sizeof(unsigned);
    for (const std::vector<unsigned>& row : expected_) {
      unsigned* device;
      CUDA_CHECK(cudaMalloc(&device, row_bytes));
      CUDA_CHECK(cudaMemcpy(device, row.data(), row_bytes, cudaMemcpyHostToDevice));
      rows_.push_back(device);
    }
    CUDA_CHECK(cudaMalloc(&table_, rows_.size() * sizeof(unsigned*)));
    CUDA_CHECK(cudaMemcpy(table_, rows_.data(), rows_.size() * sizeof(unsigned*), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMalloc(&pool_, o_.nodes() * sizeof(Node)));
    CUDA_CHECK(cudaMalloc(&device_order_, order_.size() * sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(device_order_, order_.data(), order_.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMalloc(&heads_, o_.chains * sizeof(Node*)));
    CUDA_CHECK(cudaMalloc(&sums_, o_.chains * sizeof(unsigned long long)));
    CUDA_CHECK(cudaMemset(sums_, 0, o_.chains * sizeof(unsigned long long)));
  }

  void release() {
    for (unsigned* row : rows_) CUDA_CHECK(cudaFree(row));
    CUDA_CHECK(cudaFree(table_));
    CUDA_CHECK(cudaFree(pool_));
    CUDA_CHECK(cudaFree(device_order_));
    CUDA_CHECK(cudaFree(heads_));
    CUDA_CHECK(cudaFree(sums_));
  }

  void compute_reference() {
    for (long long k = 0; k < o_.iterations; ++k) {
      for (size_t r = 0; r < expected_.size(); ++r) {
        for (unsigned& value : expected_[r]) value = value * kFactor + static_cast<unsigned>(r);
      }
      for (size_t c = 0; c < expected_sums_.size(); ++c) {
        for (long long step = 0; step < o_.chain_length; ++step) {
          const size_t row = order_[c * o_.chain_length + step] % expected_.size();
          expected_sums_[c] += expected_[row][(c + step) % o_.length];
        }
      }
    }
  }

  // The addresses that the device wrote must be those that the host can compute: memory never moved.
  void check_links(Verdict& verdict) const {
    std::vector<Node> nodes(o_.nodes());
    CUDA_CHECK(cudaMemcpy(nodes.data(), pool_, nodes.size() * sizeof(Node), cudaMemcpyDeviceToHost));
    for (size_t k = 0; k < nodes.size(); ++k) {
      const bool last = (k + 1) % o_.chain_length == 0;
      const Node& node = nodes[order_[k]];
      verdict.require(k, node.next == (last ? nullptr : pool_ + order_[k + 1]));
      verdict.require(k, node.row == rows_[order_[k] % rows_.size()]);
    }
  }

  void check_sums(Verdict& verdict) const {
    std::vector<unsigned long long> sums(expected_sums_.size());
    CUDA_CHECK(cudaMemcpy(sums.data(), sums_, sums.size() * sizeof(sums[0]), cudaMemcpyDeviceToHost));
    for (size_t c = 0; c < sums.size(); ++c) verdict.require(c, sums[c] == expected_sums_[c]);
  }

  void check_rows(Verdict& verdict) const {
    std::vector<unsigned> row(o_.length);
    const size_t step = o_.check == Check::kSample ? 16 : 1;
    for (size_t r = 0; r < rows_.size(); r += step) {
      CUDA_CHECK(cudaMemcpy(row.data(), rows_[r], row.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < row.size(); ++i) verdict.compare(r * row.size() + i, row[i], expected_[r][i]);
    }
  }

  const PointerOptions o_;
  const std::vector<unsigned> order_;
  std::vector<std::vector<unsigned>> expected_;
  std::vector<unsigned long long> expected_sums_;
  std::vector<unsigned*> rows_;
  unsigned** table_ = nullptr;
  Node* pool_ = nullptr;
  unsigned* device_order_ = nullptr;
  const Node** heads_ = nullptr;
  unsigned long long* sums_ = nullptr;
};

int main(int argc, char** argv) {
  PointerOptions job;
  job.iterations = 8;
  Options options("nested_pointers",
                  "follows pointers that are stored in device memory: a table of rows, and linked lists.\n"
                  "Device memory: 4 bytes a value, 8 a row, 20 a node, 16 a chain.",
                  &job, "what is compared with the CPU's result; sample: every 16th row, and all lists");
  options.number("--rows", &job.rows, 1, 1 << 20, "rows, each a cudaMalloc of its own");
  options.number("--length", &job.length, 1, 1LL << 32, "values in a row");
  options.number("--chains", &job.chains, 1, 1 << 20, "linked lists");
  options.number("--chain-length", &job.chain_length, 1, 1 << 11, "nodes in each list");
  options.iterations(1 << 20, "how often rows are changed and lists walked");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return NestedPointers(job).run(); });
}
