// readers_test.cpp -- each reader: elements, errors with their locations, and exact positions.
// Tests: io/data/byte_stream.cpp
// Tests: io/data/criteo.cpp
// Tests: io/data/hashed_columns.cpp
// Tests: io/data/hdf5_rows.cpp
// Tests: io/data/libsvm.cpp
// Tests: io/data/line_cursor.hpp
// Tests: io/data/line_reader.cpp
// Tests: io/data/records.cpp
// Tests: io/data/separated_parser.cpp
// Tests: io/data/text.cpp
#include "capstan/readers.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "capstan/hash_key.hpp"
#include "io/data/numbers.hpp"
#include "support/expect_error.hpp"
#include "support/read_all.hpp"
#include "temporary_directory.hpp"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Fields = std::vector<std::string>;

class Readers : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    return scratch_.write(name, bytes);
  }
  std::filesystem::path write_gzip(const std::string& name, const std::string& bytes) {
    const auto path = scratch_.path() / name;
    gzFile file = gzopen(path.c_str(), "ab");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    gzclose(file);
    return path;
  }
  std::string name(const std::string& file) const { return (scratch_.path() / file).string(); }

  /// Expects that reading `dataset` throws an Error with `code` whose text contains all `parameters`.
  template <class T>
  void refuses(const Dataset<T>& dataset, Code code, const std::vector<std::string>& parameters) {
    const std::string text = error_of(code, [&] { all(dataset); });
    for (const std::string& parameter : parameters) EXPECT_THAT(text, testing::HasSubstr(parameter));
  }

  /// Expects that every restored position continues with the remaining elements.
  template <class T>
  void check_positions(const Dataset<T>& dataset) {
    const std::vector<T> elements = all(dataset);
    ASSERT_GE(elements.size(), 3u);
    auto reading = dataset.make_iterator();
    for (std::size_t at = 0; at <= elements.size(); ++at) {
      auto other = dataset.make_iterator();
      other.restore(reading.position());
      for (std::size_t i = at; i < elements.size(); ++i)
        ASSERT_EQ(other.next(), elements[i]) << at << ' ' << i;
      ASSERT_EQ(other.try_next(), std::nullopt);
      reading.try_next();
    }
  }

  io::TemporaryDirectory scratch_;
};

TEST_F(Readers, LinesEndWithLfOrCrlf) {
  const auto a = write("a", "\xef\xbb\xbfone\r\n\ntwo  \n");
  const auto b = write("b", "");
  const auto c = write("c", "three");
  EXPECT_THAT(all(text_lines({a, b, c})), ElementsAre("one", "", "two  ", "three"));
  check_positions(text_lines({a, b, c}));
  EXPECT_THAT(all(text_lines({write("mark", "\xef\xbb\xbf")})), IsEmpty());
  refuses(text_lines({name("none")}), Code::not_found,
          {"cannot open " + name("none") + ": No such file or directory"});
  refuses(text_lines({scratch_.path()}), Code::invalid_argument,
          {"cannot read " + scratch_.path().string() + ": Is a directory"});
}

TEST_F(Readers, LinesMayBeLongerThanTheBuffer) {
  std::string text;
  std::vector<std::string> lines;
  for (const std::size_t length : {3, 262143, 262144, 700000, 0, 5, 262140}) {
    lines.push_back(std::string(length, static_cast<char>('a' + lines.size())));
    text += lines.back() + "\n";
  }
  EXPECT_EQ(all(text_lines({write("long", text)})), lines);
  check_positions(text_lines({write("long", text)}));
}

TEST_F(Readers, GzipIsDecompressed) {
  write_gzip("t.gz", "one\ntwo\n");
  const auto packed = write_gzip("t.gz", "three\nfour\n");  // a second member
  EXPECT_THAT(all(text_lines({packed})), ElementsAre("one", "two", "three", "four"));
  check_positions(text_lines({packed}));
  std::string long_text;
  for (int i = 0; i < 100000; ++i) long_text += std::to_string(i) + "\n";
  const auto large = write_gzip("large.gz", long_text);
  auto lines = text_lines({large}).skip(90000).make_iterator();
  EXPECT_EQ(lines.next(), "90000");
  auto other = text_lines({large}).skip(90000).make_iterator();
  other.restore(lines.position());
  EXPECT_EQ(other.next(), "90001");
  const auto padded = write_gzip("padded.gz", "one\n");
  std::filesystem::resize_file(padded, std::filesystem::file_size(padded) + 512);
  EXPECT_THAT(all(text_lines({padded})), ElementsAre("one"));
  std::filesystem::resize_file(large, 5000);
  refuses(text_lines({large}), Code::data_loss, {large.string(), "gzip"});
}

