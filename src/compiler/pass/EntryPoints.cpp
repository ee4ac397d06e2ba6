// The functions of include/heddle/task.h as every compiled object carries them. They look once for heddle in the
// process, by the name heddle_task_api, and do nothing where it is not. In a program that has NVIDIA's runtime linked
// in, heddle run overwrites heddle_task_api as it does that runtime's functions (src/client/redirect).

#include "pass/Cuda.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

// Kept in sync with include/heddle/task.h; the layout of heddle_task_functions is {version, size, begin, end,
// free_early, enter, leave, allocated}.
constexpr const char *EntryPoints = R"(
@heddle_task_api_cache = weak_odr hidden global ptr null
@heddle_task_api_name = private constant [16 x i8] c"heddle_task_api\00"

declare ptr @dlsym(ptr, ptr)
declare i32 @cudaMalloc(ptr, i64)
declare i32 @cudaMallocAsync(ptr, i64, ptr)
declare i32 @cudaMallocPitch(ptr, ptr, i64, i64)
declare i32 @cudaMalloc3D(ptr, ptr byval({ i64, i64, i64 }) align 8)
declare i32 @cudaDeviceSynchronize()
declare i32 @cudaDeviceReset()

; heddle's table of functions, or null. Its own name is hidden, so that dlsym finds heddle's.
define weak_odr hidden ptr @heddle_task_api() noinline nounwind {
  %function = call ptr @dlsym(ptr null, ptr @heddle_task_api_name)
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %absent, label %present
present:
  %table = call ptr %function()
  %version = load i32, ptr %table
  %known = icmp eq i32 %version, 1
  br i1 %known, label %take, label %absent
take:
  ret ptr %table
absent:
  ret ptr null
}

; The same, asked once: the cache holds -1 where there is none. Threads that meet here find the same.
define weak_odr hidden ptr @heddle_task_table() noinline nounwind {
  %cached = load atomic ptr, ptr @heddle_task_api_cache acquire, align 8
  %new = icmp eq ptr %cached, null
  br i1 %new, label %search, label %known
search:
  %found = call ptr @heddle_task_api()
  %missing = icmp eq ptr %found, null
  %kept = select i1 %missing, ptr inttoptr (i64 -1 to ptr), ptr %found
  store atomic ptr %kept, ptr @heddle_task_api_cache release, align 8
  ret ptr %found
known:
  %absent = icmp eq ptr %cached, inttoptr (i64 -1 to ptr)
  %table = select i1 %absent, ptr null, ptr %cached
  ret ptr %table
}

; The function at that place of the table, or null: without heddle, or with an older one, whose table is shorter.
define weak_odr hidden ptr @heddle_task_entry(i64 %offset) noinline nounwind {
  %table = call ptr @heddle_task_table()
  %absent = icmp eq ptr %table, null
  br i1 %absent, label %none, label %measure
measure:
  %size_slot = getelementptr i8, ptr %table, i64 4
  %size = load i32, ptr %size_slot
  %end = zext i32 %size to i64
  %older = icmp ule i64 %end, %offset
  br i1 %older, label %none, label %take
take:
  %slot = getelementptr i8, ptr %table, i64 %offset
  %function = load ptr, ptr %slot
  ret ptr %function
none:
  ret ptr null
}

; Calls the function there, which takes a task, unless it is none.
define weak_odr hidden void @heddle_task_tell(i64 %offset, i64 %task) noinline nounwind {
  %none = icmp eq i64 %task, 0
  br i1 %none, label %done, label %ask
ask:
  %function = call ptr @heddle_task_entry(i64 %offset)
  %absent = icmp eq ptr %function, null
  br i1 %absent, label %done, label %call
call:
  call void %function(i64 %task)
  br label %done
done:
  ret void
}

define weak_odr hidden i64 @heddle_task_begin(ptr %task) noinline nounwind {
  %begin = call ptr @heddle_task_entry(i64 8)
  %absent = icmp eq ptr %begin, null
  br i1 %absent, label %none, label %call
call:
  %number = call i64 %begin(ptr %task)
  ret i64 %number
none:
  ret i64 0
}

define weak_odr hidden void @heddle_task_end(i64 %task) noinline nounwind {
  call void @heddle_task_tell(i64 16, i64 %task)
  ret void
}

define weak_odr hidden void @heddle_free_early(ptr %buffer) noinline nounwind {
  %free = call ptr @heddle_task_entry(i64 24)
  %absent = icmp eq ptr %free, null
  br i1 %absent, label %done, label %call
call:
  call void %free(ptr %buffer)
  br label %done
done:
  ret void
}

; Newer than the functions before: an older heddle never runs tasks apart.
define weak_odr hidden void @heddle_task_enter(i64 %task) noinline nounwind {
  call void @heddle_task_tell(i64 32, i64 %task)
  ret void
}

define weak_odr hidden void @heddle_task_leave() noinline nounwind {
  %leave = call ptr @heddle_task_entry(i64 40)
  %absent = icmp eq ptr %leave, null
  br i1 %absent, label %done, label %call
call:
  call void %leave()
  br label %done
done:
  ret void
}

