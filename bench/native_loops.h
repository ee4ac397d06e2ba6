#pragma once

// The work of interpreter_kernels.cu, n elements of it, as a compiler for this processor makes it.
namespace heddle::bench {

using Loop = void (*)(const float* in, float* out, int n);

void native_dense(const float* in, float* out, int n);
void native_stream(const float* in, float* out, int n);
void native_barriers(const float* in, float* out, int n);
void native_shuffles(const float* in, float* out, int n);
void native_divergent(const float* in, float* out, int n);
void native_atomics(const float* in, float* out, int n);
void native_tiles(const float* in, float* out, int n);

}  // namespace heddle::bench
