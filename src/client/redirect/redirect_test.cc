#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "client/redirect/calls.h"
#include "client/redirect/jump.h"
#include "client/redirect/scan.h"

namespace heddle::redirect {
namespace {

int answer_one() {
  return 1;
}
int answer_two() {
  return 2;
}

// A page of code: a function `mov eax, 7; ret` of six bytes, `filler` before and behind it. Sanitizers read a few bytes
// before what is called.
class CodePage {
 public:
  explicit CodePage(unsigned char filler) {
    page_ = static_cast<unsigned char*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(page_, kBytes, filler);
    const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
    std::copy(std::begin(code), std::end(code), page_ + kBefore);
    ::mprotect(page_, kBytes, PROT_READ | PROT_EXEC);
  }
  ~CodePage() { ::munmap(page_, kBytes); }
  void* function() const { return page_ + kBefore; }
  int call() const { return reinterpret_cast<int (*)()>(function())(); }

 private:
  static constexpr size_t kBytes = 4096, kBefore = 64;
  unsigned char* page_;
};

TEST(Jump, ShortFunctionWithPaddingIsRedirected) {
  const CodePage page(0xcc);
  ASSERT_EQ(page.call(), 7);
  ASSERT_TRUE(write_jump(page.function(), 6, reinterpret_cast<void*>(&answer_one)));
  EXPECT_EQ(page.call(), 1);
  ASSERT_TRUE(write_jump(page.function(), 6, reinterpret_cast<void*>(&answer_two)) ||
              write_jump(page.function(), kJumpBytes, reinterpret_cast<void*>(&answer_two)));
  EXPECT_EQ(page.call(), 2);
}

TEST(Jump, FunctionThatEndsInAnotherIsLeftAlone) {
  const CodePage page(0xb8);
  EXPECT_FALSE(write_jump(page.function(), 6, reinterpret_cast<void*>(&answer_one)));
  EXPECT_EQ(page.call(), 7);
}

TEST(Jump, AnEmptyFunctionIsKnownWithAndWithoutItsMark) {
  const unsigned char bare[] = {0xc3, 0x90}, marked[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3};
  const unsigned char other[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x90}, code[] = {0xb8, 7, 0, 0, 0, 0xc3};
  EXPECT_EQ(empty_function_size(bare), 1u);
  EXPECT_EQ(empty_function_size(marked), 5u);
  EXPECT_EQ(empty_function_size(other), 0u);
  EXPECT_EQ(empty_function_size(code), 0u);
}

//  0: nop  nop  call +3 -> 10   7: jmp +n -> 10   ...   ja -> 10   call elsewhere
TEST(Calls, AreFoundWhereTheyLeadToTheFunctionAndNowhereElse) {
  std::vector<unsigned char> code = {0x90, 0x90, 0xe8, 0, 0,    0, 0, 0xe9, 0, 0,    0, 0, 0x0f, 0x87,
                                     0,    0,    0,    0, 0xe8, 0, 0, 0,    0, 0xb8, 0, 0, 0,    0};
  constexpr uintptr_t kAddress = 0x500000000000, kTarget = kAddress - 0x1000;
  const auto lead = [&](uint64_t offset, uintptr_t target) {
    const auto distance = static_cast<int32_t>(static_cast<int64_t>(target - (kAddress + offset + 4)));
    std::memcpy(code.data() + offset, &distance, sizeof distance);
  };
  lead(3, kTarget);
  lead(8, kTarget);
  lead(14, kTarget);
  lead(19, kTarget + 1);
  lead(24, kTarget);  // behind an opcode that is no branch
  EXPECT_EQ(find_calls(code, kAddress, kTarget), (std::vector<uint64_t>{3, 8, 14}));
}

TEST(Calls, OfWhatNoFileHoldsAreNotFound) {
  const CodePage page(0xcc);
  EXPECT_FALSE(retarget_calls(page.function(), reinterpret_cast<void*>(&answer_one)));
  EXPECT_EQ(page.call(), 7);
}

TEST(Calls, OfALibrarysFunctionLeadElsewhere) {
  void* const library = ::dlopen(HEDDLE_REDIRECT_FIXTURES "/calls.so", RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto ask = reinterpret_cast<int (*)()>(::dlsym(library, "ask"));
  void* const asked = ::dlsym(library, "asked");
  ASSERT_TRUE(ask && asked);
  EXPECT_EQ(ask(), 3);
  const auto calls = retarget_calls(asked, reinterpret_cast<void*>(&answer_two));
  ASSERT_TRUE(calls) << calls.error().text;
  EXPECT_EQ(*calls, 2u);
  EXPECT_EQ(ask(), 6) << "3, with the function in its place: a call, and twice a jump to it";
  EXPECT_EQ(reinterpret_cast<int (*)()>(asked)(), 1) << "itself it is what it was";
  const auto again = retarget_calls(asked, reinterpret_cast<void*>(&answer_one));
  EXPECT_FALSE(again) << "nothing calls it any more";
}

TEST(Scan, LibrariesThatGoPastHeddleAreKnownByName) {
  EXPECT_FALSE(goes_past_heddle("libcuda.so.1")) << "heddle's own";
  EXPECT_FALSE(goes_past_heddle("libcuda.so"));
  EXPECT_TRUE(goes_past_heddle("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  EXPECT_TRUE(is_driver("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  EXPECT_TRUE(is_driver("libcuda.so"));
  EXPECT_FALSE(is_driver("/usr/local/cuda/lib64/libcudart.so.13"));
  EXPECT_TRUE(goes_past_heddle("/usr/lib/x86_64-linux-gnu/libcudnn.so.9"));
  EXPECT_TRUE(goes_past_heddle("libnccl.so.2"));
  EXPECT_FALSE(goes_past_heddle("libcudart.so.13"));
}

TEST(Scan, OnlyTheRuntimesFunctionsAreMeant) {
  EXPECT_TRUE(is_runtime_function("cudaMalloc"));
  EXPECT_TRUE(is_runtime_function("__cudaRegisterFatBinary"));
  EXPECT_FALSE(is_runtime_function("cuda_helper"));
  EXPECT_FALSE(is_runtime_function("cudart_init"));
  EXPECT_FALSE(is_runtime_function("cuMemAlloc"));
}

TEST(Scan, ProgramWithoutCudaIsLeftAlone) {
  const auto file = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(scan(*file).kind, Finding::Kind::kNothing);
  size_t mains = 0;
  file->functions([&](const ElfFile::Function& function) { mains += std::string_view(function.name) == "main"; });
  EXPECT_GE(mains, 1u);
}

TEST(Scan, FileThatIsNoProgramIsAnError) {
  EXPECT_FALSE(ElfFile::open("/proc/self/status"));
  EXPECT_FALSE(ElfFile::open("/nonexistent"));
}

}  // namespace
}  // namespace heddle::redirect
