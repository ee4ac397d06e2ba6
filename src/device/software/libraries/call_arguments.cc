#include "device/software/libraries/call_arguments.h"

namespace heddle::software {

using namespace library::cublas;  // NOLINT(google-build-using-namespace): the words of what this reads

namespace {

void* pointer(uint64_t word) {
  return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

CallArguments::CallArguments(const Function& function, const Setting& setting, std::span<const uint64_t> words,
                             const CheckedArrays& arrays) {
  uint32_t at = 0;
  for (const Kind kind : function.kinds) {
    add(kind, setting.scalars_on_device, &words[at], arrays);
    at += words_of(kind);
  }
}

void CallArguments::add(Kind kind, bool scalars_on_device, const uint64_t* word, const CheckedArrays& arrays) {
  wide_[count_] = *word;
  numbers_[count_] = static_cast<int32_t>(*word);
  if (kind == Kind::kOp) return add_letter("NTC"[*word]);
  if (kind == Kind::kFill) return add_letter("LU"[*word]);
  if (kind == Kind::kSide) return add_letter("LR"[*word]);
  if (kind == Kind::kDiag) return add_letter("NU"[*word]);
  void*& to = pointers_[count_];
  if (is_scalar(kind) || is_parameters(kind)) {
    to = scalars_on_device ? pointer(*word) : const_cast<uint64_t*>(word);
  } else if (kind == Kind::kIn || kind == Kind::kOut || is_answer(kind)) {
    const auto array = arrays.find(*word);
    to = array == arrays.end() ? pointer(*word) : const_cast<uint64_t*>(array->second.data());
  } else {
    to = &numbers_[count_];
  }
  ++count_;
}

void CallArguments::add_letter(char letter) {
  letters_[count_] = letter;
  pointers_[count_] = &letters_[count_];
  ++count_;
}

}  // namespace heddle::software
