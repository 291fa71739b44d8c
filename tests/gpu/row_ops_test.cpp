// row_ops_test.cpp -- rows in GPU memory, copied and updated by each optimizer, compared with the CPU.
// Tests: src/gpu/row_copy.cu
// Tests: src/gpu/row_sort_cub.cu
// Tests: src/gpu/row_update.cu
// Tests: src/gpu/row_update_double.cu
// Tests: src/gpu/row_update_half.cu
#include "gpu/row_ops.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "capstan/error.hpp"
#include "gpu/row_bodies.hpp"
#include "tests/gpu/gpu_to_test.hpp"
#include "tests/gpu/plain_push.hpp"

namespace capstan::gpu {
namespace {

class RowOps : public OnGpu {};
class Gpu : public OnGpu {};

TEST(Gpus, ReportWhyThereAreNone) {
  EXPECT_EQ(why_none().empty(), count() > 0);
  EXPECT_THROW((void)info(count()), Error);
}

TEST_F(Gpu, ReportsItsProperties) {
  const Info found = info(0);
  EXPECT_FALSE(found.name.empty());
  EXPECT_GE(found.bytes, found.free_bytes);
  EXPECT_GE(found.major, 8);
}

TEST_F(Gpu, RunningOutOfMemoryIsAnErrorAndLeavesTheGpuUsable) {
  try {
    const Memory all(0, info(0).bytes + 1);
    FAIL() << "allocated more than the GPU has";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
    EXPECT_NE(std::string(error.what()).find("GPU 0 ("), std::string::npos) << error.what();
  }
  const std::vector<int> values{1, 2, 3};
  EXPECT_EQ(to_host(to_gpu(values)), values);
}

TEST_F(RowOps, RowsAreGatheredAndScattered) {
  for (const std::uint64_t row_bytes : {1, 2, 3, 4, 6, 8, 12, 16, 20, 48, 256, 260, 1040}) {
    for (const std::uint32_t rows : {1U, 37U, 5000U}) {
      std::vector<std::byte> table(rows * row_bytes);
      for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::byte(i * 7 % 251);
      const auto on_gpu = to_gpu(table);
      for (const auto& [name, named] : pushes_to_try(rows, 3)) {
        SCOPED_TRACE(name + ", " + std::to_string(row_bytes) + " bytes, " + std::to_string(rows));
        const auto device_rows = to_gpu(named);
        const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
        Values<std::byte> out(0, named.size() * row_bytes);
        RowCopy call{
            on_gpu.data(), rows,      row_bytes, device_rows.data(), static_cast<std::uint32_t>(named.size()),
            out.data(),    bad.data()};
        gather(*stream_, call);
        const auto got = to_host(out);
        for (std::size_t i = 0; i < named.size(); ++i) {
          std::vector<std::byte> expected(row_bytes);
          if (named[i] < rows) std::memcpy(expected.data(), table.data() + named[i] * row_bytes, row_bytes);
          ASSERT_EQ(std::memcmp(got.data() + i * row_bytes, expected.data(), row_bytes), 0) << i;
        }
        EXPECT_EQ(to_host(bad)[0], first_bad_of(named, rows));
        const auto copied = to_gpu(std::vector<std::byte>(table.size()));
        call.table = copied.data();
        scatter(*stream_, call);
        const auto back = to_host(copied);
        for (const std::uint32_t row : named) {
          if (row >= rows) continue;
          ASSERT_EQ(std::memcmp(back.data() + row * row_bytes, table.data() + row * row_bytes, row_bytes), 0);
        }
      }
    }
  }
}

TEST_F(RowOps, RowsAtAnyAddressAreGathered) {
  for (const std::uint64_t row_bytes : {1, 2, 3, 4, 6, 8, 12, 16, 20, 48, 256, 260, 1040}) {
    SCOPED_TRACE(row_bytes);
    constexpr std::size_t kRows = 37;
    std::vector<std::byte> table(kRows * row_bytes);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::byte(i * 7 % 251);
    const std::vector<std::byte> other(table.rbegin(), table.rend());
    const auto device_table = to_gpu(table), device_other = to_gpu(other);
    std::vector<std::uint64_t> addresses;
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < 500; ++i) {
      const std::size_t at = i * 31 % kRows * row_bytes;
      const bool first = i % 3 != 0;
      addresses.push_back(
          reinterpret_cast<std::uintptr_t>((first ? device_table : device_other).data() + at));
      const auto row = (first ? table : other).begin() + static_cast<std::ptrdiff_t>(at);
      expected.insert(expected.end(), row, row + static_cast<std::ptrdiff_t>(row_bytes));
    }
    const auto from = to_gpu(addresses);
    const Values<std::byte> out(0, expected.size());
    const std::uint64_t multiple = row_bytes & ~(row_bytes - 1);
    gather(*stream_, {from.data(), 500, row_bytes, multiple, out.data()});
    EXPECT_EQ(to_host(out), expected);
  }
}

TEST_F(RowOps, TablesOfMoreThan2To31ElementsAreAccessible) {
  constexpr std::uint32_t kRows = (std::uint32_t{1} << 31) / 16 + 1000;
  constexpr std::uint64_t kBytes = 64;  // 16 floats
  if (info(0).free_bytes < kRows * kBytes * 2) GTEST_SKIP() << "this GPU has less than 18 GB of free memory";
  const Values<float> table(0, std::uint64_t{kRows} * 16);
  fill_with_zeros(*stream_, table.data(), table.size() * sizeof(float));
  const std::vector<std::uint32_t> named{kRows - 1, 0, kRows / 2};
  std::vector<float> rows(named.size() * 16);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i + 1);
  const auto device_rows = to_gpu(named);
  const auto in = to_gpu(rows);
  const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
  RowCopy call{reinterpret_cast<std::byte*>(table.data()), kRows,     kBytes, device_rows.data(), 3,
               reinterpret_cast<std::byte*>(in.data()),    bad.data()};
  scatter(*stream_, call);
  const auto out = to_gpu(std::vector<float>(rows.size()));
  call.packed = reinterpret_cast<std::byte*>(out.data());
  gather(*stream_, call);
  EXPECT_EQ(to_host(out), rows);
}

