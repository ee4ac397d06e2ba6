/* Linked into programs that take the time for their random numbers, so that two runs compute the same. */
#include <time.h>

time_t time(time_t* out) {
  if (out) *out = 20;
  return 20;
}
