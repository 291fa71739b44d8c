// read_cache_test.cpp -- reads of a thread with an open CachingScope.
// Tests: src/strategy/caching_scope.cpp
#include "strategy/read_cache.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "capstan/detail/caching_scope.hpp"
#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

using SharedVariable = std::shared_ptr<const BoundVariable>;

/// Reads three numbers through `cache`; the ps holds first, first + 1 and first + 2.
class CachedReads {
 public:
  std::vector<int> read(ReadCache& cache, const SharedVariable& variable, int first) {
    std::vector<int> out(3);
    cache.read(variable, out.data(), out.size() * sizeof(int), [&](void* to) {
      ++reads;
      for (int i = 0; i < 3; ++i) static_cast<int*>(to)[i] = first + i;
    });
    return out;
  }
  int reads = 0;
};

TEST(ReadCache, ReadsAVariableOnce) {
  ReadCache cache;
  CachedReads ps;
  const auto variable = std::make_shared<const BoundVariable>();
  EXPECT_EQ(ps.read(cache, variable, 1), (std::vector{1, 2, 3}));
  EXPECT_EQ(ps.read(cache, variable, 7), (std::vector{1, 2, 3})) << "later changes are not seen";
  EXPECT_EQ(ps.reads, 1);
}

TEST(ReadCache, DistinguishesVariables) {
  ReadCache cache;
  CachedReads ps;
  const auto first = std::make_shared<const BoundVariable>();
  const auto second = std::make_shared<const BoundVariable>();  // equal, but a different object
  EXPECT_EQ(ps.read(cache, first, 1), (std::vector{1, 2, 3}));
  EXPECT_EQ(ps.read(cache, second, 4), (std::vector{4, 5, 6}));
  EXPECT_EQ(ps.read(cache, first, 0), (std::vector{1, 2, 3}));
  EXPECT_EQ(ps.reads, 2);
}

TEST(ReadCache, IsUnaffectedByChangesToAReturnedCopy) {
  ReadCache cache;
  CachedReads ps;
  const auto variable = std::make_shared<const BoundVariable>();
  std::vector<int> out = ps.read(cache, variable, 1);
  out.assign(3, 99);
  EXPECT_EQ(ps.read(cache, variable, 1), (std::vector{1, 2, 3}));
}

TEST(ReadCache, CachesNothingIfTheReadThrows) {
  ReadCache cache;
  CachedReads ps;
  const auto variable = std::make_shared<const BoundVariable>();
  int out = 0;
  EXPECT_THROW(cache.read(variable, &out, sizeof out, [](void*) { throw std::runtime_error("dead"); }),
               std::runtime_error);
  EXPECT_EQ(ps.read(cache, variable, 5), (std::vector{5, 6, 7}));
  EXPECT_EQ(ps.reads, 1);
}

TEST(ReadCache, KeepsItsVariablesAlive) {
  // Otherwise a new variable at the same address would hit the old entry.
  CachedReads ps;
  std::weak_ptr<const BoundVariable> alive;
  {
    ReadCache cache;
    auto variable = std::make_shared<const BoundVariable>();
    alive = variable;
    ps.read(cache, variable, 1);
    variable.reset();
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(ReadCache, IsLocalToTheThreadOfTheScope) {
  EXPECT_EQ(ReadCache::current(), nullptr);
  {
    const CachingScope scope;
    EXPECT_NE(ReadCache::current(), nullptr);
    std::jthread([] {
      EXPECT_EQ(ReadCache::current(), nullptr);
      const CachingScope of_another_thread;
      EXPECT_NE(ReadCache::current(), nullptr);
    }).join();
    EXPECT_NE(ReadCache::current(), nullptr);
  }
  EXPECT_EQ(ReadCache::current(), nullptr);
}

TEST(ReadCache, RejectsNestedScopes) {
  {
    const CachingScope scope;
    ReadCache* const cache = ReadCache::current();
    (void)error_of(Code::invalid_argument, [] { const CachingScope inner; });
    EXPECT_EQ(ReadCache::current(), cache) << "the outer scope must stay open";
  }
  const CachingScope next;
  EXPECT_NE(ReadCache::current(), nullptr);
}

}  // namespace
}  // namespace capstan::strategy
