#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::keeper {

// The driver for tests, under a name of its own: the files beside it say what its GPU has (fake_driver.cc).
class TestDriver {
 public:
  TestDriver() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    std::filesystem::create_symlink(HEDDLE_TEST_DRIVER, library());
    ::setenv("HEDDLE_CUDA_LIBRARY", library().c_str(), 1);
  }
  TestDriver(const TestDriver&) = delete;
  TestDriver& operator=(const TestDriver&) = delete;
  ~TestDriver() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void set_free(Bytes bytes) const { std::ofstream(library() + ".free") << bytes.value; }
  // Whether what the GPU does fails.
  void set_fails(bool fails) const { std::ofstream(library() + ".fails") << fails; }
  void set_room(Bytes bytes) const { std::ofstream(library() + ".room") << bytes.value; }

 private:
  std::string library() const { return directory_ + "/libcuda-test.so"; }

  std::string directory_ = testing::TempDir() + "/heddle-keeper-XXXXXX";
};

// Which memory it is; the same for every descriptor of it.
inline ino_t identity(const Fd& memory) {
  struct stat status {};
  EXPECT_EQ(::fstat(memory.get(), &status), 0);
  return status.st_ino;
}

}  // namespace heddle::keeper
