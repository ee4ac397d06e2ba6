// Libraries with CUDA that a program loads later, under loaders as the distributions build them: this machine's own,
// and copies of it in which the function that it calls for debuggers looks otherwise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "client/redirect/calls.h"
#include "client/redirect/elf_file.h"

namespace heddle::redirect {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The loader's file, to be altered.
struct Loader {
  Loader() : bytes(read(kLoader)) {
    uint64_t address = 0;
    const auto file = ElfFile::open(kLoader);
    if (!file) return;
    file->functions([&](const ElfFile::Function& each) {
      if (std::string_view(each.name) == "_dl_debug_state") address = each.address;
    });
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr part;
      std::memcpy(&part, bytes.data() + header.e_phoff + i * sizeof part, sizeof part);
      if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
      code = part.p_offset;
      code_bytes = part.p_filesz;
      if (address >= part.p_vaddr && address - part.p_vaddr < part.p_filesz)
        function = address - part.p_vaddr + part.p_offset;
    }
  }
  // The function's sixteen bytes: `beginning`, then `filler`.
  void write(const std::string& beginning, char filler) {
    bytes.replace(function, 16, beginning + std::string(16 - beginning.size(), filler));
  }
  // What called the function calls the return that follows it in its sixteen bytes.
  void lead_calls_past_it() {
    const auto* start = reinterpret_cast<const unsigned char*>(bytes.data()) + code;
    for (const uint64_t call : find_calls({start, code_bytes}, code, function)) {
      int32_t distance;
      std::memcpy(&distance, bytes.data() + code + call, sizeof distance);
      distance += 8;
      std::memcpy(bytes.data() + code + call, &distance, sizeof distance);
    }
    bytes[function + 8] = '\xc3';
  }

  std::string bytes;
  uint64_t function = 0, code = 0, code_bytes = 0;  // offsets in the file
};

class Later : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/heddle-later-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ASSERT_NE(loader_.function, 0u) << kLoader << " has no _dl_debug_state";
  }
  void TearDown() override {
    for (const char* name : {"ld", "out", "err"}) ::unlink((directory_ + "/" + name).c_str());
    ::rmdir(directory_.c_str());
  }
  // The program under the altered loader: its standard output; errors are in `err_`.
  std::string run() {
    const std::string loader = directory_ + "/ld";
    std::ofstream(loader, std::ios::binary) << loader_.bytes;
    ::chmod(loader.c_str(), 0755);
    const std::string command = "LD_PRELOAD=" HEDDLE_REDIRECT_LIBRARY " timeout 60 " + loader +
                                " " HEDDLE_REDIRECT_FIXTURES "/later_program " HEDDLE_REDIRECT_FIXTURES "/later.so >" +
                                directory_ + "/out 2>" + directory_ + "/err";
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c)
    err_ = read(directory_ + "/err");
    return read(directory_ + "/out");
  }
  // Both times that the library is loaded its runtime is heddle's, and nothing is printed beside.
  void expect_redirected() {
    EXPECT_THAT(run(), ::testing::MatchesRegex("1[0-9]+\n1[0-9]+\n"));
    EXPECT_EQ(err_, "");
  }

  Loader loader_;
  std::string directory_, err_;
};

const std::string kMarked = "\xf3\x0f\x1e\xfa\xc3";  // endbr64, ret

TEST_F(Later, UnderTheLoaderAsItIs) {
  expect_redirected();
}

TEST_F(Later, WhereTheFunctionIsMarkedForIndirectCalls) {
  loader_.write(kMarked, '\x90');
  expect_redirected();
}

TEST_F(Later, WhereAnotherFunctionFollowsAtOnce) {
  loader_.write("\xc3", '\xb8');
  expect_redirected();
}

TEST_F(Later, WhereAnotherFunctionFollowsTheMarkedOne) {
  loader_.write(kMarked, '\xb8');
  expect_redirected();
}

TEST_F(Later, WhereTheFunctionDoesSomething) {
  loader_.write("\x31\xc0\xc3", '\xb8');  // xor eax, eax; ret
  expect_redirected();
}

TEST_F(Later, WhereNoWayIsLeftTheProgramIsToldAndGoesOn) {
  loader_.write("\xc3", '\xb8');
  loader_.lead_calls_past_it();
  EXPECT_EQ(run(), "-1\n-1\n");
  EXPECT_THAT(err_, StartsWith("heddle: CUDA in libraries that are loaded later will not be shared: "));
  EXPECT_THAT(err_, HasSubstr("the function has 1 bytes"));
  EXPECT_THAT(err_, HasSubstr("has no direct call of it"));
}

}  // namespace
}  // namespace heddle::redirect