; An older heddle keeps what is left over until the end.
define weak_odr hidden void @heddle_task_allocated(i64 %task) noinline nounwind {
  call void @heddle_task_tell(i64 48, i64 %task)
  ret void
}

; cudaMalloc whose result is a value: nobody else can write to it.
define weak_odr hidden { ptr, i32 } @heddle_malloc(i64 %bytes) noinline nounwind memory(inaccessiblemem: readwrite) {
  %slot = alloca ptr
  store ptr null, ptr %slot
  %error = call i32 @cudaMalloc(ptr %slot, i64 %bytes)
  %pointer = load ptr, ptr %slot
  %half = insertvalue { ptr, i32 } poison, ptr %pointer, 0
  %both = insertvalue { ptr, i32 } %half, i32 %error, 1
  ret { ptr, i32 } %both
}

; The same of cudaMallocAsync, cudaMallocPitch and cudaMalloc3D.
define weak_odr hidden { ptr, i32 } @heddle_malloc_async(i64 %bytes, ptr %stream) noinline nounwind memory(inaccessiblemem: readwrite) {
  %slot = alloca ptr
  store ptr null, ptr %slot
  %error = call i32 @cudaMallocAsync(ptr %slot, i64 %bytes, ptr %stream)
  %pointer = load ptr, ptr %slot
  %half = insertvalue { ptr, i32 } poison, ptr %pointer, 0
  %both = insertvalue { ptr, i32 } %half, i32 %error, 1
  ret { ptr, i32 } %both
}

define weak_odr hidden { ptr, i32, i64 } @heddle_malloc_pitch(i64 %width, i64 %height) noinline nounwind memory(inaccessiblemem: readwrite) {
  %slot = alloca ptr
  %pitch_slot = alloca i64
  store ptr null, ptr %slot
  store i64 0, ptr %pitch_slot
  %error = call i32 @cudaMallocPitch(ptr %slot, ptr %pitch_slot, i64 %width, i64 %height)
  %pointer = load ptr, ptr %slot
  %pitch = load i64, ptr %pitch_slot
  %third = insertvalue { ptr, i32, i64 } poison, ptr %pointer, 0
  %two = insertvalue { ptr, i32, i64 } %third, i32 %error, 1
  %all = insertvalue { ptr, i32, i64 } %two, i64 %pitch, 2
  ret { ptr, i32, i64 } %all
}

define weak_odr hidden { ptr, i32, i64 } @heddle_malloc_3d(i64 %width, i64 %height, i64 %depth) noinline nounwind memory(inaccessiblemem: readwrite) {
  %made = alloca { ptr, i64, i64, i64 }
  %extent = alloca { i64, i64, i64 }
  store { ptr, i64, i64, i64 } zeroinitializer, ptr %made
  store i64 %width, ptr %extent
  %second = getelementptr i8, ptr %extent, i64 8
  store i64 %height, ptr %second
  %third = getelementptr i8, ptr %extent, i64 16
  store i64 %depth, ptr %third
  %error = call i32 @cudaMalloc3D(ptr %made, ptr byval({ i64, i64, i64 }) align 8 %extent)
  %pointer = load ptr, ptr %made
  %pitch_slot = getelementptr i8, ptr %made, i64 8
  %pitch = load i64, ptr %pitch_slot
  %one = insertvalue { ptr, i32, i64 } poison, ptr %pointer, 0
  %two = insertvalue { ptr, i32, i64 } %one, i32 %error, 1
  %all = insertvalue { ptr, i32, i64 } %two, i64 %pitch, 2
  ret { ptr, i32, i64 } %all
}

; What old programs call from C files that another compiler makes objects of, and CUDA 13 has no more. In the same
; program as this object the linker finds them here.
define weak hidden i32 @cudaThreadSynchronize() nounwind {
  %error = call i32 @cudaDeviceSynchronize()
  ret i32 %error
}

define weak hidden i32 @cudaThreadExit() nounwind {
  %error = call i32 @cudaDeviceReset()
  ret i32 %error
}
)";

} // namespace

void defineEntryPoints(Module &M) {
  SMDiagnostic Error;
  // Clang's contexts forget names, and text cannot be read without.
  LLVMContext &Context = M.getContext();
  const bool Discard = Context.shouldDiscardValueNames();
  Context.setDiscardValueNames(false);
  std::unique_ptr<Module> Entry = parseAssemblyString(EntryPoints, Error, Context);
  Context.setDiscardValueNames(Discard);
  if (!Entry)
    report_fatal_error("heddle: the entry points do not parse: " + Twine(Error.getMessage()));
  Entry->setTargetTriple(M.getTargetTriple());
  Entry->setDataLayout(M.getDataLayout());
  for (Function &F : *Entry) {
    if (!F.isDeclaration())
      F.addFnAttr(OwnAttribute);
  }
  Linker::linkModules(M, std::move(Entry));
}

void dropUnusedEntryPoints(Module &M) {
  for (Function &F : M) {
    if (F.hasFnAttribute(OwnAttribute) && F.getName().starts_with("heddle_"))
      F.setLinkage(GlobalValue::LinkOnceODRLinkage);
  }
}

} // namespace heddle::compiler
