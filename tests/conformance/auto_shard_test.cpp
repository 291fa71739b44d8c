// auto_shard_test.cpp -- pipelines whose data workers share: by file, by element, or by a hint.
#include <gmock/gmock.h>

#include <set>

#include "capstan/input.hpp"
#include "capstan/readers.hpp"
#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "support/read_all.hpp"

namespace capstan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
using Texts = std::vector<std::string>;

/// Files of ten records each: "Record 3 of file 7".
class Sharding : public ::testing::Test {
 protected:
  void make_files(int files, int records) {
    names_.clear();
    for (int file = 0; file < files; ++file) {
      std::string text;
      for (int record = 0; record < records; ++record) text += line(record, file) + "\n";
      names_.push_back(directory_.write("file" + std::to_string(file), text));
    }
  }
  void SetUp() override { make_files(10, 10); }

  static std::string line(int record, int file) {
    return "Record " + std::to_string(record) + " of file " + std::to_string(file);
  }
  static Texts lines(const std::vector<int>& records, const std::vector<int>& files) {
    Texts texts;
    for (const int file : files) {
      for (const int record : records) texts.push_back(line(record, file));
    }
    return texts;
  }
  static Texts whole(const std::vector<int>& files) { return lines({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, files); }
  static Texts flat(const std::vector<Texts>& batches) {
    Texts texts;
    for (const Texts& batch : batches) texts.insert(texts.end(), batch.begin(), batch.end());
    return texts;
  }
  static Dataset<std::string> open(const std::filesystem::path& file) { return text_lines({file}); }

  io::TemporaryDirectory directory_;
  data::Paths names_;
};

// A4.11, B241: same.
TEST_F(Sharding, ByFileKeepsEveryNthFile) {
  const auto both = {AutoShardPolicy::automatic, AutoShardPolicy::file};
  for (const AutoShardPolicy policy : both) {
    for (const auto& [index, mine] : {std::pair{3, std::vector{3, 8}}, std::pair{0, std::vector{0, 5}}}) {
      const auto shard = [&, i = index](const auto& dataset) {
        return all(auto_shard(dataset, policy, 5, i));
      };
      const auto reader = text_lines(names_);
      EXPECT_EQ(shard(reader), whole(mine));
      EXPECT_EQ(shard(list_files(names_).flat_map(open)), whole(mine));
      EXPECT_EQ(flat(shard(reader.batch(5))), whole(mine));
      EXPECT_EQ(shard(reader.map([](std::string text) { return text; }, {.threads = 2}).prefetch(3)),
                whole(mine));
      const Texts once = whole(mine);
      Texts twice = once;
      twice.insert(twice.end(), once.begin(), once.end());
      EXPECT_EQ(shard(reader.concatenate(list_files(names_).flat_map(open))), twice);
      EXPECT_EQ(shard(reader.repeat(2).cache()), twice);
      const auto pairs = shard(zip(reader, list_files(names_).flat_map(open)));
      ASSERT_EQ(pairs.size(), 20u);
      for (std::size_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(pairs[i], std::pair(twice[i], twice[i]));
      const Texts shuffled = shard(list_files(names_).shuffle(10).flat_map(open).shuffle(100));
      EXPECT_THAT(shuffled, UnorderedElementsAreArray(once));  // the same files, whatever the order
      EXPECT_EQ(shard(reader.take(13).skip(1)).size(), 12u);
    }
  }
}

// B242: same.
TEST_F(Sharding, ByFileThroughInterleaveRepeatAndBatch) {
  struct Case {
    int epochs, index, batch, parallel;
  };
  for (const Case& c : {Case{1, 0, 10, 10}, Case{2, 1, 20, 5}, Case{10, 1, 1, 10}}) {
    const auto dataset =
        list_files(names_).interleave(open, c.parallel).repeat(c.epochs).batch(c.batch, true).prefetch(2);
    Texts expected;  // five files, all open at once, one record of each in turn
    for (int epoch = 0; epoch < c.epochs; ++epoch) {
      for (int record = 0; record < 10; ++record) {
        for (int file = c.index; file < 10; file += 2) expected.push_back(line(record, file));
      }
    }
    const auto batches = all(auto_shard(dataset, AutoShardPolicy::automatic, 2, c.index));
    EXPECT_EQ(batches.size(), expected.size() / static_cast<std::size_t>(c.batch));
    EXPECT_EQ(flat(batches), expected);
  }
}

// A4.11, B243, B251: same.
TEST_F(Sharding, ByDataKeepsEveryNthElement) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::data, AutoShardPolicy::automatic}) {
    const auto dataset = auto_shard(Data::range(4).prefetch(2), policy, 2, 0);
    EXPECT_THAT(all(dataset), ElementsAre(0, 2));
    EXPECT_EQ(dataset.node()->kind(), data::Kind::prefetch);  // only this worker's elements are prefetched
    const Numbers evens = all(auto_shard(Data::range(1024), policy, 2, 0));
    ASSERT_EQ(evens.size(), 512u);
    for (std::size_t i = 0; i < evens.size(); ++i) EXPECT_EQ(evens[i], static_cast<std::int64_t>(2 * i));
    EXPECT_THAT(all(auto_shard(Data::range(6).batch(2), policy, 3, 1)), ElementsAre(Numbers{2, 3}));
  }
}

