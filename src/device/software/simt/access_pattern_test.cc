// Accesses whose lanes' addresses follow a pattern take other ways through the interpreter than those whose do not; all
// must do what each lane asks for. The reference takes the lanes one by one.

#include <cstring>
#include <functional>

#include "device/software/simt/testing/instruction.h"

namespace heddle::software {
namespace {

constexpr uint32_t kBytes = 2048;

struct Pattern {
  const char* name;
  std::function<uint32_t(uint32_t)> element;  // which one a lane accesses
};

const Pattern kPatterns[] = {
    {"row", [](uint32_t lane) { return 3 + lane; }},
    {"uniform", [](uint32_t) { return 5u; }},
    {"rows of 8", [](uint32_t lane) { return lane % 8 + lane / 8 * 17; }},
    {"the same row of 16 twice", [](uint32_t lane) { return 1 + lane % 16; }},
    {"one element for 8 lanes", [](uint32_t lane) { return 2 + lane / 8 * 9; }},
    {"one element for 16 lanes", [](uint32_t lane) { return 60 - lane / 16 * 9; }},
    {"backwards", [](uint32_t lane) { return 40 - lane; }},
    {"every other", [](uint32_t lane) { return 2 * lane; }},
    {"a row but for one lane", [](uint32_t lane) { return lane == 13 ? 0 : 7 + lane; }},
    {"uniform but for one lane", [](uint32_t lane) { return lane == 13 ? 0u : 7u; }},
    {"rows of 8 but for one lane", [](uint32_t lane) { return lane == 13 ? 0 : lane % 8 + lane / 8 * 17; }},
    {"the end and the beginning", [](uint32_t lane) { return lane % 2 ? 63 : lane; }},
};
constexpr uint32_t kMasks[] = {kAllLanes, 1u << 9, 0xFFFFu, 0xFFFF0000u, 0x55555555u, 0x00FFFF00u, 1u << 31 | 1u};

struct Form {
  const char* type;
  uint32_t bytes;  // of an element
};
constexpr Form kForms[] = {{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}};

// A kernel that lets each lane of the mask do `access` with its value in %v, at its own place %a of `data`, of which
// shared memory has a copy; that is written back at the end.
std::string kernel(const std::string& access, bool shared) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 copy[];\n"
      ".entry k(.param .u64 out, .param .u64 data, .param .u64 offsets, .param .u32 mask) {\n"
      ".reg .b64 %out, %data, %offsets, %v, %mine, %a, %from; .reg .b32 %t, %mask, %offset, %s, %w, %word;\n"
      ".reg .pred %p;\n"
      "ld.param.u64 %out, [out]; ld.param.u64 %data, [data]; ld.param.u64 %offsets, [offsets];\n"
      "ld.param.u32 %mask, [mask]; mov.u32 %t, %tid.x; mul.wide.u32 %mine, %t, 8; add.u64 %mine, %mine, %out;\n"
      "mul.wide.u32 %a, %t, 4; add.u64 %offsets, %offsets, %a; add.u64 %from, %data, %a;\n"
      "ld.global.u32 %offset, [%offsets]; ld.global.u64 %v, [%mine]; mov.u32 %s, copy; mad.lo.u32 %w, %t, 4, %s;\n";
  auto copy = [&](const char* form) {
    for (uint32_t i = 0; i < kBytes / 128 && shared; ++i) text += stringf(form, 128 * i, 128 * i) + "\n";
  };
  copy("ld.global.u32 %%word, [%%from+%u]; st.shared.u32 [%%w+%u], %%word;");
  text += shared ? "bar.sync 0; add.u32 %s, %s, %offset;\n" : "cvt.u64.u32 %a, %offset; add.u64 %a, %a, %data;\n";
  text += "shr.u32 %mask, %mask, %t; and.b32 %mask, %mask, 1; setp.ne.u32 %p, %mask, 0;\n@%p " + access + "\n";
  text += shared ? "bar.sync 0;\n" : "";
  copy("ld.shared.u32 %%word, [%%w+%u]; st.global.u32 [%%from+%u], %%word;");
  return text + "st.global.u64 [%mine], %v; ret; }\n";
}

struct Result {
  std::vector<uint64_t> values;  // of the lanes
  std::vector<uint8_t> data;
  bool operator==(const Result&) const = default;
};

class AccessPattern : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  AccessPattern() {
    for (uint32_t i = 0; i < kBytes; ++i) before_.data.push_back(static_cast<uint8_t>(i * 7 + i / 256));
    for (uint64_t lane = 0; lane < kLanes; ++lane) before_.values.push_back(0x1122334455667700 + lane);
  }

