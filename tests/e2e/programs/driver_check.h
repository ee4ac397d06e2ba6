#pragma once

// Ends the program at the first call of the driver API that does not answer what it should, and prints which.

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#define EXPECT_CODE(call, wanted)                                                                     \
  do {                                                                                                \
    const CUresult code_of_call = (call);                                                             \
    if (code_of_call != (wanted)) {                                                                   \
      std::printf("%s: %d instead of %d (%s:%d)\n", #call, code_of_call, wanted, __FILE__, __LINE__); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)
#define DRIVER(call) EXPECT_CODE(call, CUDA_SUCCESS)
#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::printf("not so: %s (%s:%d)\n", #condition, __FILE__, __LINE__); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The path of a file that lies beside the program.
inline std::string beside(const char* program, const char* name) {
  const std::string path = program;
  return path.substr(0, path.rfind('/') + 1) + name;
}

// Whether the program is to look at answers that are heddle's own, or that nobody promises: "answers" is its argument.
// Without it the program does the same on NVIDIA's driver.
inline bool asks_for_answers(int count, char** arguments) {
  return count > 1 && std::string(arguments[1]) == "answers";
}