TEST_F(Readers, LibsvmReadsLabelsAndFeatures) {
  const auto a = write("a", "+1 3:1 11:0.5 # a comment\n\n# nothing\n-1\t1:-2e-3\t4:.25  \r\n");
  const auto b = write("b", "0.5\n2 7:1");
  const std::vector<SparseExample> examples{
      {1, {2, 10}, {1, 0.5f}}, {-1, {0, 3}, {-2e-3f, 0.25f}}, {0.5f, {}, {}}, {2, {6}, {1}}};
  EXPECT_EQ(all(libsvm({a, b})), examples);
  EXPECT_EQ(all(libsvm({a, b}, {.first_id = 0}))[0].ids, (std::vector<std::int64_t>{3, 11}));
  check_positions(libsvm({a, b}));
  const SparseBatch first{{1, -1, 0.5f}, {0, 2, 4, 4}, {2, 10, 0, 3}, {1, 0.5f, -2e-3f, 0.25f}};
  const SparseBatch second{{2}, {0, 1}, {6}, {1}};
  EXPECT_EQ(all(libsvm_batches({a, b}, 3)), (std::vector{first, second}));
  EXPECT_EQ(all(libsvm_batches({a, b}, 3, {}, true)), (std::vector{first}));
  check_positions(libsvm_batches({a, b}, 1));
  EXPECT_EQ(libsvm_batches({a}, 3).batches().size, 3);
}

TEST_F(Readers, SparseBatchesAreSlicedAndJoined) {
  const auto a = write("a", "1 1:1 2:2\n2\n3 3:3\n4 4:4 5:5 6:6\n");
  const auto batches = libsvm_batches({a}, 3).rebatch({1, 2});
  const auto examples = all(libsvm({a}));
  const std::vector<SparseBatch> cut = all(batches);
  ASSERT_EQ(cut.size(), 3u);
  EXPECT_EQ(cut[0], (SparseBatch{{1}, {0, 2}, {0, 1}, {1, 2}}));
  EXPECT_EQ(cut[1], (SparseBatch{{2, 3}, {0, 0, 1}, {2}, {3}}));
  EXPECT_EQ(all(libsvm_batches({a}, 1).rebatch({4}))[0],
            (SparseBatch{{1, 2, 3, 4}, {0, 2, 2, 3, 6}, {0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}}));
}

TEST_F(Readers, LibsvmNamesTheMalformedLine) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"yes 1:1", "expected a number as the label, found \"yes\""},
      {"1x 1:1", "expected a number as the label, found \"1x\""},
      {"1 3", "expected id:value, found \"3\""},
      {"1 3:", "expected id:value, found \"3:\""},
      {"1 3:x", "expected id:value, found \"3:x\""},
      {"1 3:1e999", "expected id:value, found \"3:1e999\""},
      {"1 :2", "expected id:value, found \":2\""},
      {"1 3: 2", "expected id:value, found \"3:\""},
      {"1 qid:2 1:1", "expected id:value, found \"qid:2\""},
      {"1 99999999999999999999:1", "expected id:value, found \"99999999999999999999:1\""},
      {"1 0:1", "the id is 0; ids begin at 1 (LibsvmOptions::first_id)"},
      {"1 -4:1", "the id is -4; ids begin at 1 (LibsvmOptions::first_id)"},
      {"1 9:1", "the id is 9; with 8 features the last is 8"},
      {"1 1:1 \x01", "expected id:value, found \"\\x01\""},
  };
  for (const auto& [line, message] : wrong) {
    const auto path = write("w", "1 1:1\n\n" + line + "\n-1 2:1\n");
    refuses(libsvm({path}, {.features = 8}), Code::invalid_argument, {path.string() + ":3: ", message});
    refuses(libsvm_batches({path}, 10, {.features = 8}), Code::invalid_argument,
            {path.string() + ":3: ", message});
    auto examples = libsvm({path}, {.features = 8}).make_iterator();
    examples.next();
    EXPECT_THROW(examples.next(), Error);
    EXPECT_EQ(examples.next().label, -1);  // the next line
  }
}

