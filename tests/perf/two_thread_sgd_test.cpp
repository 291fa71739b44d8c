// two_thread_sgd_test.cpp -- compares the two-thread bound of pushes with plain indexing.
#include "perf/bench/two_thread_sgd.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "perf/bench/ids.hpp"

namespace capstan::perf {
namespace {

TEST(TwoThreadSgd, AppliesEveryPushOnce) {
  constexpr std::uint64_t kTableRows = 1000;
  for (const std::uint64_t width : {1, 64, 300}) {
    std::vector<float> table(kTableRows * width, 0);
    std::vector<float> expected = table;
    TwoThreadSgd sgd(table, width, 8);
    for (std::size_t push = 0; push < 30; ++push) {
      std::vector<std::int64_t> ids(1 + 1500 * (push % 4));  // the last ones fill several entries
      Ids("zipf", kTableRows, 1.05, push).draw(ids);
      std::vector<float> gradient(ids.size() * width);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>((i + push) % 7) - 3;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        expected[static_cast<std::size_t>(ids[i / width]) * width + i % width] -= gradient[i];
      sgd.push(ids, gradient.data());
      if (push % 3 == 0) {
        sgd.flush();
        ASSERT_EQ(table, expected) << width << " " << push;
      }
    }
    sgd.flush();
    EXPECT_EQ(table, expected) << width;
  }
}

}  // namespace
}  // namespace capstan::perf
