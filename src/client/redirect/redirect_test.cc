#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

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

// A page of code: at `offset` a function `mov eax, 7; ret` of six bytes, then `filler`.
class CodePage {
 public:
  explicit CodePage(unsigned char filler) {
    page_ = static_cast<unsigned char*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(page_, kBytes, filler);
    const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
    std::copy(std::begin(code), std::end(code), page_);
    ::mprotect(page_, kBytes, PROT_READ | PROT_EXEC);
  }
  ~CodePage() { ::munmap(page_, kBytes); }
  void* function() const { return page_; }
  int call() const { return reinterpret_cast<int (*)()>(page_)(); }

 private:
  static constexpr size_t kBytes = 4096;
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

TEST(Scan, LibrariesThatGoPastHeddleAreKnownByName) {
  EXPECT_TRUE(goes_past_heddle("libcuda.so.1"));
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