TEST(Numbers, MatchFromChars) {
  std::mt19937_64 random(5);
  const auto check = [](const std::string& text) {
    float expected = 0, found = 0;
    const char* end = text.data() + text.size();
    const auto standard = std::from_chars(text.data(), end, expected);
    const char* behind = io::parse_float(text.data(), end, found);
    if (standard.ec == std::errc::result_out_of_range) return;
    ASSERT_EQ(behind, standard.ec == std::errc() ? standard.ptr : nullptr) << text;
    if (behind != nullptr) {
      ASSERT_EQ(std::memcmp(&expected, &found, sizeof found), 0) << text << ' ' << expected << ' ' << found;
    }
  };
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    char text[400];
    std::snprintf(text, sizeof text, "%.*g", static_cast<int>(1 + random() % 20), static_cast<double>(value));
    check(text);
    value = std::ldexp(static_cast<float>(random() % (1 << 24)), -static_cast<int>(random() % 40));
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(random() % 25), static_cast<double>(value));
    check(text);
    // Numbers halfway between two floats, exact or rounded.
    const double middle =
        std::ldexp(static_cast<double>(2 * (random() % (1 << 24)) + 1), -static_cast<int>(random() % 30));
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(random() % 22), middle);
    check(text);
  }
  for (const char* text : {"0", "-0", "-0.0", "1.", ".5", ".", "", "-", "+", "1e5", "1e", "1E-3", "inf",
                           "nan", "16777217", "9007199254740993", "16777217.0000001",
                           "0.000000000000000000000000001", "340282356779733661637539395458142568447"}) {
    if (text[0] != '+') check(text);
  }
  float value = 0;
  const std::string plus = "+2.5", both = "+-2", small = "1e-60", large = "1e60";
  EXPECT_NE(io::parse_float(plus.data(), plus.data() + plus.size(), value), nullptr);
  EXPECT_EQ(value, 2.5f);
  EXPECT_EQ(io::parse_float(both.data(), both.data() + both.size(), value), nullptr);
  EXPECT_NE(io::parse_float(small.data(), small.data() + small.size(), value), nullptr);
  EXPECT_EQ(value, 0.0f);
  EXPECT_EQ(io::parse_float(large.data(), large.data() + large.size(), value), nullptr);
}

TEST_F(Readers, SeparatedFieldsMayBeQuoted) {
  const auto csv = write("t.csv", "a,b\n1,\"x, \"\"y\"\"\"\n\n\"two\nlines\",\r\n,\"\"\n\"its\r\nown\",\r\n");
  EXPECT_THAT(all(separated({csv})),
              ElementsAre(Fields{"a", "b"}, Fields{"1", "x, \"y\""}, Fields{"two\nlines", ""}, Fields{"", ""},
                          Fields{"its\r\nown", ""}));
  EXPECT_THAT(all(separated({csv, csv}, {.header = true})).size(), 8u);
  check_positions(separated({csv, csv}, {.header = true}));
  const auto tsv = write("t.tsv", "1\t\"2\t3\n\t\t\n");
  EXPECT_THAT(all(separated({tsv}, kTabSeparated)), ElementsAre(Fields{"1", "\"2", "3"}, Fields{"", "", ""}));
  refuses(separated({write("w", "a,b\nc\n")}), Code::invalid_argument,
          {name("w") + ":2: expected 2 fields, found 1"});
  refuses(separated({write("w", "a,b\n")}, {.columns = 3}), Code::invalid_argument,
          {name("w") + ":1: expected 3 fields, found 2"});
  refuses(separated({write("w", "a\n\"b\nc\n")}), Code::invalid_argument, {name("w") + ":2: "});
  refuses(separated({write("w", "a\n\"b\"c\n")}), Code::invalid_argument,
          {name("w") + ":2: ", "\",\"", "\"c\""});
}

