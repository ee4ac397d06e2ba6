#include "library/cufft.h"

#include <gtest/gtest.h>

namespace heddle::library::cufft {
namespace {

Transform plan(Function function, uint32_t rank, std::array<int64_t, 3> size, int64_t batch = 1) {
  Transform made;
  made.type = type_of(function);
  made.rank = rank;
  made.size = size;
  made.batch = batch;
  made.input = 0x10000, made.output = 0x20000;
  return made;
}

Result<Demand> check(Function function, const Transform& transform) {
  const auto words = transform.pack();
  return library::demand({Library::kCufft, static_cast<uint32_t>(function), words});
}

TEST(CufftCall, TravelsAsItIs) {
  Transform sent = plan(Function::kD2Z, 2, {1, 4, 6}, 3);
  sent.in = {false, {1, 5, 8}, 2, 100};
  sent.forward = false;
  sent.work = 0x30000, sent.work_bytes = 64;
  const auto words = sent.pack();
  const auto back = Transform::unpack(words);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pack(), words);
  EXPECT_EQ(back->in.embed[2], 8);
  EXPECT_FALSE(back->in.basic);
  EXPECT_TRUE(back->out.basic);
}

TEST(CufftDemand, OfRealNumbersHalfIsComplex) {
  const auto demand = check(Function::kR2C, plan(Function::kR2C, 2, {1, 4, 6}, 3));
  ASSERT_TRUE(demand) << demand.error().text;
  ASSERT_EQ(demand->operands.size(), 2u);
  EXPECT_EQ(demand->operands[0].bytes, 3 * 4 * 6 * 4u);
  EXPECT_FALSE(demand->operands[0].written);
  EXPECT_EQ(demand->operands[1].bytes, 3 * 4 * 4 * 8u);
  EXPECT_TRUE(demand->operands[1].written);
}

TEST(CufftDemand, InPlaceRowsOfRealNumbersArePadded) {
  Transform in_place = plan(Function::kR2C, 2, {1, 4, 6}, 3);
  in_place.output = in_place.input;
  EXPECT_EQ(input_of(in_place, Function::kR2C).layout.embed[2], 8);
  const auto demand = check(Function::kR2C, in_place);
  ASSERT_TRUE(demand);
  EXPECT_TRUE(demand->operands[0].written);
  EXPECT_EQ(demand->operands[1].bytes, 3 * 4 * 4 * 8u);
}

TEST(CufftDemand, CoversStridesAndDistances) {
  Transform spread = plan(Function::kC2C, 1, {1, 1, 8}, 2);
  spread.in = {false, {1, 1, 8}, 3, 50};
  const auto demand = check(Function::kC2C, spread);
  ASSERT_TRUE(demand);
  EXPECT_EQ(demand->operands[0].bytes, (50 + 7 * 3 + 1) * 8u);
}

TEST(CufftDemand, RefusesWhatMakesNoSense) {
  const Transform good = plan(Function::kC2C, 1, {1, 1, 8});
  EXPECT_TRUE(check(Function::kC2C, good));
  EXPECT_FALSE(check(Function::kR2C, good));  // another type's plan
  const auto with = [&](auto change) {
    Transform bad = good;
    change(bad);
    return check(Function::kC2C, bad).has_value();
  };
  EXPECT_FALSE(with([](Transform& of) { of.rank = 4; }));
  EXPECT_FALSE(with([](Transform& of) { of.size[2] = 0; }));
  EXPECT_FALSE(with([](Transform& of) { of.batch = -1; }));
  EXPECT_FALSE(with([](Transform& of) { of.in = {false, {1, 1, 8}, 0, 8}; }));
  EXPECT_FALSE(with([](Transform& of) { of.batch = INT64_C(1) << 40, of.size[2] = INT64_C(1) << 40; }));
  EXPECT_FALSE(with([](Transform& of) {
    of.in = {false, {1, INT64_MAX, INT64_MAX}, INT64_MAX, INT64_MAX}, of.batch = 2;
  }));
}

}  // namespace
}  // namespace heddle::library::cufft
