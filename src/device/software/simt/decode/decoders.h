#pragma once

#include <string_view>

#include "device/software/simt/decode/function_compiler.h"

namespace heddle::software {

using Decoder = void (*)(FunctionCompiler&, const ptx::Instruction&);

// The decoder of an opcode; null if the opcode is not supported at all.
Decoder find_decoder(std::string_view opcode);

// What each decodes is said where it is defined.
void decode_plain(FunctionCompiler&, const ptx::Instruction&);
void decode_mov(FunctionCompiler&, const ptx::Instruction&);
void decode_cvt(FunctionCompiler&, const ptx::Instruction&);
void decode_cvta(FunctionCompiler&, const ptx::Instruction&);
void decode_setp(FunctionCompiler&, const ptx::Instruction&);
void decode_set(FunctionCompiler&, const ptx::Instruction&);
void decode_carry(FunctionCompiler&, const ptx::Instruction&);
void decode_bfi(FunctionCompiler&, const ptx::Instruction&);
void decode_lop3(FunctionCompiler&, const ptx::Instruction&);
void decode_video(FunctionCompiler&, const ptx::Instruction&);
void decode_load(FunctionCompiler&, const ptx::Instruction&);
void decode_store(FunctionCompiler&, const ptx::Instruction&);
void decode_atomic(FunctionCompiler&, const ptx::Instruction&);
void decode_shuffle(FunctionCompiler&, const ptx::Instruction&);
void decode_warp(FunctionCompiler&, const ptx::Instruction&);
void decode_barrier(FunctionCompiler&, const ptx::Instruction&);
void decode_branch(FunctionCompiler&, const ptx::Instruction&);
void decode_branch_table(FunctionCompiler&, const ptx::Instruction&);
void decode_exit(FunctionCompiler&, const ptx::Instruction&);
void decode_trap(FunctionCompiler&, const ptx::Instruction&);
void decode_call(FunctionCompiler&, const ptx::Instruction&);
void decode_fence(FunctionCompiler&, const ptx::Instruction&);
void decode_nanosleep(FunctionCompiler&, const ptx::Instruction&);
void decode_async_copy(FunctionCompiler&, const ptx::Instruction&);
void decode_mbarrier(FunctionCompiler&, const ptx::Instruction&);
void decode_matrix(FunctionCompiler&, const ptx::Instruction&);
void decode_ldmatrix(FunctionCompiler&, const ptx::Instruction&);
void decode_tex(FunctionCompiler&, const ptx::Instruction&);
void decode_tld4(FunctionCompiler&, const ptx::Instruction&);
void decode_surface(FunctionCompiler&, const ptx::Instruction&);
void decode_texture_query(FunctionCompiler&, const ptx::Instruction&);
void decode_alloca(FunctionCompiler&, const ptx::Instruction&);
void decode_stack(FunctionCompiler&, const ptx::Instruction&);
void decode_ignored(FunctionCompiler&, const ptx::Instruction&);

}  // namespace heddle::software