TEST_F(Readers, HashedColumnsBecomeKeys) {
  const HashedColumns columns{
      .label = 1, .numbers = {2}, .categories = {0, 3}, .separated = {.header = true}};
  const auto csv =
      write("clicks.csv", "color,label,age,city\nred,1,2.5,\"Bonn, Rhine\"\n,0,,red\nred,1,7,\n");
  const auto key = [](const char* text, std::uint64_t column) { return hash_key(text, column); };
  EXPECT_THAT(all(hashed_columns({csv}, columns)),
              ElementsAre(SparseExample{1, {key("", 2), key("red", 0), key("Bonn, Rhine", 3)}, {2.5F, 1, 1}},
                          SparseExample{0, {key("red", 3)}, {1}},
                          SparseExample{1, {key("", 2), key("red", 0)}, {7, 1}}));
  EXPECT_NE(key("red", 0), key("red", 3)) << "columns have different salts";
  check_positions(hashed_columns({csv}, columns));
  const auto test_data = write("test.csv", "red,x\n");
  EXPECT_THAT(all(hashed_columns({test_data}, {.label = -1, .categories = {0}})),
              ElementsAre(SparseExample{0, {key("red", 0)}, {1}}));
  refuses(hashed_columns({test_data}, {.label = 1}), Code::invalid_argument,
          {name("test.csv") + ":1: ", "column 1"});
  refuses(hashed_columns({test_data}, {.label = -1, .categories = {2}}), Code::invalid_argument,
          {name("test.csv") + ":1: ", "column 2", "2 fields"});
  (void)error_of(Code::invalid_argument, [&] { hashed_columns({csv}, {.numbers = {-1}}); });
}

TEST_F(Readers, HashedColumnsOfCriteo) {
  const auto file =
      write("day", "1\t5" + std::string(12, '\t') + "\t68fd1e64" + std::string(25, '\t') + "\n");
  EXPECT_THAT(all(hashed_columns({file}, criteo_columns())),
              ElementsAre(SparseExample{1, {hash_key("", 1), hash_key("68fd1e64", 14)}, {5, 1}}));
}

TEST_F(Readers, LibsvmIdsMayBeTexts) {
  const auto file = write("texts", "1 user=7:1 city=Bonn:0.5\n0 user=7:2\n");
  const LibsvmOptions options{.hash_ids = true, .salt = 3};
  EXPECT_THAT(all(libsvm({file}, options)),
              ElementsAre(SparseExample{1, {hash_key("user=7", 3), hash_key("city=Bonn", 3)}, {1, 0.5F}},
                          SparseExample{0, {hash_key("user=7", 3)}, {2}}));
  EXPECT_EQ(all(libsvm_batches({file}, 2, options)).at(0).ids.at(2), hash_key("user=7", 3));
  refuses(libsvm({write("w", "1 :2\n")}, options), Code::invalid_argument, {name("w") + ":1: "});
  refuses(libsvm({write("w", "1 text\n")}, options), Code::invalid_argument, {name("w") + ":1: "});
}

TEST_F(Readers, LibsvmAcceptsOnlyTwoClasses) {
  const LibsvmOptions options{.two_classes = true};
  const auto labels = all(libsvm_batches({write("a", "-1 1:1\n+1 1:2\n0\n1 2:3\n")}, 9, options))[0].labels;
  EXPECT_EQ(labels, (std::vector<float>{0, 1, 0, 1}));
  for (const std::string label : {"2", "0.5", "nan", "-2"}) {
    refuses(libsvm({write("w", "1 1:1\n" + label + " 1:1\n")}, options), Code::invalid_argument,
            {name("w") + ":2: expected 0 or 1, or -1 or +1, as the label, found \"" + label + "\""});
  }
  for (const std::string value : {"nan", "inf", "-inf"}) {
    refuses(libsvm({write("w", "1 1:1 2:" + value + "\n")}, options), Code::invalid_argument,
            {name("w") + ":1: expected a finite value, found \"2:" + value + "\""});
  }
}

std::string criteo_line(bool label, const std::string& integer, const std::string& category,
                        int categories = 26) {
  std::string line = label ? "1" : "";
  for (int i = 0; i < 13; ++i)
    line += (line.empty() && i == 0 ? "" : "\t") + (i == 3 ? integer : std::to_string(i - 1));
  for (int i = 0; i < categories; ++i) line += "\t" + (i == 5 ? category : i == 25 ? "" : "68fd1e64");
  return line + "\n";
}

