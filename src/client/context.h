#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

// The driver API's contexts. Each device has its primary one, which the runtime uses; a program may make others. They
// are names: all contexts of a device share its one place in the ledger, its ring and its worker, so a fault in one is
// a fault in all.
//
// A thread has a stack of contexts, whose top is current (ThreadPlace::context) and decides the device that its calls
// mean. Where there is none and the thread calls the runtime, the primary context of its device becomes current, as in
// CUDA.
namespace heddle::client {

struct Context {
  int device = 0;
  bool primary = false;
  uint64_t id = 0;
  std::atomic<bool> alive{true};
  std::atomic<unsigned> flags{0};
  // A primary context's users: how often the driver API retains it, and whether the runtime has used it.
  std::atomic<unsigned> retained{0};
  std::atomic<bool> used_by_runtime{false};
};

// `device` exists.
Context& primary_context(int device);
// For a new context; ids are never used twice.
uint64_t next_context_id();

// The runtime uses the device in the calling thread: its primary context becomes current, in the place of what was.
void use_primary_context(int device);

// The calling thread's stack, below its top; ThreadPlace follows. Nobody else's is ever changed.
void push_context(Context* context);
// The top; null: the stack was empty.
Context* pop_context();
// In the place of the top. Null takes the top away.
void replace_context(Context* context);

// --- what was made in contexts of the program's own by the driver API: it ends with them. What was made in a primary
// context, and all that the runtime makes, ends with the device's reset ---
enum class Owned { kMemory, kArray, kStream, kEvent, kPool };
struct OwnedObject {
  Owned kind;
  uint64_t handle;  // or address
};
// The calling thread's current context owns it from now on, where it is no primary one.
void own(Owned kind, uint64_t handle);
// It is gone, whichever API released it. One load where the program has made no context.
void disown(Owned kind, uint64_t handle);
// All of the device's memory is gone.
void disown_memory(int device);
// Null: a primary context, or nobody.
Context* owner_of(Owned kind, uint64_t handle);
std::vector<OwnedObject> take_owned(const Context& context);

}  // namespace heddle::client
