#include "library/call.h"

#include "library/cublas.h"
#include "library/cufft.h"
#include "library/curand.h"

namespace heddle::library {

Result<Demand> demand(const Call& call) {
  if (call.words.size() > kMostWords)
    return fail(ErrorCode::kInvalidArgument, "a library call of %zu words, at most %u are possible", call.words.size(),
                kMostWords);
  switch (call.library) {
    case Library::kCublas:
      return cublas::demand(call);
    case Library::kCurand:
      return curand::demand(call);
    case Library::kCufft:
      return cufft::demand(call);
  }
  return fail(ErrorCode::kNotFound, "library %u does not exist", static_cast<unsigned>(call.library));
}

const char* name_of(const Call& call) {
  if (call.library == Library::kCublas && call.function < cublas::functions().size())
    return cublas::functions()[call.function].name;
  if (call.library == Library::kCurand && call.function < curand::kFunctions) return curand::name_of(call.function);
  if (call.library == Library::kCufft) return cufft::name_of(call.function);
  return "?";
}

bool exists(Library library) {
  return library >= Library::kCublas && library <= Library::kCufft;
}

const char* name_of(Library library) {
  switch (library) {
    case Library::kCublas:
      return "cuBLAS";
    case Library::kCurand:
      return "cuRAND";
    case Library::kCufft:
      return "cuFFT";
  }
  return "?";
}

}  // namespace heddle::library
