// position_test.cpp -- for every operator: a restored position continues with the elements that followed it.
#include <gmock/gmock.h>

#include "capstan/data/steps.hpp"
#include "capstan/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/read_all.hpp"

namespace capstan {
namespace {

/// Returns the remaining elements; an error appears as a default-constructed element.
template <class T>
std::vector<T> rest(Iterator<T>& iterator) {
  std::vector<T> elements;
  while (true) {
    try {
      auto element = iterator.try_next();
      if (!element) return elements;
      elements.push_back(std::move(*element));
    } catch (const Error&) {
      elements.emplace_back();
    }
  }
}

/// Takes a position before every element, and restores it in an iterator of a new pipeline (another process),
/// in a new iterator of the same pipeline, and in one at another position.
template <class Make>
void check_positions(const Make& make) {
  const auto pipeline = make();
  auto reading = pipeline.make_iterator();
  std::vector<Position> positions;
  std::vector<typename decltype(reading)::Element> elements;
  for (bool more = true; more;) {
    positions.push_back(reading.position());
    try {
      auto element = reading.try_next();
      more = element.has_value();
      if (element) elements.push_back(std::move(*element));
    } catch (const Error&) {
      elements.emplace_back();
    }
  }
  ASSERT_GE(elements.size(), 3u);
  auto elsewhere = pipeline.make_iterator();
  for (std::size_t at = 0; at < positions.size(); ++at) {
    const std::vector following(elements.begin() + static_cast<std::ptrdiff_t>(std::min(at, elements.size())),
                                elements.end());
    const auto received = from_bytes<Position>(to_bytes(positions[at]));
    auto other_process = make().make_iterator();
    other_process.restore(received);
    EXPECT_EQ(other_process.position(), other_process.position());
    EXPECT_EQ(rest(other_process), following) << "at " << at;
    auto same_process = pipeline.make_iterator();
    same_process.restore(received);
    EXPECT_EQ(rest(same_process), following) << "at " << at;
    elsewhere.restore(received);
    try {
      EXPECT_EQ(elsewhere.try_next().has_value(), !following.empty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::data_loss);
    }
    // A position of a restored iterator, one element later.
    if (at + 1 < positions.size() && at < 40) {
      auto again = make().make_iterator();
      again.restore(elsewhere.position());
      EXPECT_EQ(rest(again), rest(elsewhere)) << "after " << at;
    }
  }
}

Data count_to(std::int64_t stop) { return Data::range(stop); }
Data shuffled(std::int64_t stop) { return count_to(stop).shuffle(5, {.seed = 3}); }
std::int64_t twice(std::int64_t x) { return 2 * x; }
bool odd(const std::int64_t& x) { return x % 2 == 1; }
std::int64_t never_seven(std::int64_t x) {
  if (x % 10 == 7) throw Error(Code::data_loss, "seven");
  return x;
}
Data from(std::int64_t x) { return Data::range(10 * x, 10 * x + x % 4); }
Data generated() {
  return Data::from_generator([] {
    return [at = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      if (at == 9) return std::nullopt;
      return at++;
    };
  });
}

TEST(Position, OfSources) {
  check_positions([] { return Data::from_vector({4, 1, 8, 3}); });
  check_positions([] { return Data::range(9, 0, -2); });
  check_positions(generated);
  check_positions([] { return list_files({"a", "b", "c"}); });
  check_positions([] {
    return Data::from_files({"xx", "", "xxxx", "x"}, [](const std::filesystem::path& file) {
      return Data::range(static_cast<std::int64_t>(file.string().size()));
    });
  });
}

TEST(Position, OfOperatorsOnElements) {
  check_positions([] { return count_to(7).map(twice); });
  check_positions([] { return count_to(17).filter(odd); });
  check_positions([] { return count_to(17).batch(3); });
  check_positions([] { return count_to(17).batch(3, true); });
  check_positions([] { return count_to(17).take(6); });
  check_positions([] { return count_to(17).skip(6); });
  check_positions([] { return count_to(17).shard(4, 2); });
  check_positions([] { return count_to(17).map(never_seven); });
}

TEST(Position, OfShuffles) {
  check_positions([] { return shuffled(40); });
  check_positions([] { return count_to(20).shuffle(100, {.seed = 3}); });
  check_positions([] { return count_to(20).shuffle(4); });  // the position contains the random seed
  check_positions([] { return shuffled(9).repeat(3); });
  check_positions(
      [] { return count_to(9).shuffle(4, {.seed = 1, .reshuffle_each_iteration = false}).repeat(3); });
  check_positions([] { return shuffled(12).shuffle(3, {.seed = 8}).repeat(2).shuffle(6, {.seed = 2}); });
  check_positions([] { return count_to(30).map(never_seven).shuffle(4, {.seed = 5}); });
}

TEST(Position, OfStreams) {
  check_positions([] { return count_to(4).repeat(3); });
  check_positions([] { return count_to(4).concatenate(shuffled(4)); });
  check_positions([] { return zip(count_to(6), shuffled(9)); });
  check_positions([] { return zip(count_to(6), shuffled(9), generated()); });
  check_positions([] { return count_to(12).interleave(from, 3); });
  check_positions([] { return count_to(12).interleave(from, 4, 2); });
  check_positions([] { return shuffled(12).flat_map(from).repeat(2); });
  check_positions([] {
    return count_to(5).interleave([](std::int64_t x) { return Data::range(x).shuffle(3, {.seed = 1}); }, 2);
  });
  check_positions([] {
    return shuffled(12).transform<std::int64_t>([](data::Next<std::int64_t> next) {
      return [next, sum = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
        const auto element = next();
        if (!element) return std::nullopt;
        return sum += *element;
      };
    });
  });
}

TEST(Position, OfThreads) {
  check_positions([] { return shuffled(100).prefetch(7); });
  check_positions([] { return shuffled(100).map(twice, {.threads = 3}); });
  check_positions([] { return count_to(20).prefetch(3).repeat(4); });
  check_positions([] { return count_to(80).map(never_seven, {.threads = 2}).prefetch(2); });
}

TEST(Position, OfCaches) {
  check_positions([] { return count_to(5).cache(); });
  check_positions([] { return shuffled(8).cache().repeat(3); });
  check_positions([] { return count_to(8).shuffle(8).cache().repeat(3); });
  check_positions([] { return shuffled(6).cache().shuffle(6, {.seed = 2}).repeat(3); });
}

// The cache holds only elements: an error of the first iteration is not repeated.
TEST(Position, OfACacheAfterAnError) {
  const auto cached = [] { return count_to(10).map(never_seven).cache(); };
  auto reading = cached().make_iterator();
  for (int i = 0; i < 7; ++i) reading.next();
  auto before = cached().make_iterator();
  before.restore(reading.position());
  expect_error(Code::data_loss, "seven", [&] { reading.next(); });
  auto behind = cached().make_iterator();
  behind.restore(reading.position());
  EXPECT_EQ(rest(before), (Numbers{0, 8, 9}));
  EXPECT_EQ(rest(behind), (Numbers{8, 9}));
}

TEST(Position, OfRebatchedBatches) {
  check_positions([] { return count_to(17).batch(4).rebatch({3, 2}); });
  check_positions([] { return count_to(5).batch(4).rebatch({0, 1}); });
  check_positions([] { return count_to(5).batch(4).rebatch({2, 0}); });
  const auto none_of_seven = [](const Numbers& batch) { return never_seven(batch.back()), batch; };
  check_positions([&] { return count_to(17).batch(2).map(none_of_seven).rebatch({1, 2, 3}); });
  check_positions([&] { return count_to(17).batch(2).map(none_of_seven).rebatch({0, 1, 3}, true); });
  check_positions([] { return shuffled(17).batch(4).legacy_rebatch(3); });
  check_positions([] {
    const auto batches = count_to(17).batch(3);
    return Dataset<PerReplica<Numbers>>(std::make_shared<data::GroupNode<Numbers>>(batches.node(), 2));
  });
}

TEST(Position, OfACompletePipeline) {
  check_positions([] {
    return count_to(7)
        .shuffle(7, {.seed = 1})
        .interleave(from, 3)
        .map(twice, {.threads = 2})
        .shuffle(4, {.seed = 2})
        .repeat(4)
        .batch(3)
        .prefetch(2);
  });
}

TEST(Position, OfAGeneratorOnlyMovesForward) {
  auto numbers = iterate(Numbers{0, 1, 2, 3, 4});
  numbers.next();
  const Position one = numbers.position();
  numbers.next();
  auto fresh = iterate(Numbers{0, 1, 2, 3, 4});
  fresh.restore(one);
  EXPECT_EQ(fresh.next(), 1);
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { numbers.restore(one); }), NamesAll({"2", "1"}));
}

TEST(Position, OfAnotherPipelineIsRejected) {
  auto batches = count_to(4).batch(2).make_iterator();
  const Position position = count_to(4).shuffle(2).make_iterator().position();
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { batches.restore(position); }),
              NamesAll({"'shuffle'", "'batch'"}));
  auto range = count_to(4).make_iterator();
  EXPECT_THROW(range.restore({}), Error);
  Position longer = range.position();
  longer.bytes.push_back(std::byte{0});
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { range.restore(longer); }),
              testing::HasSubstr("1 bytes"));
}

}  // namespace
}  // namespace capstan
