// lavamd: particles in a cube of boxes; each feels the particles of its own box and of the up to 26 boxes around it.
// The pair potential is a Gaussian, q * exp(-(a r)^2); energies and forces add up over a sweep of the screening
// parameter a, which lives in constant memory and is set anew by the host before each launch. A block works on one
// box at a time and stages its neighbours, one after the other, in dynamic shared memory. Double precision.
#include "options.h"

using namespace workload;

constexpr int kThreads = 128;
constexpr int kMaxParticles = 1024;  // a box's particles must fit the shared memory that every device grants: 32 KiB

struct Particle {
  double x, y, z, charge;
};
struct Force {
  double x, y, z, energy;
};
struct Box {
  int count;
  int neighbour[27];  // the box itself first
};
struct Screening {
  double a_squared;
};

__constant__ Screening screening;

// Adds to `force` what `other` does to `self`. The same on device and host.
__host__ __device__ inline void interact(const Particle& self, const Particle& other, double a_squared, Force& force) {
  const double dx = self.x - other.x, dy = self.y - other.y, dz = self.z - other.z;
  const double potential = other.charge * exp(-a_squared * (dx * dx + dy * dy + dz * dz));
  const double slope = 2 * a_squared * potential;
  force.energy += potential;
  force.x += slope * dx;
  force.y += slope * dy;
  force.z += slope * dz;
}

__global__ void add_forces(const Box* boxes, const Particle* particles, Force* forces, int box_count, int per_box) {
  extern __shared__ Particle stage[];
  for (int b = blockIdx.x; b < box_count; b += gridDim.x) {
    const Box& box = boxes[b];
    for (int start = 0; start < per_box; start += kThreads) {
      const int i = start + threadIdx.x;
      const size_t at = static_cast<size_t>(b) * per_box + i;
      Particle self{};
      Force force{};
      if (i < per_box) self = particles[at], force = forces[at];
      for (int n = 0; n < box.count; ++n) {
        const Particle* from = particles + static_cast<size_t>(box.neighbour[n]) * per_box;
        for (int j = threadIdx.x; j < per_box; j += kThreads) stage[j] = from[j];
        __syncthreads();
        if (i < per_box) {
          for (int j = 0; j < per_box; ++j) interact(self, stage[j], screening.a_squared, force);
        }
        __syncthreads();
      }
      if (i < per_box) forces[at] = force;
    }
  }
}

struct LavaOptions : CommonOptions {
  long long boxes = 4;
  long long particles = 32;
  long long own = 100;
  size_t box_count() const { return static_cast<size_t>(boxes) * boxes * boxes; }
  // The first boxes of the cube; their forces are this job's, the others' those of jobs beside it.
  size_t own_boxes() const { return std::max<size_t>(box_count() * own / 100, 1); }
  size_t particle_count() const { return box_count() * particles; }
};

size_t footprint(const LavaOptions& o) {
  return o.box_count() * sizeof(Box) + o.particle_count() * (sizeof(Particle) + sizeof(Force));
}

Box make_box(int x, int y, int z, int edge) {
  const auto id = [edge](int bx, int by, int bz) { return (bz * edge + by) * edge + bx; };
  Box box{1, {id(x, y, z)}};
  for (int bz = std::max(z - 1, 0); bz <= std::min(z + 1, edge - 1); ++bz) {
    for (int by = std::max(y - 1, 0); by <= std::min(y + 1, edge - 1); ++by) {
      for (int bx = std::max(x - 1, 0); bx <= std::min(x + 1, edge - 1); ++bx) {
        if (bx != x || by != y || bz != z) box.neighbour[box.count++] = id(bx, by, bz);
      }
    }
  }
  return box;
}

std::vector<Box> make_boxes(int edge) {
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(edge) * edge * edge);
  for (int z = 0; z < edge; ++z) {
    for (int y = 0; y < edge; ++y) {
      for (int x = 0; x < edge; ++x) boxes.push_back(make_box(x, y, z, edge));
    }
  }
  return boxes;
}

// Boxes have side 1.
std::vector<Particle> make_particles(const LavaOptions& o, const Random& random) {
  std::vector<Particle> particles(o.particle_count());
  for (size_t i = 0; i < particles.size(); ++i) {
    const size_t box = i / o.particles, x = box % o.boxes, y = box / o.boxes % o.boxes, z = box / o.boxes / o.boxes;
    particles[i] = {x + double{random.unit(4 * i)}, y + double{random.unit(4 * i + 1)},
                    z + double{random.unit(4 * i + 2)}, 0.1 + random.unit(4 * i + 3)};
  }
  return particles;
}

