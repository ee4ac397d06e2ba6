// Managed memory in many hands: each case says what went wrong, or nothing.
//
//   managed [CASE | -CASE]     all, one, or all but one
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

#define CHECK(...)                                                                                               \
  do {                                                                                                           \
    if (!(__VA_ARGS__)) {                                                                                        \
      std::printf("line %d: not so: %s (%s)\n", __LINE__, #__VA_ARGS__, cudaGetErrorString(cudaGetLastError())); \
      return false;                                                                                              \
    }                                                                                                            \
  } while (0)
#define CUDA(...) CHECK((__VA_ARGS__) == cudaSuccess)

__global__ void add(unsigned* to, size_t count, unsigned value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) to[i] += value;
}
__global__ void add_at(unsigned* to, size_t index, unsigned value) {
  to[index] += value;
}
__global__ void sum_into(const unsigned* a, const unsigned* b, unsigned* to, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    to[i] = a[i] + b[i];
}

constexpr size_t kMebi = 1 << 20;
constexpr size_t kWords = 3 * kMebi / 4 + 12345;  // no multiple of anything

unsigned* allocate(size_t words) {
  unsigned* memory = nullptr;
  return cudaMallocManaged(&memory, words * sizeof(unsigned)) == cudaSuccess ? memory : nullptr;
}
void run_add(unsigned* to, size_t count, unsigned value, cudaStream_t stream = nullptr) {
  add<<<16, 128, 0, stream>>>(to, count, value);
}
bool is_sequence(const unsigned* memory, size_t count, unsigned first) {
  for (size_t i = 0; i < count; ++i) {
    if (memory[i] == first + i) continue;
    std::printf("[%zu] is %u, not %zu\n", i, memory[i], first + i);
    return false;
  }
  return true;
}
void fill(unsigned* memory, size_t count, unsigned first) {
  for (size_t i = 0; i < count; ++i) memory[i] = first + static_cast<unsigned>(i);
}

bool there_and_back() {
  unsigned* const memory = allocate(kWords);
  CHECK(memory);
  fill(memory, kWords, 0);
  for (unsigned round = 1; round <= 3; ++round) {
    run_add(memory, kWords, 5);
    CUDA(cudaDeviceSynchronize());
    CHECK(is_sequence(memory, kWords, 5 * round));
  }
  CUDA(cudaFree(memory));
  return true;
}

bool starts_with_zeros() {
  unsigned* const memory = allocate(kWords);
  CHECK(memory);
  run_add(memory, kWords, 0);
  CUDA(cudaDeviceSynchronize());
  CHECK(std::all_of(memory, memory + kWords, [](unsigned value) { return value == 0; }));
  CUDA(cudaFree(memory));
  unsigned* const again = allocate(kWords);
  CHECK(again[0] == 0 && again[kWords - 1] == 0);
  CUDA(cudaFree(again));
  return true;
}

bool partial_writes() {
  unsigned* const memory = allocate(kWords);
  fill(memory, kWords, 0);
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  for (size_t i = 0; i < kWords; i += 9973) memory[i] += 100;
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  for (size_t i = 0; i < kWords; ++i) CHECK(memory[i] == i + 2 + (i % 9973 == 0 ? 100 : 0));
  CUDA(cudaFree(memory));
  return true;
}

bool one_word_an_iteration() {
  unsigned* const memory = allocate(kWords);
  fill(memory, kWords, 0);
  for (unsigned i = 0; i < 50; ++i) {
    add_at<<<1, 1>>>(memory, 77, 2);
    CUDA(cudaDeviceSynchronize());
    CHECK(memory[77] == 77 + 2 * (i + 1) + i);
    ++memory[77];
  }
  CHECK(memory[76] == 76 && memory[kWords - 1] == kWords - 1);
  CUDA(cudaFree(memory));
  return true;
}

