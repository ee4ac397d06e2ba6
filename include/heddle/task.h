/* What a program that `heddle cc` compiled tells heddle about its GPU tasks.
 *
 * A task is a set of kernel launches and the buffers that they share, placed on one device together (CASE, section
 * III-A). The compiler puts heddle_task_begin where all of its needs are known and none of its work has begun, and
 * heddle_task_end on every way out. What is said is a promise, not an allocation: buffers that the program then
 * allocates take what was promised, more is asked for as an extension, and what is left over goes back behind the last
 * allocation (heddle_task_allocated), at the latest at the end.
 *
 * The compiler defines these functions in every object, hidden; they reach heddle through heddle_task_api(), which
 * heddle's CUDA runtime exports. Where there is none, as on NVIDIA's runtime, they do nothing.
 *
 * The layout of what is here is part of compiled programs: fields are only ever added, at the end, and `size` tells
 * how much a caller knows.
 */
#ifndef HEDDLE_TASK_H
#define HEDDLE_TASK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_TASK_ABI 1u

/* `count` buffers of `bytes` each, exactly as cudaMalloc will be asked for them; 0 bytes: none. */
struct heddle_buffer {
  uint64_t bytes;
  uint64_t count;
};

/* One launch of the task, or the largest that it may be. */
struct heddle_launch {
  const void* kernel; /* as cudaLaunchKernel names it */
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes; /* dynamic */
  void* stream;
};

/* Flag of a task that may run apart from the rest of its device's work: nobody but its operations, each of which stands
 * between heddle_task_enter and heddle_task_leave, has a pointer to its buffers; its copies wait, its launches go into
 * the legacy default stream, and `pointers` is there. */
#define HEDDLE_TASK_APART 1u

struct heddle_task {
  uint32_t size; /* of this struct */
  uint32_t flags;
  const char* name; /* for people: function, file and line; lives as long as the program */
  uint64_t buffer_count;
  const struct heddle_buffer* buffers;
  uint64_t launch_count;
  const struct heddle_launch* launches;
  /* With HEDDLE_TASK_APART, a word for each launch. Bit i: parameter i holds no addresses but of the task's buffers.
   * The highest bit that is set stands for the number of parameters. */
  const uint64_t* pointers;
};

/* Announces a task of the calling thread's current device. Never waits for a device. Returns the number to end it
 * with; 0 where there is no heddle, or where it could not take note. */
uint64_t heddle_task_begin(const struct heddle_task* task);

/* None of the task's buffers will be allocated any more: what was promised and not taken is given back. 0, or a task
 * that has ended already: nothing happens. */
void heddle_task_allocated(uint64_t task);

/* The task's last operation was called. What was promised and not taken is given back. 0, or a task that has ended
 * already: nothing happens. */
void heddle_task_end(uint64_t task);

/* Around each operation of a task that may run apart, by the thread that calls it. */
void heddle_task_enter(uint64_t task);
void heddle_task_leave(void);

/* Nothing that is called from here on uses the buffer: it goes back when the work that was called so far is done, and
 * the program's own cudaFree of it then only waits, as it always does. Has no effect where a kernel of the program may
 * leave addresses in memory for another to follow. */
void heddle_free_early(void* buffer);

struct heddle_task_functions {
  uint32_t version; /* HEDDLE_TASK_ABI */
  uint32_t size;    /* of this struct */
  uint64_t (*begin)(const struct heddle_task* task);
  void (*end)(uint64_t task);
  void (*free_early)(void* buffer);
  void (*enter)(uint64_t task);
  void (*leave)(void);
  void (*allocated)(uint64_t task);
};

/* Exported by heddle's libcudart.so. */
const struct heddle_task_functions* heddle_task_api(void);

#ifdef __cplusplus
}
#endif

#endif
