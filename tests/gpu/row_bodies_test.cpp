// row_bodies_test.cpp -- bodies of GPU kernels for rows, run on the CPU in random order.
#include "gpu/row_bodies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "gpu/pieces.hpp"
#include "tests/gpu/plain_push.hpp"

namespace capstan::gpu {
namespace {

/// Runs a body as gpu/each.cuh does, but in random order: each step runs for several numbers together.
template <class Body>
void each_on_cpu(const Body& body, std::uint32_t count) {
  constexpr std::uint32_t kTogether = 4;
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  static std::mt19937 random(11);
  std::shuffle(order.begin(), order.end(), random);
  using Found = decltype(body.find(0U));
  using Read = decltype(body.load(0U, std::declval<Found>()));
  for (std::uint32_t first = 0; first < count; first += kTogether) {
    const std::uint32_t group = std::min(kTogether, count - first);
    Found found[kTogether];
    Read read[kTogether];
    for (std::uint32_t k = 0; k < group; ++k) found[k] = body.find(order[first + k]);
    for (std::uint32_t k = 0; k < group; ++k) read[k] = body.load(order[first + k], found[k]);
    for (std::uint32_t k = 0; k < group; ++k) body.store(order[first + k], found[k], read[k]);
  }
}

TEST(GatherAndScatter, CopyRowsAndReportInvalidOnes) {
  using P = Pack<std::uint32_t, 4>;
  constexpr std::uint32_t kRows = 37, kPacks = 3;
  std::vector<P> table(kRows * kPacks);
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i] = {{i, i + 1, i + 2, i + 3}};
  for (const auto& [name, rows] : pushes_to_try(kRows, 3)) {
    SCOPED_TRACE(name);
    const auto count = static_cast<std::uint32_t>(rows.size());
    std::vector<P> out(count * kPacks, P{{9, 9, 9, 9}});
    std::uint32_t bad = kNoBadRow;
    each_on_cpu(GatherBody<P>{table.data(), kRows, Divider(kPacks), rows.data(), out.data(), 0, &bad},
                count * kPacks);
    EXPECT_EQ(bad, first_bad_of(rows, kRows));
    for (std::uint32_t i = 0; i < count * kPacks; ++i) {
      const std::uint32_t row = rows[i / kPacks];
      const P expected = row < kRows ? table[row * kPacks + i % kPacks] : P{};
      ASSERT_EQ(std::memcmp(&out[i], &expected, sizeof(P)), 0) << i;
    }
    std::vector<P> copy(table.size());
    bad = kNoBadRow;
    each_on_cpu(ScatterBody<P>{copy.data(), kRows, Divider(kPacks), rows.data(), out.data(), 100, &bad},
                count * kPacks);
    const std::uint32_t first = first_bad_of(rows, kRows);
    EXPECT_EQ(bad, first == kNoBadRow ? first : first + 100) << "includes the first row of the piece";
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const bool named = std::find(rows.begin(), rows.end(), row) != rows.end();
      for (std::uint32_t pack = row * kPacks; pack < (row + 1) * kPacks; ++pack) {
        const P expected = named ? table[pack] : P{};
        ASSERT_EQ(std::memcmp(&copy[pack], &expected, sizeof(P)), 0) << pack;
      }
    }
  }
}

/// Runs the kernel bodies of Updater on the CPU.
template <class T, int kCount>
class Push {
  using A = Arithmetic<T>;
  using P = Pack<A, kCount>;

 public:
  explicit Push(bool deterministic) : deterministic_(deterministic) {}