bool several_buffers() {
  unsigned *a = allocate(kWords), *b = allocate(100), *to = allocate(kWords);
  std::vector<unsigned*> small;
  for (int i = 0; i < 200; ++i) small.push_back(allocate(17 + i));
  fill(a, kWords, 0);
  fill(b, 100, 1000);
  for (size_t i = 0; i < small.size(); ++i) fill(small[i], 17 + i, static_cast<unsigned>(i));
  sum_into<<<4, 64>>>(a, b, to, 100);
  for (size_t i = 0; i < small.size(); ++i) run_add(small[i], 17 + i, 3);
  CUDA(cudaDeviceSynchronize());
  for (size_t i = 0; i < 100; ++i) CHECK(to[i] == 1000 + 2 * i);
  for (size_t i = 0; i < small.size(); ++i) CHECK(is_sequence(small[i], 17 + i, static_cast<unsigned>(i) + 3));
  for (unsigned* each : small) CUDA(cudaFree(each));
  CUDA(cudaFree(to));
  CUDA(cudaFree(b));
  CUDA(cudaFree(a));
  return true;
}

bool prefetch_and_advice() {
  unsigned* const memory = allocate(kWords);
  const size_t bytes = kWords * sizeof(unsigned);
  const cudaMemLocation device{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};
  fill(memory, kWords, 0);
  CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, device));
  CUDA(cudaMemAdvise(memory, bytes, cudaMemAdviseSetReadMostly, device));
  CUDA(cudaMemPrefetchAsync(memory, bytes, device, 0, nullptr));
  CHECK(memory[5] == 5);
  run_add(memory, kWords, 1);
  CUDA(cudaMemPrefetchAsync(memory, bytes, host, 0, nullptr));
  CUDA(cudaDeviceSynchronize());
  CHECK(is_sequence(memory, kWords, 1));
  memory[3] = 9;
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(memory[3] == 10 && memory[4] == 6);
  CUDA(cudaFree(memory));
  return true;
}

bool copies_and_fills() {
  unsigned *memory = allocate(kWords), *device = nullptr;
  const size_t bytes = kWords * sizeof(unsigned);
  std::vector<unsigned> plain(kWords);
  CUDA(cudaMalloc(&device, bytes));
  fill(memory, kWords, 0);
  CUDA(cudaMemcpy(device, memory, bytes, cudaMemcpyHostToDevice));
  CHECK(memory[1] == 1);  // the host may still read it
  memory[1] = 100;
  CUDA(cudaMemcpy(plain.data(), device, bytes, cudaMemcpyDeviceToHost));
  CHECK(is_sequence(plain.data(), kWords, 0));
  CUDA(cudaMemcpy(plain.data(), memory, bytes, cudaMemcpyHostToHost));
  CHECK(plain[1] == 100 && plain[2] == 2);
  CUDA(cudaMemcpy(memory, device, bytes, cudaMemcpyDefault));
  CHECK(is_sequence(memory, kWords, 0));
  memory[0] = 7;
  CUDA(cudaMemset(memory + 1000, 0, 40));
  CHECK(memory[0] == 7 && memory[999] == 999 && memory[1000] == 0 && memory[1009] == 0 && memory[1010] == 1010);
  CUDA(cudaMemcpy(memory + 10, plain.data(), 40, cudaMemcpyDefault));
  CHECK(memory[11] == 100 && memory[9] == 9 && memory[20] == 20);
  CUDA(cudaMemcpy2D(memory, 4096, plain.data(), 16, 16, 100, cudaMemcpyHostToDevice));
  CHECK(memory[1] == 100 && memory[1024] == plain[4] && memory[1028] == 1028);
  CUDA(cudaFree(device));
  CUDA(cudaFree(memory));
  return true;
}