// B244: same.
TEST_F(Sharding, SharesAreDisjointAndComplete) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::file, AutoShardPolicy::data}) {
    std::multiset<std::string> seen;
    for (int index = 0; index < 3; ++index) {
      for (auto& text : all(auto_shard(list_files(names_).flat_map(open), policy, 3, index)))
        seen.insert(text);
    }
    const Texts expected = whole({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_EQ(seen, std::multiset<std::string>(expected.begin(), expected.end()));
  }
}

// B245, B252: same.
TEST_F(Sharding, ByDataEveryWorkerReadsAllFiles) {
  const Texts expected = lines({0, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(all(auto_shard(text_lines(names_), AutoShardPolicy::data, 5, 0)), expected);
  // A transform is opaque, so the elements behind it are sharded.
  const auto unique = text_lines(names_).transform<std::string>([](data::Next<std::string> next) {
    return [next, seen = std::set<std::string>()]() mutable -> std::optional<std::string> {
      auto text = next();
      while (text && !seen.insert(*text).second) text = next();
      return text;
    };
  });
  EXPECT_EQ(all(auto_shard(unique, AutoShardPolicy::automatic, 5, 0)), expected);
}

// A4.11, B246: same.
TEST_F(Sharding, OffReadsEverything) {
  EXPECT_EQ(all(auto_shard(text_lines(names_), AutoShardPolicy::off, 5, 0)),
            whole({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// A4.11, B247: same.
TEST_F(Sharding, ByFileNeedsAReaderOfFiles) {
  const auto refused = [](const auto& dataset, const std::string& what) {
    EXPECT_THAT(error_of(Code::not_found, [&] { auto_shard(dataset, AutoShardPolicy::file, 2, 0); }),
                HasSubstr("'" + what + "'"));
  };
  refused(Data::range(10).batch(2), "range");
  refused(Data::from_vector({1, 2}), "from_vector");
  refused(text_lines(names_).concatenate(Dataset<std::string>::from_vector({"x"})), "from_vector");
  refused(list_files(names_), "file_names");  // names of files that no operator opens are data
}

// B248: same.
// A4.11: better: an error about too few files is thrown before anything is read, and names the remedy.
TEST_F(Sharding, ByFileNeedsAFileForEveryWorker) {
  EXPECT_THAT(all(auto_shard(text_lines(names_).batch(5), AutoShardPolicy::automatic, 500, 499)), IsEmpty());
  EXPECT_THAT(
      error_of(Code::invalid_argument, [&] { auto_shard(text_lines(names_), AutoShardPolicy::file, 11, 0); }),
      AllOf(HasSubstr("10 files"), HasSubstr("11 pipelines")));
}

// B249, B250, B253: same.
TEST_F(Sharding, ByDataNeedsAnElementForEveryWorker) {
  auto few = auto_shard(Data::range(5), AutoShardPolicy::automatic, 10, 0).make_iterator();
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { few.next(); }),
              testing::AllOf(testing::HasSubstr("5 elements"), testing::HasSubstr("10 shards")));
  auto none = auto_shard(Data::range(0), AutoShardPolicy::automatic, 10, 0).make_iterator();
  expect_error_naming(Code::out_of_range, {}, [&] { none.next(); });
  expect_error_naming(Code::invalid_argument, {"auto_shard", "2", "1"},
                      [] { auto_shard(Data::range(4), AutoShardPolicy::automatic, 2, 2); });
}

// S22: same.
TEST_F(Sharding, AutomaticWarnsIfItFallsBackToData) {
  const auto warnings = [](const auto& shard) {
    const LogText log;
    (void)shard();
    return count_of("AutoShardPolicy::data", log.text());
  };
  const auto automatic = AutoShardPolicy::automatic;
  EXPECT_EQ(warnings([&] { return auto_shard(Data::range(4), automatic, 2, 0); }), 1);
  EXPECT_EQ(warnings([&] { return auto_shard(Data::range(4), automatic, 1, 0); }), 0);
  EXPECT_EQ(warnings([&] { return auto_shard(Data::range(4), AutoShardPolicy::data, 2, 0); }), 0);
  EXPECT_EQ(warnings([&] { return auto_shard(text_lines(names_), automatic, 2, 0); }), 0);
}

// A4.11, B254: same.
TEST_F(Sharding, ShardsAtAHint) {
  const auto hinted = Data::range(100).shard(kShardHint, kShardHint).map([](std::int64_t x) { return x; });
  EXPECT_THAT(all(auto_shard(hinted, AutoShardPolicy::hint, 10, 0)),
              ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90));
  EXPECT_EQ(all(auto_shard(Data::range(100), AutoShardPolicy::hint, 10, 0)).size(), 100u);
  EXPECT_EQ(all(auto_shard(Data::range(100).shard(1, 0), AutoShardPolicy::hint, 10, 0)).size(), 100u);
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { hinted.make_iterator(); }),
              testing::HasSubstr("shard(kShardHint, kShardHint)"));
}

// B255: same.
TEST_F(Sharding, CombinesWithRebatching) {
  make_files(3, 5);
  const auto batches = list_files(names_).flat_map(open).batch(5).rebatch({2, 1, 2});
  EXPECT_EQ(all(auto_shard(batches, AutoShardPolicy::automatic, 3, 1)),
            (std::vector<Texts>{lines({0, 1}, {1}), lines({2}, {1}), lines({3, 4}, {1})}));
  for (const auto& cut :
       {Data::range(8).batch(4).rebatch({2, 1, 1}), Data::range(8).batch(4).legacy_rebatch(3)}) {
    const auto shard = [&](int index) { return all(auto_shard(cut, AutoShardPolicy::data, 3, index)); };
    EXPECT_EQ(shard(0), (Steps{{0, 1}, {4, 5}}));
    EXPECT_EQ(shard(1), (Steps{{2, 3}, {6, 7}}));
    EXPECT_EQ(shard(2), (Steps{{}, {}}));
  }
}

}  // namespace
}  // namespace capstan
