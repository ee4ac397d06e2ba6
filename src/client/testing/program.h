#pragma once

#include <cstring>
#include <string>

#include "client/testing/cuda_api.h"
#include "image/fatbin_format.h"

// A program's module for tests, as nvcc would have registered it: kernels and a variable, in plain PTX.
namespace heddle::client::testing {

class Program {
 public:
  Program() {
    add_ptx();
    wrapper_ = {image::kWrapperMagic, 1, fatbin_.data(), nullptr};
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    __cudaRegisterFunction(handle_, &add, nullptr, "add", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(handle_, &missing, nullptr, "missing", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(handle_, &deep, nullptr, "deep", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(handle_, &deeper, nullptr, "deeper", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle_, &table, nullptr, "table", 0, 64, 1, 0);
    __cudaRegisterFatBinaryEnd(handle_);
  }

  // The host addresses by which the program knows its kernels and variables.
  char add = 0, missing = 0, deep = 0, deeper = 0, table = 0;

 private:
  void add_ptx() {
    std::string ptx =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".const .align 4 .b8 table[64];\n"
        ".visible .entry add(\n.param .u64 add_param_0,\n.param .u32 add_param_1,\n.param .u64 add_param_2\n)\n"
        ".maxntid 512, 1, 1\n{\n.shared .align 4 .b8 tile[1024];\nret;\n}\n"
        ".visible .entry deep()\n{\n.local .align 4 .b8 stack[4096];\nret;\n}\n"
        ".visible .entry deeper()\n{\n.local .align 4 .b8 stack[8192];\nret;\n}\n";
    ptx.resize((ptx.size() + 8) / 8 * 8);
    image::FatbinEntry entry{};
    entry.kind = image::kFatbinPtx;
    entry.version = 0x101;
    entry.header_size = sizeof entry;
    entry.payload_size = ptx.size();
    entry.arch = 80;
    entry.flags = 0x11;
    const image::FatbinHeader header{image::kFatbinMagic, 1, sizeof header, sizeof entry + ptx.size()};
    fatbin_.append(reinterpret_cast<const char*>(&header), sizeof header);
    fatbin_.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    fatbin_ += ptx;
  }

  std::string fatbin_;
  image::FatbinWrapper wrapper_{};
  void** handle_ = nullptr;
};

}  // namespace heddle::client::testing
