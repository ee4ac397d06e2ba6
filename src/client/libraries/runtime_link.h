#pragma once

#include <memory>
#include <new>

#include "client/api/library_api.h"

// How heddle's libcublas and libcurand find heddle's libcudart. They do not link it: a program may have CUDA 12's or
// 13's, as its own library or in the place of one that is linked in statically.
namespace heddle::client {

// The runtime of this program: one that it uses, else one that is loaded, else the newest. Null where there is none of
// this build; a line on stderr says so.
const heddle_library_functions* library_runtime();

// Has graphs share what a captured call needs. Nothing of it throws: the two libraries have no common runtime of C++.
template <class T>
heddle_library_keeper keeper_of(const std::shared_ptr<T>& shared, void (*renew)(void*, uint64_t*) = nullptr) {
  using Shared = std::shared_ptr<T>;
  return {&shared,
          [](const void* object) -> void* { return new (std::nothrow) Shared(*static_cast<const Shared*>(object)); },
          [](void* copy) { delete static_cast<Shared*>(copy); }, renew};
}

// Says "heddle: <function> is not supported", once.
void say_unsupported(const char* function);

}  // namespace heddle::client

// Marks the functions that tenants see.
#define HEDDLE_LIBRARY_EXPORT extern "C" __attribute__((visibility("default")))