TEST_F(Readers, CriteoFieldsMayBeMissing) {
  const auto day = write("day", criteo_line(true, "", "") + criteo_line(true, "-7", "ffffffff"));
  const auto examples = all(criteo({day}));
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].label, 1);
  EXPECT_EQ(examples[0].integers[0], -1);
  EXPECT_EQ(examples[0].integers[12], 11);
  EXPECT_EQ(examples[0].integers_present, 0x1fffu & ~(1u << 3));
  EXPECT_EQ(examples[0].categories_present, (1u << 25) - 1 - (1u << 5));
  EXPECT_EQ(examples[0].categories[4], 0x68fd1e64u);
  EXPECT_EQ(examples[1].integers[3], -7);
  EXPECT_EQ(examples[1].categories[5], 0xffffffffu);
  check_positions(criteo({day, day}));
  const auto unlabelled = all(criteo({write("test", criteo_line(false, "9", "0"))}, false));
  EXPECT_EQ(unlabelled[0].label, 0);
  EXPECT_EQ(unlabelled[0].integers[3], 9);
  EXPECT_EQ(unlabelled[0].categories_present, (1u << 25) - 1);
  refuses(criteo({write("w", "2" + criteo_line(false, "", "").insert(0, "\t"))}), Code::invalid_argument,
          {name("w") + ":1: expected 0 or 1 as the label, found \"2\""});
  refuses(criteo({write("w", "\n" + criteo_line(true, "1.5", ""))}), Code::invalid_argument,
          {name("w") + ":2: ", "integer field 4", "\"1.5\""});
  refuses(criteo({write("w", criteo_line(true, "", "123456789"))}), Code::invalid_argument,
          {name("w") + ":1: ", "category field 6", "\"123456789\""});
  refuses(criteo({write("w", criteo_line(true, "", "", 25))}), Code::invalid_argument,
          {name("w") + ":1: ", "40", "found 39"});
  refuses(criteo({write("w", criteo_line(true, "", "", 28))}), Code::invalid_argument,
          {name("w") + ":1: ", "40", "found 42"});
  refuses(criteo({day}, false), Code::invalid_argument, {name("day") + ":1: ", "39", "found 40"});
}

TEST_F(Readers, RecordsHaveAFixedSize) {
  const auto text = [](const std::vector<std::byte>& record) {
    return std::string(reinterpret_cast<const char*>(record.data()), record.size());
  };
  const auto a = write("a", "HEADabcdefF"), b = write("b", "headF"), c = write("c", "headuvwxyz123F");
  const auto records = fixed_records({a, b, c}, 3, {.header_bytes = 4, .footer_bytes = 1});
  EXPECT_THAT(all(records.map(text)), ElementsAre("abc", "def", "uvw", "xyz", "123"));
  check_positions(records);
  check_positions(
      fixed_records({write_gzip("g", "HEADabcdefghiF")}, 3, {.header_bytes = 4, .footer_bytes = 1}));
  refuses(fixed_records({write("w", "abcdefgh")}, 3), Code::data_loss,
          {name("w") + ": 2 bytes", "2 records of 3 bytes", "expected 0"});
  refuses(fixed_records({write("w", "ab")}, 3, {.header_bytes = 4}), Code::data_loss,
          {name("w") + " ends at byte 2"});
}

std::string idx_file(char type, std::vector<char> sizes, const std::string& items) {
  std::string bytes{0, 0, type, static_cast<char>(sizes.size())};
  for (const char size : sizes) bytes += std::string{0, 0, 0, size};
  return bytes + items;
}

