// Prints what libc took as this program's name when it was initialised, and how many devices there are.
#include <cerrno>
#include <cstdio>

int main() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  std::printf("%s: %d devices\n", program_invocation_short_name, devices);
  return 0;
}
