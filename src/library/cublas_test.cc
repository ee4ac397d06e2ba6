#include "library/cublas.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace heddle::library::cublas {
namespace {

uint32_t number(Number of) {
  return static_cast<uint32_t>(of);
}

// A call whose sizes are 4, whose leading dimensions and steps are 16, and whose operands lie 1 MiB apart.
std::vector<uint64_t> plain_words(const Function& function, const Setting& setting = {}) {
  const auto packed = setting.pack();
  std::vector<uint64_t> words(packed.begin(), packed.end());
  uint64_t address = 0x100000;
  bool behind_operand = false;
  for (const Kind kind : function.kinds) {
    uint64_t value = 0;
    const bool operand = kind == Kind::kIn || kind == Kind::kOut || is_answer(kind);
    if (operand || is_scalar(kind) || is_parameters(kind)) value = address += 0x100000;
    if (kind == Kind::kDim) value = behind_operand ? 16 : 4;
    if (kind == Kind::kStride) value = 64;
    if (kind == Kind::kCompute) value = 68;
    if (kind == Kind::kType && function.element == Element::kC32) value = 4;
    words.push_back(value);
    for (uint32_t i = 1; i < words_of(kind); ++i) words.push_back(0);
    behind_operand = operand || (behind_operand && kind == Kind::kType);
  }
  return words;
}

Result<Demand> check(Number function, const std::vector<uint64_t>& words) {
  return library::demand({Library::kCublas, number(function), words});
}

TEST(CublasTable, EveryShapeReadsTheArgumentsOfItsFunctions) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < functions().size(); ++i) {
    const Function& function = functions()[i];
    EXPECT_TRUE(names.insert(function.name).second) << function.name;
    for (const bool on_device : {false, true}) {
      const auto words = plain_words(function, {.scalars_on_device = on_device});
      const auto demand = library::demand({Library::kCublas, i, words});
      ASSERT_TRUE(demand) << function.name << ": " << demand.error().text;
      EXPECT_FALSE(demand->operands.empty()) << function.name;
      // Nothing is an operand that no argument names, and whatever is written is among them.
      std::set<uint64_t> addresses;
      for (const Operand& operand : demand->operands) {
        EXPECT_TRUE(addresses.insert(operand.address).second) << function.name;
        EXPECT_NE(std::find(words.begin(), words.end(), operand.address), words.end()) << function.name;
        EXPECT_LT(operand.bytes, 0x10000u) << function.name;
      }
      EXPECT_TRUE(std::any_of(demand->operands.begin(), demand->operands.end(), [](const Operand& operand) {
        return operand.written;
      })) << function.name;
    }
  }
}

TEST(CublasTable, WordsMustBeExactlyTheFunctions) {
  for (uint32_t i = 0; i < functions().size(); ++i) {
    auto words = plain_words(functions()[i]);
    words.push_back(0);
    EXPECT_FALSE(library::demand({Library::kCublas, i, words})) << functions()[i].name;
    words.resize(words.size() - 2);
    EXPECT_FALSE(library::demand({Library::kCublas, i, words})) << functions()[i].name;
  }
  EXPECT_FALSE(library::demand({Library::kCublas, static_cast<uint32_t>(functions().size()), {}}));
  EXPECT_FALSE(library::demand({static_cast<Library>(3), 0, {}}));
}

// cublasSgemm of op(A) 3 x 5, op(B) 5 x 7.
std::vector<uint64_t> sgemm(uint64_t a_op, uint64_t b_op, uint64_t lda, uint64_t ldb, uint64_t ldc) {
  const auto setting = Setting{}.pack();
  std::vector<uint64_t> words(setting.begin(), setting.end());
  for (const uint64_t word :
       {a_op, b_op, uint64_t{3}, uint64_t{7}, uint64_t{5}, uint64_t{0}, uint64_t{0}, uint64_t{0xa000}, lda,
        uint64_t{0xb000}, ldb, uint64_t{0}, uint64_t{0}, uint64_t{0xc000}, ldc})
    words.push_back(word);
  return words;
}

