/* Prints which CUDA runtime the library has that it loads, twice: unloaded and loaded anew. later_program LIBRARY */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int round = 0; argc > 1 && round < 2; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW);
    int (*version)(void) = library ? (int (*)(void))dlsym(library, "version_here") : 0;
    if (!version) return fprintf(stderr, "%s\n", dlerror()), 1;
    printf("%d\n", version());
    dlclose(library);
  }
  return 0;
}