double screening_of(long long iteration, long long iterations) {
  const double a = 0.5 + static_cast<double>(iteration + 1) / static_cast<double>(iterations);
  return a * a;
}

class Lavamd {
 public:
  explicit Lavamd(const LavaOptions& options)
      : o_(options), boxes_(make_boxes(o_.boxes)), particles_(make_particles(o_, Random(o_.seed))) {}

  int run() {
    const size_t force_bytes = particles_.size() * sizeof(Force);
    Box* boxes;
    Particle* particles;
    Force* forces;
    CUDA_CHECK(cudaMalloc(&boxes, boxes_.size() * sizeof(Box)));
    CUDA_CHECK(cudaMalloc(&particles, particles_.size() * sizeof(Particle)));
    CUDA_CHECK(cudaMalloc(&forces, force_bytes));
    CUDA_CHECK(cudaMemcpy(boxes, boxes_.data(), boxes_.size() * sizeof(Box), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(particles, particles_.data(), particles_.size() * sizeof(Particle), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(forces, 0, force_bytes));
    for (long long k = 0; k < o_.iterations; ++k) {
      const Screening parameters{screening_of(k, o_.iterations)};
      CUDA_CHECK(cudaMemcpyToSymbol(screening, &parameters, sizeof(parameters)));
      add_forces<<<grid_size(o_.own_boxes(), 1, o_.blocks), kThreads, o_.particles * sizeof(Particle)>>>(
          boxes, particles, forces, static_cast<int>(o_.own_boxes()), static_cast<int>(o_.particles));
      check_launch("add_forces");
      wait_and_pause(o_);
    }
    std::vector<Force> result(particles_.size());
    CUDA_CHECK(cudaMemcpy(result.data(), forces, force_bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(boxes));
    CUDA_CHECK(cudaFree(particles));
    CUDA_CHECK(cudaFree(forces));
    return check(result);
  }

 private:
  int check(const std::vector<Force>& result) const {
    constexpr size_t kSamples = 256;
    Verdict verdict(1e-9);
    const Random random = Random(o_.seed).fork(1);
    if (o_.check == Check::kFull) {
      for (size_t i = 0; i < result.size(); ++i) compare(i, result[i], verdict);
    }
    if (o_.check == Check::kSample) {
      // Every other one where forces were added up, which --own may make a small part.
      const size_t own = static_cast<size_t>(o_.own_boxes() * o_.particles);
      for (size_t n = 0; n < kSamples; ++n) {
        const size_t i = random.below(n % 2 == 0 ? own : result.size(), n);
        compare(i, result[i], verdict);
      }
    }
    return verdict.report(o_.check, std::to_string(o_.boxes) + "^3 boxes of " + std::to_string(o_.particles) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  void compare(size_t i, const Force& got, Verdict& verdict) const {
    const Box& box = boxes_[i / o_.particles];
    Force expected{};
    const bool is_own = i / o_.particles < o_.own_boxes();
    for (long long k = 0; is_own && k < o_.iterations; ++k) {
      const double a_squared = screening_of(k, o_.iterations);
      for (int n = 0; n < box.count; ++n) {
        const Particle* others = &particles_[static_cast<size_t>(box.neighbour[n]) * o_.particles];
        for (long long j = 0; j < o_.particles; ++j) interact(particles_[i], others[j], a_squared, expected);
      }
    }
    verdict.compare(i, got.x, expected.x);
    verdict.compare(i, got.y, expected.y);
    verdict.compare(i, got.z, expected.z);
    verdict.compare(i, got.energy, expected.energy);
  }

  const LavaOptions o_;
  const std::vector<Box> boxes_;
  const std::vector<Particle> particles_;
};

int main(int argc, char** argv) {
  LavaOptions job;
  Options options("lavamd",
                  "forces between the particles of neighbouring boxes of a cube.\n"
                  "Device memory: 112 bytes a box and 64 a particle.",
                  &job, "what is compared with the CPU's result; sample: 256 particles");
  options.number("--boxes", &job.boxes, 1, 1024, "boxes along each edge of the cube");
  options.number("--particles", &job.particles, 1, kMaxParticles, "particles in each box");
  options.number("--own", &job.own, 1, 100, "percent of the boxes whose forces this job adds up, as one of several");
  options.iterations(1 << 20, "values of the screening parameter that are swept");
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Lavamd(job).run(); });
}
