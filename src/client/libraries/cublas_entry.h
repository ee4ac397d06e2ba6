#pragma once

#include "client/libraries/cublas_handle.h"

// How a function that a program calls becomes words of a call: what the entries of libcublas have in common.
namespace heddle::client {

// A status, and no exception.
template <class Body>
int answer(Body&& body) noexcept {
  try {
    return static_cast<int>(body());
  } catch (...) {
    return static_cast<int>(Outcome::kAllocFailed);
  }
}

inline void add(CublasHandle::Words& words, library::cublas::Kind kind, uint64_t value) {
  words.values[words.count] = value;
  words.count += words_of(kind);
}
template <class Kind, class Argument>
void add(CublasHandle::Words& words, Argument argument) {
  if constexpr (std::is_pointer_v<Argument>)
    add(words, Kind::kKindOf, reinterpret_cast<uint64_t>(argument));
  else
    add(words, Kind::kKindOf, static_cast<uint64_t>(int64_t{argument}));
}

// The words of a call whose scalars are not read yet.
template <class Integer, class... Kinds>
CublasHandle::Words words_of_call(library::cublas::Number number,
                                  typename Kinds::template Argument<Integer>... arguments) {
  CublasHandle::Words words{number, sizeof(Integer) == 8, {}};
  (add<Kinds>(words, arguments), ...);
  return words;
}

template <class Integer, class... Kinds>
int enter(library::cublas::Number number, void* handle,
          typename Kinds::template Argument<Integer>... arguments) noexcept {
  return answer([&] {
    auto* const known = static_cast<CublasHandle*>(handle);
    if (!known || !known->valid()) return Outcome::kNotInitialized;
    auto words = words_of_call<Integer, Kinds...>(number, arguments...);
    return known->call(words);
  });
}

}  // namespace heddle::client
