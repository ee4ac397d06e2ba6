#pragma once

#ifdef __cplusplus
extern "C" {
#endif
int compute(int n);
int old_call(void); /* in C, of a function that CUDA 13 does not have any more */
#ifdef __cplusplus
}
#endif
