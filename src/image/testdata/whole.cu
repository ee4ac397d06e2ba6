// A program of one unit, for the wrapper that nvcc puts into its object file.
__global__ void alone(int* out, int value) { *out = value; }