  template <class Rule>
  std::uint32_t run(PlainTable<T>& table, const Rule& rule, const std::vector<std::uint32_t>& rows,
                    const std::vector<T>& pushed) {
    const auto count = static_cast<std::uint32_t>(rows.size());
    std::vector<A> gradient(pushed.size());
    for (std::size_t i = 0; i < pushed.size(); ++i) gradient[i] = gpu::widened(pushed[i]);
    std::vector<std::uint8_t> owns(count, 9);
    std::uint32_t bad = kNoBadRow;
    heads_.resize(table.rows);
    const auto table_rows = static_cast<std::uint32_t>(table.rows);
    const auto packs = static_cast<std::uint32_t>(table.width / kCount);
    // Two pieces, as for a push that has too many packs for one piece.
    const std::uint32_t half = count / 2;
    const auto pieces = [&](const auto& piece) {
      piece(0, half);
      piece(half, count - half);
    };
    if (deterministic_) {
      std::vector<std::uint32_t> order(count), sorted(count), starts(count);
      std::iota(order.begin(), order.end(), 0U);
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rows[a] < rows[b]; });
      for (std::uint32_t at = 0; at < count; ++at) sorted[at] = rows[order[at]];
      each_on_cpu(StartBody{sorted.data(), starts.data()}, count);
      for (std::uint32_t at = 1; at < count; ++at) starts[at] = std::max(starts[at], starts[at - 1]);
      for (std::uint32_t stride = 1; stride < count; stride *= 2) {
        pieces([&](std::uint32_t first, std::uint32_t piece) {
          each_on_cpu(TreeBody<P, A>{starts.data(), order.data(), count, stride, Divider(packs),
                                     gradient.data(), first},
                      piece * packs);
        });
      }
      each_on_cpu(OwnerBody{sorted.data(), starts.data(), order.data(), table_rows, owns.data(), &bad},
                  count);
    } else {
      each_on_cpu(ClaimBody{heads_.data(), table_rows, rows.data(), &bad}, count);
      pieces([&](std::uint32_t first, std::uint32_t piece) {
        each_on_cpu(FoldBody<P, A>{heads_.data(), table_rows, Divider(packs), rows.data(), gradient.data(),
                                   owns.data(), first},
                    piece * packs);
      });
    }
    pieces([&](std::uint32_t first, std::uint32_t piece) {
      using W = Pack<T, kCount>;
      each_on_cpu(UpdateBody<T, W, P, Rule>{rule,
                                            reinterpret_cast<W*>(table.values.data()),
                                            reinterpret_cast<P*>(table.slot0.data()),
                                            reinterpret_cast<P*>(table.slot1.data()),
                                            Divider(packs),
                                            rows.data() + first,
                                            owns.data() + first,
                                            deterministic_ ? nullptr : heads_.data(),
                                            0,
                                            reinterpret_cast<const P*>(gradient.data()) +
                                                std::uint64_t{first} * packs,
                                            {}},
                  piece * packs);
    });
    EXPECT_EQ(std::count(heads_.begin(), heads_.end(), 0U), static_cast<std::ptrdiff_t>(heads_.size()))
        << "heads are cleared for the next push";
    return bad;
  }

 private:
  bool deterministic_;
  std::vector<std::uint32_t> heads_;
};

template <class T, int kCount, class MakeRule>
void check(const Optimizer& o, std::uint64_t width, bool deterministic, double tolerance,
           const MakeRule& rule) {
  constexpr std::uint32_t kRows = 29;
  SCOPED_TRACE(std::string(to_string(o.kind)) + ", width " + std::to_string(width) +
               (deterministic ? ", deterministic" : ""));
  PlainTable<T> table(kRows, width, o, 1);
  Push<T, kCount> push(deterministic);
  std::mt19937 random(2);
  std::int64_t step = 0;
  for (const auto& [name, rows] : pushes_to_try(kRows, 3)) {
    SCOPED_TRACE(name);
    const auto gradient = small_gradient<T>(rows.size() * width, random);
    ++step;
    EXPECT_EQ((push.run(table, rule(step), rows, gradient)), first_bad_of(rows, kRows));
    table.push(o, rows, gradient, step);
    for (std::size_t i = 0; i < table.values.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(gpu::widened(table.values[i])), table.expected[i].w, tolerance)
          << "element " << i;
    }
  }
}

TEST(Updates, SumTheGradientsOfDuplicateRows) {
  for (const bool deterministic : {false, true}) {
    const Optimizer adam = optimizers::Adam{.learning_rate = 0.01};
    const auto of_adam = [&](std::int64_t step) { return Adam<float, false>(adam, step); };
    check<float, 4>(adam, 8, deterministic, 1e-4, of_adam);
    check<float, 1>(adam, 7, deterministic, 1e-4, of_adam);
    check<float, 1>(adam, 1, deterministic, 1e-4, of_adam);
    const Optimizer adagrad = optimizers::Adagrad{.learning_rate = 0.1};
    check<double, 2>(adagrad, 6, deterministic, 1e-9, [&](std::int64_t) { return Adagrad<double>(adagrad); });
    const Optimizer sgd = optimizers::SGD{0.1};
    check<float, 4>(sgd, 4, deterministic, 1e-4, [&](std::int64_t) { return Sgd<float>(sgd); });
    const Optimizer integer_sgd = optimizers::SGD{3};
    check<std::int64_t, 2>(integer_sgd, 2, deterministic, 0,
                           [&](std::int64_t) { return IntegerSgd<std::int64_t>(integer_sgd); });
    check<std::int32_t, 1>(integer_sgd, 5, deterministic, 0,
                           [&](std::int64_t) { return IntegerSgd<std::int32_t>(integer_sgd); });
  }
}