template <class T>
class Updates : public OnGpu {
 protected:
  void check(const Optimizer& o, std::uint64_t width, bool deterministic, double tolerance) {
    constexpr std::uint32_t kRows = 29;
    SCOPED_TRACE(std::string(to_string(o.kind)) + ", width " + std::to_string(width) +
                 (deterministic ? ", deterministic" : ""));
    PlainTable<T> table(kRows, width, o, 1);
    const auto values = to_gpu(table.values);
    const auto slot0 = to_gpu(table.slot0);
    const auto slot1 = to_gpu(table.slot1);
    Updater updater(*stream_, kRows, deterministic);
    std::mt19937 random(2);
    std::int64_t step = 0;
    for (const auto& [name, rows] : pushes_to_try(kRows, 3)) {
      SCOPED_TRACE(name);
      const auto gradient = small_gradient<T>(rows.size() * width, random);
      const auto named = to_gpu(rows);
      const auto pushed = to_gpu(gradient);
      const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
      ++step;
      updater.apply(*stream_, o,
                    Update<T>{values.data(),
                              slot0.data(),
                              slot1.data(),
                              width,
                              kRows,
                              named.data(),
                              0,
                              static_cast<std::uint32_t>(rows.size()),
                              pushed.data(),
                              step,
                              {},
                              bad.data()});
      table.push(o, rows, gradient, step);
      if (!rows.empty()) {
        EXPECT_EQ(to_host(bad)[0], first_bad_of(rows, kRows));
      }
      const auto now = to_host(values);
      for (std::size_t i = 0; i < now.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(gpu::widened(now[i])), table.expected[i].w, tolerance)
            << "element " << i;
      }
    }
  }
};

/// Tolerance for values around 1; a 16-bit value may round the other way once.
template <class T>
constexpr double tolerance_of() {
  if (std::is_same_v<T, double>) return 1e-9;
  if (std::is_same_v<T, float>) return 2e-4;
  if (std::is_same_v<T, float16>) return 2e-2;
  if (std::is_same_v<T, bfloat16>) return 1.5e-1;
  return 0;
}

using Types = testing::Types<float, double, float16, bfloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Updates, Types);

TYPED_TEST(Updates, AgreeWithTheCpu) {
  // Stand-ins are slow; row_bodies_test covers the other widths.
  const std::vector<std::uint64_t> widths =
      are_stand_ins() ? std::vector<std::uint64_t>{3, 8} : std::vector<std::uint64_t>{1, 3, 8, 64, 100};
  for (const std::uint64_t width : widths) {
    for (const bool deterministic : {false, true}) {
      if constexpr (std::is_integral_v<TypeParam>) {
        this->check(optimizers::SGD{3}, width, deterministic, 0);
      } else {
        for (const Optimizer& o : optimizers_to_test())
          this->check(o, width, deterministic, tolerance_of<TypeParam>());
      }
    }
  }
}