TEST(CublasDemand, KnowsTheExtentsOfAProduct) {
  const auto demand = check(Number::Sgemm_v2, sgemm(0, 1, 4, 9, 6));
  ASSERT_TRUE(demand) << demand.error().text;
  ASSERT_EQ(demand->operands.size(), 3u);
  EXPECT_EQ(demand->operands[0].address, 0xa000u);
  EXPECT_EQ(demand->operands[0].bytes, (4 * 4 + 3) * 4u);  // 3 x 5, 4 apart
  EXPECT_EQ(demand->operands[1].bytes, (4 * 9 + 7) * 4u);  // 7 x 5, 9 apart
  EXPECT_EQ(demand->operands[2].bytes, (6 * 6 + 3) * 4u);  // 3 x 7, 6 apart
  EXPECT_TRUE(demand->operands[2].written);
  EXPECT_FALSE(demand->operands[0].written);
  EXPECT_EQ(demand->flops, 2.0 * 3 * 7 * 5);
}

TEST(CublasDemand, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(check(Number::Sgemm_v2, sgemm(0, 0, 3, 5, 3)));
  EXPECT_FALSE(check(Number::Sgemm_v2, sgemm(3, 0, 3, 5, 3)));  // no such operation
  EXPECT_FALSE(check(Number::Sgemm_v2, sgemm(0, 0, 2, 5, 3)));  // rows overlap
  EXPECT_FALSE(check(Number::Sgemm_v2, sgemm(1, 0, 4, 5, 3)));  // of the transposed one
  EXPECT_FALSE(check(Number::Sgemm_v2, sgemm(0, 0, 3, 5, 0)));
  for (const size_t size : {5u, 6u, 7u}) {
    auto words = sgemm(0, 0, 3, 5, 3);
    words[size] = static_cast<uint64_t>(int64_t{-1});
    EXPECT_FALSE(check(Number::Sgemm_v2, words)) << size;
    words[size] = 1ull << 40;  // and no _64
    EXPECT_FALSE(check(Number::Sgemm_v2, words)) << size;
    words[0] |= 1;
    words[11] = words[13] = words[17] = INT64_MAX;
    EXPECT_FALSE(check(Number::Sgemm_v2, words)) << size;  // larger than any memory
  }
  auto flags = sgemm(0, 0, 3, 5, 3);
  flags[0] = 8;
  EXPECT_FALSE(check(Number::Sgemm_v2, flags));
}

TEST(CublasDemand, NothingIsNoOperand) {
  auto words = sgemm(0, 0, 3, 5, 3);
  words[5] = 0;  // m
  const auto demand = check(Number::Sgemm_v2, words);
  ASSERT_TRUE(demand);
  EXPECT_EQ(demand->operands.size(), 1u);  // B; it is not looked at
}

TEST(CublasDemand, AStepBackwardsCoversTheSameMemory) {
  const auto setting = Setting{}.pack();
  std::vector<uint64_t> words(setting.begin(), setting.end());
  for (const int64_t word : {10, 0xa000, -3, 0xb000, 2}) words.push_back(static_cast<uint64_t>(word));
  const auto demand = check(Number::Dcopy_v2, words);
  ASSERT_TRUE(demand) << demand.error().text;
  EXPECT_EQ(demand->operands[0].bytes, (9 * 3 + 1) * 8u);
  EXPECT_EQ(demand->operands[1].bytes, (9 * 2 + 1) * 8u);
}

TEST(CublasDemand, CoversAWholeBatch) {
  auto words = plain_words(functions()[number(Number::DgemmStridedBatched)]);
  words.back() = 3;
  const auto demand = check(Number::DgemmStridedBatched, words);
  ASSERT_TRUE(demand) << demand.error().text;
  EXPECT_EQ(demand->operands[0].bytes, (2 * 64 + 3 * 16 + 4) * 8u);
  auto batched = plain_words(functions()[number(Number::SgemmBatched)]);
  batched.back() = 1000;
  const auto arrays = check(Number::SgemmBatched, batched);
  ASSERT_TRUE(arrays);
  EXPECT_EQ(arrays->operands[0].pointers, 1000u);
  EXPECT_EQ(arrays->operands[0].bytes, (3 * 16 + 4) * 4u);
}

// n = 4, A, lda, pivots, failures, batch
TEST(CublasDemand, CoversTheIntegersOfAFactorizedBatch) {
  auto words = plain_words(functions()[number(Number::ZgetrfBatched)]);
  words.back() = 7;
  const auto demand = check(Number::ZgetrfBatched, words);
  ASSERT_TRUE(demand) << demand.error().text;
  ASSERT_EQ(demand->operands.size(), 3u);
  EXPECT_EQ(demand->operands[0].pointers, 7u);
  EXPECT_EQ(demand->operands[0].bytes, (3 * 16 + 4) * 16u);
  EXPECT_TRUE(demand->operands[0].written);
  EXPECT_EQ(demand->operands[1].bytes, 7 * 4 * 4u);  // pivots
  EXPECT_EQ(demand->operands[2].bytes, 7 * 4u);
  words[words.size() - 3] = 0;  // without pivots
  const auto without = check(Number::ZgetrfBatched, words);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->operands.size(), 2u);
}

