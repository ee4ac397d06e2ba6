#pragma once

// What heddle's libcublas and libcurand ask of heddle's libcudart in the same process: one table of functions, found by
// the name heddle_library_api. Internal: both come from one build, and the version says so.

#include <cstddef>
#include <cstdint>

extern "C" {

// What a call needs beside its words, should a graph capture it: an object that lives as long as the graph.
struct heddle_library_keeper {
  const void* object;
  // A copy of the object for the graph, which destroys it in the end; null: there is no memory.
  void* (*copy)(const void* object);
  void (*destroy)(void* copy);
  // Brings the words up to date before each launch of the graph. Null: they stay as they were captured.
  void (*renew)(void* copy, uint64_t* words);
};

struct heddle_library_functions {
  uint32_t version;
  // Whether the program has used this runtime: of two that are loaded, the one to ask.
  bool (*in_use)();
  // A call of a library (library::Library) as src/library packs it, in stream order. These return CUDA's codes and set
  // no last error. 1: its arguments make no sense; 801: it is not supported. `open`: before it, waits for a device and
  // sees that the worker has the library; else 3, and a line on stderr says what is missing. Where the stream captures,
  // the call becomes a node of the graph, and each launch makes it.
  int (*call)(uint32_t library, uint32_t function, const uint64_t* words, uint32_t count, void* stream, bool open,
              const heddle_library_keeper* keeper);
  // Which capture the stream is part of; 0: none.
  uint64_t (*capture)(void* stream);
  // Device memory, also while something captures.
  int (*allocate)(void** pointer, size_t bytes);
  int (*release)(void* pointer);
  // Rows of bytes from and to wherever; blocking, or in stream order as cudaMemcpy2DAsync.
  int (*copy)(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, void* stream,
              bool blocking);
  int (*current_device)(int* device, int* capability_major);
  // One line on stderr, once in the life of the process.
  void (*say)(const char* text);
  // Whether the current device is a GPU; false where there is none at all.
  bool (*on_gpu)();
  // As call(), beside all streams, and waits until it is done.
  int (*call_at_once)(uint32_t library, uint32_t function, const uint64_t* words, uint32_t count, bool open);
  int (*allocate_pinned)(void** pointer, size_t bytes);
  int (*release_pinned)(void* pointer);
};
inline constexpr uint32_t kHeddleLibraryVersion = 3;

const heddle_library_functions* heddle_library_api();

}  // extern "C"
