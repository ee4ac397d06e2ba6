#include <cstdio>

#include "program.h"

int main() {
  const int last = compute(1000);
  std::puts(last == 1998 && old_call() == 0 ? "PASS" : "FAIL");
  return last == 1998 ? 0 : 1;
}
