#include "client/context.h"

#include <pthread.h>

#include <array>
#include <map>
#include <mutex>

#include "client/thread_place.h"
#include "protocol/messages.h"

namespace heddle::client {
namespace {

std::atomic<uint64_t> next_id{1};

struct Stack {
  std::vector<Context*> below;  // the current one
  int device = 0;               // cudaSetDevice's choice, which is meant again when the stack is empty
};

// A key rather than a thread_local object: its destructor does not run when the process exits.
Stack& my_stack() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    ::pthread_key_create(&made, [](void* stack) { delete static_cast<Stack*>(stack); });
    return made;
  }();
  auto* mine = static_cast<Stack*>(::pthread_getspecific(key));
  if (!mine) {
    mine = new Stack;
    ::pthread_setspecific(key, mine);
  }
  return *mine;
}

void make_current(Context* context) {
  ThreadPlace& place = thread_place();
  if (!place.context) my_stack().device = place.device;
  place.context = context;
  place.device = context ? context->device : my_stack().device;
}

struct Owners {
  std::atomic<bool> any{false};
  std::mutex mutex;  // guards what follows
  std::map<std::pair<Owned, uint64_t>, Context*> owners;
};
Owners& all_owners() {
  static auto* const all = new Owners;
  return *all;
}

struct Primaries {
  Primaries() {
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].device = static_cast<int>(i);
      all[i].primary = true;
      all[i].id = next_context_id();
    }
  }
  std::array<Context, protocol::kMaxDevices> all;
};

}  // namespace

Context& primary_context(int device) {
  static auto* const primaries = new Primaries;
  return primaries->all[static_cast<size_t>(device)];
}

uint64_t next_context_id() {
  return next_id.fetch_add(1);
}

void use_primary_context(int device) {
  Context& primary = primary_context(device);
  primary.used_by_runtime.store(true, std::memory_order_relaxed);
  my_stack().device = device;
  ThreadPlace& place = thread_place();
  place.context = &primary;
  place.device = device;
}

void push_context(Context* context) {
  if (Context* const current = thread_place().context) my_stack().below.push_back(current);
  make_current(context);
}

Context* pop_context() {
  Context* const top = thread_place().context;
  if (!top) return nullptr;
  auto& below = my_stack().below;
  Context* const next = below.empty() ? nullptr : below.back();
  if (next) below.pop_back();
  make_current(next);
  return top;
}

void replace_context(Context* context) {
  if (context) return make_current(context);
  pop_context();
}

void own(Owned kind, uint64_t handle) {
  Context* const current = thread_place().context;
  if (!current || current->primary) return;
  const std::lock_guard lock(all_owners().mutex);
  all_owners().owners[{kind, handle}] = current;
  all_owners().any.store(true, std::memory_order_release);
}

void disown(Owned kind, uint64_t handle) {
  if (!all_owners().any.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(all_owners().mutex);
  all_owners().owners.erase({kind, handle});
}

void disown_memory(int device) {
  const std::lock_guard lock(all_owners().mutex);
  std::erase_if(all_owners().owners, [&](const auto& entry) {
    return entry.first.first == Owned::kMemory && entry.second->device == device;
  });
}

Context* owner_of(Owned kind, uint64_t handle) {
  const std::lock_guard lock(all_owners().mutex);
  const auto found = all_owners().owners.find({kind, handle});
  return found == all_owners().owners.end() ? nullptr : found->second;
}

std::vector<OwnedObject> take_owned(const Context& context) {
  std::vector<OwnedObject> owned;
  const std::lock_guard lock(all_owners().mutex);
  std::erase_if(all_owners().owners, [&](const auto& entry) {
    if (entry.second != &context) return false;
    owned.push_back({entry.first.first, entry.first.second});
    return true;
  });
  return owned;
}

}  // namespace heddle::client