  // What the kernel leaves, and the traffic of it all.
  Result run(const std::vector<uint32_t>& offsets, uint32_t mask, uint64_t& traffic) {
    Machine::Launch launch;
    launch.dynamic_shared = kBytes;
    uint64_t out = machine_.put(before_.values), data = machine_.put(before_.data), table = machine_.put(offsets);
    auto outcome = machine_.run("k", launch, out, data, table, mask);
    EXPECT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.refusal << outcome.fault.text;
    traffic = outcome.counters.global_bytes;
    return {machine_.get<uint64_t>(out, kLanes), machine_.get<uint8_t>(data, kBytes)};
  }

  Result expected(const std::vector<uint32_t>& offsets, uint32_t mask, uint32_t bytes, bool write) const {
    Result result = before_;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      if (write) {
        std::memcpy(result.data.data() + offsets[lane], &result.values[lane], bytes);
      } else {
        result.values[lane] = 0;
        std::memcpy(&result.values[lane], result.data.data() + offsets[lane], bytes);
      }
    }
    return result;
  }

  void check(bool write, bool shared) {
    for (const Form& form : kForms) {
      std::string place = shared ? "[%s+16]" : "[%a+16]",
                  name = std::string(shared ? ".shared." : ".global.") + form.type;
      machine_.load(kernel(write ? "st" + name + " " + place + ", %v;" : "ld" + name + " %v, " + place + ";", shared));
      for (const Pattern& pattern : kPatterns)
        for (uint32_t mask : kMasks) {
          std::vector<uint32_t> ahead, offsets;
          for (uint32_t lane = 0; lane < kLanes; ++lane) {
            ahead.push_back(pattern.element(lane) * form.bytes);
            offsets.push_back(ahead.back() + 16);
          }
          uint64_t traffic = 0, without = 0;
          EXPECT_EQ(run(ahead, mask, traffic), expected(offsets, mask, form.bytes, write))
              << pattern.name << " of " << form.type << ", lanes " << std::hex << mask;
          run(ahead, 0, without);
          EXPECT_EQ(traffic - without, shared ? 0 : 32 * sectors(offsets, mask)) << pattern.name << " of " << form.type;
        }
    }
  }

  // Changes of sector from lane to lane.
  static uint64_t sectors(const std::vector<uint32_t>& offsets, uint32_t mask) {
    uint64_t count = 0, previous = ~uint64_t{0};
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1)) continue;
      count += offsets[lane] / 32 != previous;
      previous = offsets[lane] / 32;
    }
    return count;
  }

  Machine machine_{*GetParam()};
  Result before_;
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AccessPattern, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

TEST_P(AccessPattern, GlobalLoads) {
  check(false, false);
}
TEST_P(AccessPattern, SharedLoads) {
  check(false, true);
}
TEST_P(AccessPattern, GlobalStores) {
  check(true, false);
}
TEST_P(AccessPattern, SharedStores) {
  check(true, true);
}

// Lanes that do not run may have addresses anywhere, also where the row would end beyond the memory.
TEST_P(AccessPattern, ARowMayEndWithItsActiveLanes) {
  machine_.load(kernel("ld.shared.u32 %v, [%s];", true));
  std::vector<uint32_t> offsets;
  for (uint32_t lane = 0; lane < kLanes; ++lane) offsets.push_back(kBytes - 40 + 4 * lane);
  uint64_t traffic = 0;
  EXPECT_EQ(run(offsets, 0x3FF, traffic), expected(offsets, 0x3FF, 4, false));
}

}  // namespace
}  // namespace heddle::software