bool what_it_is() {
  unsigned* const memory = allocate(kWords);
  cudaPointerAttributes is;
  CUDA(cudaPointerGetAttributes(&is, memory + 3));
  CHECK(is.type == cudaMemoryTypeManaged && is.devicePointer == memory + 3 && is.hostPointer == memory + 3);
  CHECK(is.device == 0);
  int concurrent = -1, managed = 0;
  cudaDeviceProp properties;
  CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  CUDA(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
  CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK(managed == 1 && properties.concurrentManagedAccess == concurrent);
  std::printf("concurrentManagedAccess %d\n", concurrent);
  CHECK(cudaFree(memory + 1) == cudaErrorInvalidValue && cudaGetLastError() != cudaSuccess);
  CUDA(cudaFree(memory));
  CUDA(cudaPointerGetAttributes(&is, memory));
  CHECK(is.type == cudaMemoryTypeUnregistered);
  return true;
}

bool many_threads() {
  constexpr size_t kEach = 200'000, kThreads = 8;
  unsigned* const memory = allocate(kEach * kThreads);
  for (unsigned round = 1; round <= 3; ++round) {
    std::atomic<bool> right{true};
    std::vector<std::thread> threads;
    for (size_t n = 0; n < kThreads; ++n) {
      threads.emplace_back([&, n] {
        for (size_t i = n; i < kEach * kThreads; i += kThreads) {
          if (memory[i] != (round - 1) * 2) right = false;
          ++memory[i];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right);
    run_add(memory, kEach * kThreads, 1);
    CUDA(cudaDeviceSynchronize());
  }
  CUDA(cudaFree(memory));
  return true;
}

// Arguments of launches that lie in managed memory themselves.
bool arguments_in_it() {
  struct Arguments {
    unsigned* to;
    size_t count;
    unsigned value;
  };
  unsigned* const memory = allocate(kWords);
  Arguments* arguments = nullptr;
  CUDA(cudaMallocManaged(&arguments, sizeof *arguments));
  fill(memory, kWords, 0);
  for (unsigned round = 1; round <= 3; ++round) {
    *arguments = {memory, kWords, round};
    void* pointers[] = {&arguments->to, &arguments->count, &arguments->value};
    CUDA(cudaLaunchKernel(add, dim3(4), dim3(64), pointers, 0, nullptr));
    CUDA(cudaLaunchKernel(add, dim3(4), dim3(64), pointers, 0, nullptr));
    CUDA(cudaDeviceSynchronize());
  }
  CHECK(is_sequence(memory, kWords, 12));
  CUDA(cudaFree(arguments));
  CUDA(cudaFree(memory));
  return true;
}

bool host_functions() {
  struct Call {
    unsigned* memory;
    std::vector<unsigned> seen;
  } call{allocate(kWords), {}};
  fill(call.memory, kWords, 0);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  for (int round = 0; round < 5; ++round) {
    run_add(call.memory, kWords, 1, stream);
    CUDA(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          Call& mine = *static_cast<Call*>(data);
          mine.seen.push_back(mine.memory[50]);
          mine.memory[50] += 1000;
        },
        &call));
  }
  run_add(call.memory, kWords, 1, stream);
  CUDA(cudaStreamSynchronize(stream));
  CHECK(call.memory[50] == 5056 && call.memory[51] == 57 && call.memory[kWords - 1] == kWords + 5);
  CHECK(call.seen == std::vector<unsigned>{51, 1052, 2053, 3054, 4055});
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(call.memory));
  return true;
}

bool streams_and_graphs() {
  unsigned *a = allocate(kWords), *b = allocate(kWords);
  cudaStream_t one, two;
  CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  fill(a, kWords, 0);
  fill(b, kWords, 10);
  run_add(a, kWords, 1, one);
  run_add(b, kWords, 1, two);
  CUDA(cudaDeviceSynchronize());
  CHECK(is_sequence(a, kWords, 1) && is_sequence(b, kWords, 11));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  run_add(a, kWords, 1, one);
  run_add(b, kWords, 1, one);
  CUDA(cudaStreamEndCapture(one, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (unsigned round = 1; round <= 3; ++round) {
    a[7] += 100;
    CUDA(cudaGraphLaunch(exec, one));
    CUDA(cudaStreamSynchronize(one));
    CHECK(a[7] == 8 + round * 101 && a[8] == 9 + round && b[9] == 20 + round);
  }
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(one));
  CUDA(cudaStreamDestroy(two));
  CUDA(cudaFree(a));
  CUDA(cudaFree(b));
  return true;
}

bool files() {
  unsigned* const memory = allocate(kWords);
  const size_t bytes = kWords * sizeof(unsigned);
  char path[] = "/tmp/heddle-managed-XXXXXX";
  const int file = ::mkstemp(path);
  CHECK(file >= 0);
  ::unlink(path);
  fill(memory, kWords, 0);
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(::write(file, memory, bytes) == static_cast<ssize_t>(bytes));
  CUDA(cudaMemset(memory, 0, bytes));
  CHECK(::pread(file, memory, bytes, 0) == static_cast<ssize_t>(bytes));
  CHECK(is_sequence(memory, kWords, 1));
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  FILE* const stream = ::fdopen(file, "r+");
  std::rewind(stream);
  CHECK(std::fwrite(memory, 1, bytes, stream) == bytes && std::fflush(stream) == 0);
  CUDA(cudaMemset(memory, 0, bytes));
  std::rewind(stream);
  CHECK(std::fread(memory, sizeof *memory, kWords, stream) == kWords);
  CHECK(is_sequence(memory, kWords, 2));
  std::fclose(stream);
  CUDA(cudaFree(memory));
  return true;
}

bool blocked_signals() {
  unsigned* const memory = allocate(kWords);
  sigset_t all;
  sigfillset(&all);
  bool right = false;
  std::thread thread([&] {
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    fill(memory, kWords, 0);
    run_add(memory, kWords, 1);
    right = cudaDeviceSynchronize() == cudaSuccess && is_sequence(memory, kWords, 1);
  });
  thread.join();
  CHECK(right);
  CUDA(cudaFree(memory));
  return true;
}

sigjmp_buf back;
std::atomic<int> handled{0};
void jump_back(int) {
  ++handled;
  siglongjmp(back, 1);
}
volatile int* const nowhere = nullptr;

// Handlers of the program's, installed before and after the memory is in use, get what is theirs.
bool own_handler() {
  handled = 0;
  unsigned* const memory = allocate(kWords);
  struct sigaction action {};
  action.sa_handler = jump_back;
  CHECK(::sigaction(SIGSEGV, &action, nullptr) == 0);
  for (int round = 1; round <= 3; ++round) {
    fill(memory, kWords, 0);
    run_add(memory, kWords, 1);
    CUDA(cudaDeviceSynchronize());
    CHECK(is_sequence(memory, kWords, 1));
    if (sigsetjmp(back, 1) == 0) *nowhere = 1;
    CHECK(handled == round);
  }
  ::signal(SIGSEGV, SIG_DFL);
  CUDA(cudaFree(memory));
  return true;
}

// A wild pointer ends a child as it would, and so does a touch of what the device has.
bool ends_as_it_would() {
  unsigned* const memory = allocate(kWords);
  memory[0] = 1;
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  int concurrent = 0;
  CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  for (const bool wild : {true, false}) {
    if (!wild && concurrent) continue;  // it is the parent's memory as well
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      if (wild) *nowhere = 1;
      *static_cast<volatile unsigned*>(memory + kWords / 2) = 1;
      ::_exit(0);
    }
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  }
  CHECK(memory[0] == 2);
  CUDA(cudaFree(memory));
  return true;
}

// What the host wrote is on its way to the device of a task that has not begun. By its name it runs first.
bool a_push_before_the_first_launch() {
  unsigned* const memory = allocate(kWords);
  CHECK(memory);
  memory[1] = 1;
  CUDA(cudaMemset(memory + 4, 0, 8));
  CUDA(cudaFree(memory));
  unsigned* const next = allocate(kWords);
  CHECK(next);
  fill(next, kWords, 0);
  run_add(next, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(is_sequence(next, kWords, 1));
  CUDA(cudaFree(next));
  return true;
}

// The host touches one buffer while a kernel works on another one and a host function comes behind it.
bool beside_a_host_function() {
  unsigned* const memory = allocate(kWords);
  unsigned* const other = allocate(kWords);
  CHECK(memory && other);
  fill(memory, kWords, 0);
  for (unsigned round = 1; round <= 5; ++round) {
    run_add(other, kWords, 1);
    CUDA(cudaLaunchHostFunc(
        nullptr, [](void* data) { static_cast<unsigned*>(data)[50] += 1; }, memory));
    memory[51] = 1000 * round;
    CUDA(cudaDeviceSynchronize());
    run_add(memory, kWords, 1);
    CUDA(cudaDeviceSynchronize());
    CHECK(memory[50] == 50 + 2 * round);
    CHECK(memory[51] == 1000 * round + 1);
    CHECK(memory[kWords - 1] == kWords - 1 + round && other[7] == round);
  }
  CUDA(cudaFree(memory));
  CUDA(cudaFree(other));
  return true;
}

bool freed_in_every_state() {
  for (int how = 0; how < 4; ++how) {
    unsigned* const memory = allocate(kWords);
    CHECK(memory);
    if (how >= 1) fill(memory, kWords, 0);
    if (how >= 2) run_add(memory, kWords, 1);
    if (how == 3) {
      CUDA(cudaDeviceSynchronize());
      CHECK(memory[9] == 10);
    }
    CUDA(cudaFree(memory));
  }
  return true;
}

bool large() {
  const size_t words = 20 * kMebi;  // 80 MiB
  unsigned* const memory = allocate(words);
  CHECK(memory);
  fill(memory, words, 0);
  run_add(memory, words, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(is_sequence(memory, words, 1));
  for (size_t i = words; i-- > 0;) memory[i] = static_cast<unsigned>(i);
  run_add(memory, words, 1);
  CUDA(cudaDeviceSynchronize());
  for (size_t i = words; i-- > 0;) CHECK(memory[i] == i + 1);
  CUDA(cudaFree(memory));
  return true;
}

// Every second chunk in other hands than its neighbours.
bool checkered() {
  constexpr size_t kChunk = (64 << 10) / sizeof(unsigned), kChunks = 300;
  unsigned* const memory = allocate(kChunk * kChunks);
  for (unsigned round = 1; round <= 3; ++round) {
    for (size_t chunk = round % 2; chunk < kChunks; chunk += 2) memory[chunk * kChunk] += 1000;
    run_add(memory, kChunk * kChunks, 1);
    CUDA(cudaDeviceSynchronize());
  }
  for (size_t chunk = 0; chunk < kChunks; ++chunk)
    CHECK(memory[chunk * kChunk] == 3 + (chunk % 2 ? 2000 : 1000) && memory[chunk * kChunk + 1] == 3);
  CUDA(cudaFree(memory));
  return true;
}

bool more_than_fits() {
  std::vector<unsigned*> all;
  while (all.size() < 40) {
    unsigned* const memory = allocate(4 * kMebi);  // 16 MiB
    if (!memory) break;
    all.push_back(memory);
  }
  (void)cudaGetLastError();
  CHECK(all.size() > 10);  // what the device has no room for is on the host
  for (unsigned* memory : all) memory[5] = 5;
  for (unsigned* memory : all) run_add(memory, 100, 1);
  CUDA(cudaDeviceSynchronize());
  for (unsigned* memory : all) CHECK(memory[5] == 6);
  for (unsigned* memory : all) CUDA(cudaFree(memory));
  return true;
}

bool after_a_reset() {
  unsigned* memory = allocate(kWords);
  fill(memory, kWords, 0);
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceReset());
  memory = allocate(kWords);
  CHECK(memory);
  fill(memory, kWords, 0);
  run_add(memory, kWords, 1);
  CUDA(cudaDeviceSynchronize());
  CHECK(is_sequence(memory, kWords, 1));
  CUDA(cudaFree(memory));
  return true;
}

const std::map<std::string, bool (*)()> cases{
    {"a_push_before_the_first_launch", a_push_before_the_first_launch},
    {"beside_a_host_function", beside_a_host_function},
    {"there_and_back", there_and_back},
    {"starts_with_zeros", starts_with_zeros},
    {"partial_writes", partial_writes},
    {"one_word_an_iteration", one_word_an_iteration},
    {"several_buffers", several_buffers},
    {"prefetch_and_advice", prefetch_and_advice},
    {"copies_and_fills", copies_and_fills},
    {"what_it_is", what_it_is},
    {"many_threads", many_threads},
    {"arguments_in_it", arguments_in_it},
    {"host_functions", host_functions},
    {"streams_and_graphs", streams_and_graphs},
    {"files", files},
    {"blocked_signals", blocked_signals},
    {"own_handler", own_handler},
    {"ends_as_it_would", ends_as_it_would},
    {"freed_in_every_state", freed_in_every_state},
    {"large", large},
    {"checkered", checkered},
    {"more_than_fits", more_than_fits},
    {"after_a_reset", after_a_reset},
};

}  // namespace

int main(int argc, char** argv) {
  // "-NAME" leaves a case out, "NAME" runs that one alone.
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const auto& [name, run] : cases) {
    bool wanted = true;
    for (const std::string& word : words)
      wanted &= word.empty() || (word[0] == '-' ? word != "-" + name : word == name);
    if (!wanted) continue;
    if (run() && cudaGetLastError() == cudaSuccess) continue;
    std::printf("managed: %s: FAIL\n", name.c_str());
    return 1;
  }
  std::puts("managed: PASS");
  return 0;
}