TEST(CublasDemand, KnowsWhichVectorsGoTogether) {
  const Function& function = functions()[number(Number::AxpyEx)];
  const auto words = plain_words(function);  // n, alpha, its type, x, type, step, y, type, step, execution
  const auto with = [&](uint64_t alpha, uint64_t x, uint64_t y, uint64_t execution) {
    auto changed = words;
    changed[3 + 3] = alpha, changed[3 + 5] = x, changed[3 + 8] = y, changed[3 + 10] = execution;
    return check(Number::AxpyEx, changed);
  };
  ASSERT_TRUE(with(0, 2, 2, 0));
  EXPECT_EQ(with(0, 2, 2, 0)->operands[0].bytes, (3 * 16 + 1) * 2u);
  EXPECT_TRUE(with(5, 5, 5, 5));
  EXPECT_EQ(with(0, 2, 0, 0).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(with(0, 2, 2, 2).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(with(1, 0, 0, 0).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(with(0, 3, 3, 0).error().code, ErrorCode::kNotSupported);
}

TEST(CublasDemand, HermitianUpdatesAreConjugatedAndSymmetricOnesAreNot) {
  const auto with = [](Number function, uint64_t operation) {
    auto words = plain_words(functions()[number(function)]);
    words[4] = operation;
    return check(function, words).has_value();
  };
  EXPECT_TRUE(with(Number::Cherk_v2, 2));
  EXPECT_FALSE(with(Number::Cherk_v2, 1));
  EXPECT_TRUE(with(Number::Csyrk_v2, 1));
  EXPECT_FALSE(with(Number::Csyrk_v2, 2));
  EXPECT_TRUE(with(Number::Ssyrk_v2, 2));
}

TEST(CublasValues, AreAsLargeAsTheirKindsSay) {
  const auto bytes = [](Number of, size_t index, bool wide = false) {
    const Function& function = functions()[number(of)];
    const auto words = plain_words(function);
    return value_bytes(function, std::span(words).subspan(Setting::kWords), index, wide);
  };
  EXPECT_EQ(bytes(Number::Zher_v2, 2), 8u);
  EXPECT_EQ(bytes(Number::Zaxpy_v2, 1), 16u);
  EXPECT_EQ(bytes(Number::Scnrm2_v2, 3), 4u);
  EXPECT_EQ(bytes(Number::Icamax_v2, 3), 4u);
  EXPECT_EQ(bytes(Number::Icamax_v2, 3, true), 8u);
  EXPECT_EQ(bytes(Number::Zrotg_v2, 2), 8u);
  EXPECT_EQ(bytes(Number::RotEx, 7), 4u);  // by the type behind both
}

TEST(CublasDemand, KnowsWhichTypesAreMultiplied) {
  const Function& function = functions()[number(Number::GemmEx)];
  auto words = plain_words(function);
  const auto with = [&](int a, int b, int c, int compute) {
    auto changed = words;
    changed[3 + 8] = static_cast<uint64_t>(a), changed[3 + 11] = static_cast<uint64_t>(b);
    changed[3 + 16] = static_cast<uint64_t>(c), changed[3 + 18] = static_cast<uint64_t>(compute);
    return check(Number::GemmEx, changed);
  };
  EXPECT_TRUE(with(0, 0, 0, 68));
  EXPECT_TRUE(with(2, 2, 2, 64));
  EXPECT_TRUE(with(14, 14, 0, 68));
  EXPECT_TRUE(with(3, 3, 10, 72));
  EXPECT_TRUE(with(1, 1, 1, 70));
  EXPECT_EQ(with(0, 2, 0, 68).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(with(28, 28, 14, 68).error().code, ErrorCode::kNotSupported);  // FP8
  EXPECT_EQ(with(3, 3, 3, 72).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(with(0, 0, 0, 99).error().code, ErrorCode::kNotSupported);
  ASSERT_TRUE(with(2, 2, 0, 68));
  EXPECT_EQ(with(2, 2, 0, 68)->operands[0].bytes, (3 * 16 + 4) * 2u);
  EXPECT_EQ(with(2, 2, 0, 68)->operands[2].bytes, (3 * 16 + 4) * 4u);
}

}  // namespace
}  // namespace heddle::library::cublas
