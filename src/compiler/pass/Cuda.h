#pragma once

// What the pass knows of the CUDA runtime's functions, and of what nvcc makes of a launch.

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace heddle::compiler {

enum class Operation {
  None,
  Alloc,    // heddle_malloc and its like, which Prepare makes of cudaMalloc, its Async, its Pitch and cudaMalloc3D
  Copy,     // cudaMemcpy and cudaMemcpyAsync
  Copy2D,   // cudaMemcpy2D and cudaMemcpy2DAsync
  Fill,     // cudaMemset and cudaMemset2D, and both Async
  Fill3D,   // cudaMemset3D and cudaMemset3DAsync, which take the pointer in a struct
  Free,     // cudaFree and cudaFreeAsync
  Push,     // __cudaPushCallConfiguration: the anchor of a <<<...>>> launch
  Launch,   // a launch that the program writes itself, without <<<...>>>
  Stub,     // the call of a kernel's host stub
  OtherApi, // any other function of the runtime
};

// The function that is called directly, or nullptr.
llvm::Function *calledFunction(const llvm::CallBase &Call);

Operation operationOf(const llvm::CallBase &Call);

// The runtime's functions that give device memory and are followed, by the names that programs call.
llvm::ArrayRef<const char *> allocationNames();

// Whether a function is declared by the CUDA runtime: cudaXxx and __cudaXxx.
bool isRuntimeName(llvm::StringRef Name);

// A kernel's host stub: what nvcc makes to pop the configuration and launch. Templates' stubs have no name that tells,
// so they are found by that call, once, and carry an attribute from then on.
inline constexpr const char *StubAttribute = "heddle-stub";
void markKernelStubs(llvm::Module &M);

// What the stub launches, as cudaLaunchKernel names it; nullptr when it does not show.
llvm::Function *kernelOf(const llvm::Function &Stub);

// Whether the stub takes its parameter by reference: its address itself goes into the launch's array of arguments.
bool takesByReference(const llvm::Function &Stub, unsigned Parameter);

// Which of the call's arguments are pointers to memory that it works on.
llvm::ArrayRef<unsigned> memoryArguments(Operation Op);

// The argument that points to a struct, passed by value, with such a pointer in it; -1: none.
int structArgument(Operation Op);

// Whether the runtime's function stores the address of host memory, or of managed memory, which the client runtime
// declares by itself, where its first argument points.
bool givesHostMemory(const llvm::Function &F);

// Where the pass and the program meet (include/heddle/task.h): names of the functions that it defines.
inline constexpr const char *MallocName = "heddle_malloc";            // (bytes): pointer, error
inline constexpr const char *MallocAsyncName = "heddle_malloc_async"; // (bytes, stream): pointer, error
inline constexpr const char *MallocPitchName = "heddle_malloc_pitch"; // (width, height): pointer, error, pitch
inline constexpr const char *Malloc3DName = "heddle_malloc_3d";       // (width, height, depth): pointer, error, pitch
inline constexpr const char *BeginName = "heddle_task_begin";
inline constexpr const char *AllocatedName = "heddle_task_allocated";
inline constexpr const char *EndName = "heddle_task_end";
inline constexpr const char *FreeEarlyName = "heddle_free_early";
inline constexpr const char *EnterName = "heddle_task_enter";
inline constexpr const char *LeaveName = "heddle_task_leave";

// Adds those functions to the module, hidden, the same in every object; none of the program's own, they have the
// attribute below. They stay until dropUnusedEntryPoints, even while nothing calls them.
inline constexpr const char *OwnAttribute = "heddle-own";
void defineEntryPoints(llvm::Module &M);
void dropUnusedEntryPoints(llvm::Module &M);

} // namespace heddle::compiler
