// word2vec_corpus_test.cpp -- words of byte ranges, wherever the text is cut, and the files of a corpus.
#include "train/word2vec/corpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::train::word2vec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for_each_word(
      text, [&](std::string_view word) { words.emplace_back(word); }, [] {});
  return words;
}

std::string read_range(const ByteRange& range) { return CorpusReader().read(range); }

std::string write_gzip(const std::filesystem::path& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return path.string();
}

TEST(Word2vecCorpus, EachWordBelongsToOneRange) {
  const io::TemporaryDirectory directory;
  const std::string begin = "  früh über\r\nthe a\t\n\nstraße naïve-word\v日本語 x";
  ASSERT_THAT(words_in(begin),
              ElementsAre("früh", "über", "the", "a", "straße", "naïve-word", "日本語", "x"));
  std::string text = begin;
  for (int i = 0; i < 150; ++i) text += fmt::format(" wörd{}", i);  // longer than a read
  const auto expected = words_in(text);
  for (const std::string& path :
       {directory.write("text", text).string(), write_gzip(directory.path() / "text.gz", text)}) {
    const auto files = list_corpus({path});
    ASSERT_EQ(files.at(0).bytes, static_cast<std::int64_t>(text.size())) << path;
    for (std::int64_t bytes = 1; bytes <= files[0].bytes + 1; ++bytes) {
      std::vector<std::string> found, found_by_one_reader;
      CorpusReader reader;
      for (const Piece& piece : divide(files, bytes)) {
        for (const ByteRange& range : piece) {
          for (const std::string& word : words_in(read_range(range))) found.push_back(word);
          for (const std::string& word : words_in(reader.read(range))) found_by_one_reader.push_back(word);
        }
      }
      EXPECT_EQ(found, expected) << path << " in pieces of " << bytes << " bytes";
      EXPECT_EQ(found_by_one_reader, expected) << path << " in pieces of " << bytes << " bytes";
    }
  }
}

TEST(Word2vecCorpus, ReaderReturnsTheSameTextInAnyOrder) {
  const io::TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("wörd{}\n", i);
  const auto plain = directory.write("text", text).string();
  const auto packed = write_gzip(directory.path() / "text.gz", text);
  CorpusReader reader;
  for (const std::int64_t begin : {30000, 0, 20000, 20500, 19900, 45000, 20001}) {
    for (const std::string& path : {plain, packed}) {
      EXPECT_EQ(reader.read({path, begin, begin + 700}), read_range({plain, begin, begin + 700}))
          << path << " at " << begin;
    }
    EXPECT_EQ(reader.read({packed, begin + 800, begin + 900}), read_range({plain, begin + 800, begin + 900}));
  }
}

TEST(Word2vecCorpus, RejectsTruncatedAndDamagedGzipFiles) {
  const io::TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("wörd{}\n", i);
  const auto truncated = write_gzip(directory.path() / "truncated", text);
  std::filesystem::resize_file(truncated, 2000);
  expect_error_naming(Code::data_loss, {truncated, "truncated"}, [&] { list_corpus({truncated}); });
  const auto size = static_cast<std::int64_t>(text.size());
  expect_error_naming(Code::data_loss, {truncated, "truncated"}, [&] { read_range({truncated, 0, size}); });
  const auto damaged = directory.write("damaged", "\x1f\x8b\x08 this is not gzip").string();
  expect_error_naming(Code::data_loss, {damaged, "gzip"}, [&] { list_corpus({damaged}); });
}

TEST(Word2vecCorpus, WordThatIsLongerThanARangeBelongsToTheFirstOne) {
  const io::TemporaryDirectory directory;
  const std::string longest(1000, 'w');
  const auto path = directory.write("text", longest + " end").string();
  EXPECT_EQ(read_range({path, 0, 10}), longest);
  EXPECT_THAT(words_in(read_range({path, 10, 1000})), IsEmpty());
  EXPECT_THAT(words_in(read_range({path, 1000, 1004})), ElementsAre("end"));
}

TEST(Word2vecCorpus, LinesEndAfterTheirWords) {
  std::vector<std::string> events;
  for_each_word(
      "a b\nc\n", [&](std::string_view word) { events.emplace_back(word); },
      [&] { events.emplace_back("|"); });
  EXPECT_THAT(events, ElementsAre("a", "b", "|", "c", "|", "|"));
}

TEST(Word2vecCorpus, PiecesHaveEqualSizesAcrossFiles) {
  const auto pieces = divide({{"a", 5}, {"empty", 0}, {"b", 1}, {"c", 6}}, 5);
  ASSERT_EQ(pieces.size(), 3);
  EXPECT_EQ(pieces[0].size(), 1);
  ASSERT_EQ(pieces[1].size(), 2);
  EXPECT_EQ(pieces[1][0].path, "b");
  EXPECT_EQ(pieces[1][1].path, "c");
  EXPECT_EQ(pieces[1][1].end, 4);
  ASSERT_EQ(pieces[2].size(), 1);
  EXPECT_EQ(pieces[2][0].begin, 4);
  EXPECT_EQ(pieces[2][0].end, 6);
}

TEST(Word2vecCorpus, ListsFilesBelowDirectoriesInTheOrderOfTheirPaths) {
  const io::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "text" / "sub");
  directory.write("text/b", "22");
  directory.write("text/sub/a", "333");
  const auto one = directory.write("one", "1").string();
  const auto files = list_corpus({one, (directory.path() / "text").string()});
  ASSERT_EQ(files.size(), 3);
  EXPECT_EQ(files[0].path, one);
  EXPECT_EQ(files[1].bytes, 2);
  EXPECT_EQ(files[2].bytes, 3);
}

TEST(Word2vecCorpus, RejectsMissingEmptyAndBinaryFiles) {
  const io::TemporaryDirectory directory;
  expect_error_naming(Code::not_found, {"--data", "/missing"}, [] { list_corpus({"/missing"}); });
  const auto empty = directory.write("empty", "").string();
  expect_error_naming(Code::invalid_argument, {"--data", empty}, [&] { list_corpus({empty}); });
  const auto binary = directory.write("binary", std::string("a b\0c", 5)).string();
  expect_error_naming(Code::invalid_argument, {"--data", binary, "offset 3"}, [&] {
    read_range({binary, 0, 5});
  });
  expect_error_naming(Code::invalid_argument, {"offset 3"}, [&] { read_range({binary, 3, 5}); });
  expect_error_naming(Code::not_found, {"/missing"}, [] { read_range({"/missing", 0, 5}); });
}

}  // namespace
}  // namespace capstan::train::word2vec
