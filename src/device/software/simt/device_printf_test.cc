// Formats of device printf against the host's own, and what a hostile format can do.

#include "device/software/simt/device_printf.h"

#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

// Prints `format` with arguments as device code lays them out.
class Printf : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.load(
        ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param "
        ".b64 a);\n"
        ".entry k(.param .u64 f, .param .u64 a) { .reg .b64 %rd<3>; ld.param.u64 %rd0, [f]; ld.param.u64 %rd1, [a];\n"
        "{ .param .b64 x; .param .b64 y; .param .b32 r; st.param.b64 [x], %rd0; st.param.b64 [y], %rd1;\n"
        "call.uni (r), vprintf, (x, y); }\nret; }\n");
  }
  Machine::Outcome print(const std::string& format, const std::vector<uint64_t>& arguments) {
    std::vector<char> text(format.begin(), format.end());
    text.push_back(0);
    return machine_.run("k", {.block = {1, 1, 1}}, machine_.put(text), machine_.put(arguments));
  }
  std::string printed(const std::string& format, const std::vector<uint64_t>& arguments) {
    auto outcome = print(format, arguments);
    EXPECT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.refusal << outcome.fault.text;
    return outcome.printed;
  }
  Machine machine_;
};

TEST_F(Printf, Integers) {
  EXPECT_EQ(printed("%d|%5d|%-5d|%05d|%+d|", {static_cast<uint64_t>(-3) << 32 | 7, 42ull << 32 | 9, 1}),
            "7|   -3|9    |00042|+1|");
  EXPECT_EQ(printed("%lld %llu %lx", {static_cast<uint64_t>(-1), ~0ull, 0xABCull}), "-1 18446744073709551615 abc");
  EXPECT_EQ(printed("%u %x %X %#o", {0xFFFFFFFFull | 255ull << 32, 0xABull | 8ull << 32}), "4294967295 ff AB 010");
  EXPECT_EQ(printed("%hd %hhu", {0x1FFFFull | 0x1FFull << 32}), "-1 255");
}

TEST_F(Printf, FloatsStringsAndCharacters) {
  EXPECT_EQ(printed("%f %.2e %g",
                    {std::bit_cast<uint64_t>(1.5), std::bit_cast<uint64_t>(12345.678), std::bit_cast<uint64_t>(0.25)}),
            "1.500000 1.23e+04 0.25");
  uint64_t word = machine_.put(std::vector<char>{'h', 'e', 'l', 'l', 'o', 0});
  EXPECT_EQ(printed("[%s][%8s][%-8s][%.2s][%c]", {word, word, word, word, 'x'}), "[hello][   hello][hello   ][he][x]");
  EXPECT_EQ(printed("%s 100%%", {0}), "(null) 100%");
}

TEST_F(Printf, WidthAndPrecisionAsArguments) {
  EXPECT_EQ(printed("[%*d][%.*f]", {6 | 5ull << 32, 2, std::bit_cast<uint64_t>(1.23456)}), "[     5][1.23]");
}

TEST_F(Printf, WhatIsNoConversionIsCopied) {
  EXPECT_EQ(printed("a %y b %", {0}), "a %y b %");
}

TEST_F(Printf, AHugeFieldIsLimited) {
  EXPECT_LE(printed("%999999999d|%.999999999f", {1, 0}).size(), 4096u);
  EXPECT_EQ(printed("%n", {0}), "%n");
}

TEST_F(Printf, AFormatThatCannotBeReadFaults) {
  auto outcome = machine_.run("k", {.block = {1, 1, 1}}, uint64_t{16}, uint64_t{16});
  EXPECT_EQ(outcome.fault.cuda_error, kCudaIllegalAddress);
  EXPECT_NE(outcome.fault.text.find("printf"), std::string::npos);
}

}  // namespace
}  // namespace heddle::software
