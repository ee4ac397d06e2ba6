#pragma once

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "library/cublas.h"

namespace heddle::software {

// Arrays of addresses that a call names, by their own address, as they were when they were checked: the program may
// change them at any time.
using CheckedArrays = std::map<uint64_t, std::vector<uint64_t>>;

// A cuBLAS call's arguments as Fortran has them: each an address.
class CallArguments {
 public:
  static constexpr size_t kMost = 24;

  // `words` and `arrays` have to outlive it.
  CallArguments(const library::cublas::Function& function, const library::cublas::Setting& setting,
                std::span<const uint64_t> words, const CheckedArrays& arrays);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  size_t count() const { return count_; }
  void* at(size_t index) const { return pointers_[index]; }
  std::span<void* const> all() const { return std::span(pointers_).first(count_); }
  char letter(size_t index) const { return letters_[index]; }
  int32_t number(size_t index) const { return numbers_[index]; }
  int64_t wide(size_t index) const { return static_cast<int64_t>(wide_[index]); }
  library::cublas::DataType type(size_t index) const { return static_cast<library::cublas::DataType>(numbers_[index]); }
  // Element `index` of a batch whose addresses stand behind argument `argument`.
  void* element(size_t argument, size_t index) const { return static_cast<void**>(pointers_[argument])[index]; }

 private:
  void add(library::cublas::Kind kind, bool scalars_on_device, const uint64_t* word, const CheckedArrays& arrays);
  void add_letter(char letter);

  size_t count_ = 0;
  std::array<void*, kMost> pointers_{};
  std::array<char, kMost> letters_{};
  std::array<int32_t, kMost> numbers_{};
  std::array<uint64_t, kMost> wide_{};
};

template <class Return, size_t... kIndex>
Return invoke(void* function, std::span<void* const> arguments, std::index_sequence<kIndex...>) {
  return reinterpret_cast<Return (*)(decltype((void)kIndex, static_cast<void*>(nullptr))...)>(function)(
      arguments[kIndex]...);
}

// Calls a function of as many addresses as there are.
template <class Return, size_t kCount = 3>
Return invoke(void* function, std::span<void* const> arguments) {
  if constexpr (kCount < CallArguments::kMost) {
    if (arguments.size() != kCount) return invoke<Return, kCount + 1>(function, arguments);
  }
  return invoke<Return>(function, arguments, std::make_index_sequence<kCount>());
}

}  // namespace heddle::software