TEST(Updates, Round16BitTables) {
  const Optimizer sgd = optimizers::SGD{0.1};
  // The order of sums differs, so the tolerance is one unit in the last place of the largest value.
  check<float16, 8>(sgd, 16, true, 8e-3, [&](std::int64_t) { return Sgd<float>(sgd); });
  check<bfloat16, 1>(sgd, 3, false, 6e-2, [&](std::int64_t) { return Sgd<float>(sgd); });
}

TEST(Updates, AddAllGradientsOfSgdToTheTable) {
  constexpr std::uint32_t kRows = 29, kWidth = 8;
  const Optimizer sgd = optimizers::SGD{0.1};
  std::mt19937 random(2);
  using P = Pack<float, 4>;
  for (const auto& push : pushes_to_try(kRows, 3)) {
    SCOPED_TRACE(push.first);
    const std::vector<std::uint32_t>& rows = push.second;
    PlainTable<float> table(kRows, kWidth, sgd, 1);
    const auto gradient = small_gradient<float>(rows.size() * kWidth, random);
    const auto count = static_cast<std::uint32_t>(rows.size());
    std::uint32_t bad = kNoBadRow;
    const auto piece = [&](std::uint32_t first, std::uint32_t end) {
      const auto* const from = reinterpret_cast<const P*>(gradient.data()) + first * (kWidth / 4);
      each_on_cpu(AddBody<P, float>{table.values.data(), kRows, -0.1F, Divider(kWidth / 4),
                                    rows.data() + first, from, first, &bad},
                  (end - first) * (kWidth / 4));
    };
    piece(0, count / 2);
    piece(count / 2, count);
    EXPECT_EQ(bad, first_bad_of(rows, kRows));
    table.push(sgd, rows, gradient, 1);
    for (std::size_t i = 0; i < table.values.size(); ++i) {
      ASSERT_NEAR(table.values[i], table.expected[i].w, 1e-4) << "element " << i;
    }
  }
}

TEST(Updates, DenseGradientsStartAtFirstRow) {
  std::vector<float> values(20, 1);
  const std::vector<float> gradient{1, 2, 3, 4};
  using P = Pack<float, 1>;
  const Optimizer sgd = optimizers::SGD{1};
  each_on_cpu(UpdateBody<float, P, P, Sgd<float>>{Sgd<float>(sgd),
                                                  reinterpret_cast<P*>(values.data()),
                                                  nullptr,
                                                  nullptr,
                                                  Divider(2),
                                                  nullptr,
                                                  nullptr,
                                                  nullptr,
                                                  3,
                                                  reinterpret_cast<const P*>(gradient.data()),
                                                  {}},
              4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], i >= 6 && i < 10 ? 1 - gradient[i - 6] : 1) << i;
  }
}

TEST(Updates, DeterministicSumsDoNotDependOnThreadOrder) {
  const Optimizer sgd = optimizers::SGD{0.1};
  std::vector<float> first;
  std::mt19937 random(2);
  std::vector<std::uint32_t> rows(5000);
  std::vector<float> gradient(rows.size() * 4);
  for (auto& row : rows) row = random() % 3;
  for (auto& g : gradient) g = static_cast<float>(random()) / 1e9F;
  for (int run = 0; run < 3; ++run) {
    PlainTable<float> table(3, 4, sgd, 1);
    (void)Push<float, 4>(true).run(table, Sgd<float>(sgd), rows, gradient);
    if (run == 0) first = table.values;
    EXPECT_EQ(std::memcmp(first.data(), table.values.data(), first.size() * sizeof(float)), 0);
  }
}

TEST(Pieces, CoverAllRowsOnceWithinTheLimit) {
  for (const std::uint64_t packs : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{16},
                                    std::uint64_t{1} << 20, (std::uint64_t{1} << 31) - 1}) {
    for (const std::uint32_t rows : {0U, 1U, 5U, 3000U}) {
      std::uint64_t next = 0;
      in_pieces(rows, packs, [&](std::uint32_t first, std::uint32_t count) {
        EXPECT_EQ(first, next);
        EXPECT_GT(count, 0U);
        EXPECT_LT(count * packs, std::uint64_t{1} << 31);
        next = std::uint64_t{first} + count;
      });
      EXPECT_EQ(next, rows) << packs;
    }
  }
  std::uint64_t all = 0;
  in_pieces(0xFFFFFFFF, 16, [&](std::uint32_t, std::uint32_t count) { all += count; });
  EXPECT_EQ(all, 0xFFFFFFFFU);
  EXPECT_THROW(in_pieces(1, std::uint64_t{1} << 31, [](std::uint32_t, std::uint32_t) {}), Error);
}

}  // namespace
}  // namespace capstan::gpu