TEST_F(Readers, IdxItemsHaveTheShapeInTheHeader) {
  const auto images = idx<std::uint8_t>({write_gzip("i.gz", idx_file(8, {3, 1, 2}, "abcdef"))});
  EXPECT_THAT(all(images),
              ElementsAre(Array<std::uint8_t>({1, 2}, {'a', 'b'}), Array<std::uint8_t>({1, 2}, {'c', 'd'}),
                          Array<std::uint8_t>({1, 2}, {'e', 'f'})));
  check_positions(images);
  const auto labels = write("l", idx_file(8, {2}, "\x07\x09"));
  EXPECT_THAT(all(idx<std::uint8_t>({labels})),
              ElementsAre(Array<std::uint8_t>::scalar(7), Array<std::uint8_t>::scalar(9)));
  const auto floats = write("f", idx_file(0x0d, {1, 2}, std::string("\x3f\x80\0\0\xc0\0\0\0", 8)));
  EXPECT_THAT(all(idx<float>({floats})), ElementsAre(Array<float>::vector({1, -2})));
  const auto shorts = write("s", idx_file(0x0b, {1}, "\xff\xfe"));
  EXPECT_THAT(all(idx<std::int16_t>({shorts})), ElementsAre(Array<std::int16_t>::scalar(-2)));
  refuses(idx<float>({labels}), Code::invalid_argument, {labels.string() + ": ", "std::uint8_t", "float"});
  refuses(idx<std::uint8_t>({write("w", "text")}), Code::data_loss, {name("w") + ": ", "IDX"});
  refuses(idx<std::uint8_t>({write("w", idx_file(8, {3}, "ab"))}), Code::data_loss,
          {name("w") + ": ", "item 3 of 3"});
  refuses(idx<std::uint8_t>({write("w", idx_file(8, {1}, "ab"))}), Code::data_loss,
          {name("w") + ": ", "1 items"});
  // A wrong header does not exhaust memory: the buffer is bounded by the file.
  refuses(idx<std::uint8_t>({write("w", std::string("\0\0\x08\x02\0\0\0\x01\xff\xff\xff\xff", 12) + "ab")}),
          Code::data_loss, {name("w") + ": ", "item 1 of 1"});
  refuses(idx<double>({write("w", std::string("\0\0\x0e\x02\0\0\0\x01", 8) + std::string(4, '\xff'))}),
          Code::data_loss, {name("w") + ": ", "item 1 of 1"});
  refuses(idx<double>({write("w", std::string("\0\0\x0e\x03\0\0\0\x01", 8) + std::string(8, '\xff'))}),
          Code::data_loss, {name("w") + ": ", "(4294967295, 4294967295, 8)"});
  // A header that promises 8 GB costs no more memory than the file.
  const std::string sizes("\0\0\0\1\x7f\xff\xff\xff\0\0\0\4", 12);
  refuses(idx<std::uint8_t>({write("w", std::string("\0\0\x08\3", 4) + sizes + "ab")}), Code::data_loss,
          {name("w") + ": ", "item 1 of 1"});
}

TEST_F(Readers, Hdf5RowsAreConverted) {
  const auto path = scratch_.path() / "rows.h5";
  {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t sizes[] = {5, 2}, one = 1;
    const hid_t space = H5Screate_simple(2, sizes, nullptr), scalar = H5Screate(H5S_SCALAR);
    const hid_t group = H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(group, "x", H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const int values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(H5Dcreate2(file, "scalar", H5T_STD_I32BE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hid_t texts = H5Screate_simple(1, &one, nullptr);
    H5Dclose(H5Dcreate2(file, "text", H5T_C_S1, texts, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(texts), H5Dclose(dataset), H5Gclose(group), H5Sclose(scalar), H5Sclose(space), H5Fclose(file);
  }
  const auto rows = hdf5_rows<float>({path}, "train/x");
  const auto read = all(rows);
  ASSERT_EQ(read.size(), 5u);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(read[static_cast<std::size_t>(i)], Array<float>::vector({2.f * i, 2.f * i + 1}));
  check_positions(rows);
  EXPECT_EQ(all(hdf5_rows<std::int64_t>({path}, "train/x"))[4], Array<std::int64_t>::vector({8, 9}));
  refuses(hdf5_rows<float>({path}, "train/y"), Code::not_found, {path.string() + ": ", "train/y"});
  refuses(hdf5_rows<float>({path}, "scalar"), Code::invalid_argument, {path.string() + ": ", "scalar"});
  refuses(hdf5_rows<float>({path}, "text"), Code::invalid_argument, {path.string() + ": ", "text"});
  refuses(hdf5_rows<float>({write("w", "x")}, "x"), Code::data_loss, {name("w") + ": ", "HDF5"});
  refuses(hdf5_rows<float>({name("none")}, "x"), Code::not_found,
          {"cannot open " + name("none") + ": No such file or directory"});
}

}  // namespace
}  // namespace capstan
