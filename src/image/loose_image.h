#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"

// Modules that a program hands over at run time (cuModuleLoadData), as the fat binaries that nvcc would have made of
// them: so they go the way of modules that nvcc's startup code registers.
namespace heddle::image {

// `image` points to PTX text that ends with a zero, to a cubin, to a fat binary, to the wrapper of one, or to what
// bundle() made; nothing else says how long it is, so that the caller is trusted. The bytes that follow each other are
// whole fat binaries (split_fatbins). kCorrupt where it is none of these, or its sizes make no sense.
Result<std::vector<std::byte>> loose_fatbin(const void* image);

// The same of a file's contents, whose end is known: kCorrupt for what passes it.
Result<std::vector<std::byte>> loose_fatbin(std::string_view file);

// A fat binary with that one image. kCorrupt for text that names no architecture (".target sm_90").
Result<std::vector<std::byte>> fatbin_of_ptx(std::string_view text);

// Fat binaries of separately compiled units, one behind the other, as one image that a program can keep and copy
// (cuLinkComplete). Whoever executes them links them.
std::vector<std::byte> bundle(const std::vector<std::byte>& fatbins);

}  // namespace heddle::image
