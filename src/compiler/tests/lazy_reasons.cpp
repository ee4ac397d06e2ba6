// Why a launch stays lazy.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
float *find();
float *Global;
struct Tree {
  float *Data;
};

// CHECK: the pointer comes from {{.*}}find
void opaque() { LAUNCH(1, 32, scale(find(), 1)); }
// CHECK: the pointer is read from the global variable 'Global'
void global() { LAUNCH(1, 32, scale(Global, 1)); }
// CHECK: the pointer is read through parameter
void through(Tree &T) { LAUNCH(1, 32, scale(T.Data, 1)); }
// CHECK: the pointer is read from the heap
void heap(Tree **T) { LAUNCH(1, 32, scale(T[1]->Data, 1)); }