TEST_F(RowOps, IntegersRejectOptimizersOtherThanSgd) {
  Updater updater(*stream_, 1, false);
  const Values<std::int32_t> values(0, 1);
  Update<std::int32_t> update;
  update.values = update.gradient = values.data();
  update.width = update.table_rows = update.count = 1;
  EXPECT_THROW(updater.apply(*stream_, optimizers::Adam{}, update), Error);
}

TEST_F(RowOps, DeterministicUpdatesAreBitwiseReproducible) {
  std::mt19937 random(2);
  std::vector<std::uint32_t> rows(are_stand_ins() ? 10000 : 100000);
  std::vector<float> gradient(rows.size() * 4);
  for (auto& row : rows) row = random() % 50;
  for (auto& g : gradient) g = static_cast<float>(random()) / 1e9F;
  const auto named = to_gpu(rows);
  const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
  std::vector<float> first;
  for (int run = 0; run < 5; ++run) {
    const auto values = to_gpu(std::vector<float>(50 * 4, 1));
    const auto pushed = to_gpu(gradient);
    Updater updater(*stream_, 50, true);
    updater.apply(*stream_, optimizers::SGD{0.1},
                  Update<float>{values.data(),
                                nullptr,
                                nullptr,
                                4,
                                50,
                                named.data(),
                                0,
                                static_cast<std::uint32_t>(rows.size()),
                                pushed.data(),
                                1,
                                {},
                                bad.data()});
    const auto now = to_host(values);
    if (run == 0) first = now;
    EXPECT_EQ(std::memcmp(first.data(), now.data(), now.size() * sizeof(float)), 0);
  }
}

TEST_F(RowOps, StochasticRoundingHasTheCorrectMean) {
  constexpr std::uint32_t kElements = 1 << 20;
  const auto values = to_gpu(std::vector<bfloat16>(kElements, bfloat16(1)));
  const auto gradient = to_gpu(std::vector<bfloat16>(kElements, bfloat16(1)));
  Updater updater(*stream_, kElements, false);
  // The next number below 1 is 1 - 2^-8, so one element in four changes.
  updater.apply(*stream_, optimizers::SGD{1.0 / 1024},
                Update<bfloat16>{values.data(),
                                 nullptr,
                                 nullptr,
                                 1,
                                 kElements,
                                 nullptr,
                                 0,
                                 kElements,
                                 gradient.data(),
                                 1,
                                 {true, 5},
                                 nullptr});
  double sum = 0;
  for (const bfloat16 value : to_host(values)) sum += static_cast<double>(static_cast<float>(value));
  EXPECT_NEAR(sum / kElements, 1 - 1.0 / 1024, 1e-5);
}

TEST_F(RowOps, ScratchMemoryCanBeReservedInAdvance) {
  for (const bool deterministic : {false, true}) {
    const auto scratch = std::make_shared<UpdateScratch>(deterministic);
    scratch->reserve(*stream_, 100, 0);
    Updater updater(*stream_, 3, scratch);
    const auto values = to_gpu(std::vector<float>(3 * 4));
    const auto rows = to_gpu(std::vector<std::uint32_t>{2, 0, 2});
    const auto gradient = to_gpu(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40});
    const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
    updater.apply(
        *stream_, optimizers::SGD{1},
        Update<float>{
            values.data(), nullptr, nullptr, 4, 3, rows.data(), 0, 3, gradient.data(), 1, {}, bad.data()});
    EXPECT_EQ(to_host(values), (std::vector<float>{-5, -6, -7, -8, 0, 0, 0, 0, -11, -22, -33, -44}));
  }
}

TEST_F(RowOps, TenThousandUpdatesDoNotLeakMemory) {
  const auto values = to_gpu(std::vector<float>(1000 * 8, 1));
  const auto rows = to_gpu(std::vector<std::uint32_t>(500, 7));
  const auto gradient = to_gpu(std::vector<float>(500 * 8));
  const auto bad = to_gpu(std::vector<std::uint32_t>{kNoBadRow});
  const auto round = [&](bool deterministic) {
    Updater updater(*stream_, 1000, deterministic);
    for (int i = 0; i < 100; ++i) {
      updater.apply(*stream_, optimizers::SGD{},
                    Update<float>{values.data(),
                                  nullptr,
                                  nullptr,
                                  8,
                                  1000,
                                  rows.data(),
                                  0,
                                  500,
                                  gradient.data(),
                                  1,
                                  {},
                                  bad.data()});
    }
    stream_->wait();
  };
  round(true);
  const std::uint64_t before = info(0).free_bytes;
  for (int i = 0; i < (are_stand_ins() ? 4 : 100); ++i) round(i % 2 == 0);
  EXPECT_EQ(info(0).free_bytes, before);
}

}  // namespace
}  // namespace capstan::gpu
