// tf_record_test.cpp -- TFRecord files: independently computed checksums, damage, positions, compression.
#include "capstan/readers.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "capstan/input.hpp"
#include "io/events/crc32c.hpp"
#include "io/events/event_file.hpp"
#include "support/expect_error.hpp"
#include "support/read_all.hpp"
#include "temporary_directory.hpp"

namespace capstan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Texts = std::vector<std::string>;

/// Decodes hexadecimal digits.
std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Computed bit by bit in Python with the polynomial of RFC 3720.
const std::string kAbc = from_hex("0300000000000000b099490e6162636e57f121");
const std::string kEmpty = from_hex("000000000000000029039807d8ea82a2");

Dataset<std::string> texts(const data::Paths& files,
                           TFRecordCompression compression = TFRecordCompression::automatic) {
  return tf_records(files, compression).map([](const std::vector<std::byte>& record) {
    return std::string(reinterpret_cast<const char*>(record.data()), record.size());
  });
}

class TFRecords : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    return directory_.write(name, bytes);
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_records(const std::string& name, const Texts& records, TFRecordCompression compression) const {
    TFRecordWriter writer(path(name), {.compression = compression});
    for (const std::string& record : records) writer.write(record);
    writer.close();
  }
  /// Returns the error of reading the first record of a file with these bytes.
  std::string damage(const std::string& name, const std::string& bytes) const {
    const auto file = write(name, bytes);
    auto records = texts({file}).make_iterator();
    const std::string what = error_of(Code::data_loss, [&] { records.next(); });
    EXPECT_THAT(what, HasSubstr(file.string()));
    return what;
  }

  io::TemporaryDirectory directory_;
};

// RFC 3720, B.4.
TEST(Crc32cOfEveryLength, MatchesABitwiseComputation) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(io::crc32c(ascending), 0x46dd794eU);
  EXPECT_EQ(io::crc32c(std::string(ascending.rbegin(), ascending.rend())), 0x113fdb5cU);
  const auto by_bits = [](const std::string& bytes) {
    std::uint32_t crc = ~0U;
    for (const char byte : bytes) {
      crc ^= static_cast<unsigned char>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
    return ~crc;
  };
  for (std::size_t length = 0; length < ascending.size(); ++length) {
    EXPECT_EQ(io::crc32c(ascending.substr(0, length)), by_bits(ascending.substr(0, length))) << length;
  }
}

// S19: better: gzip is recognized, damage names the file, the byte, and what was found and expected, and one
// damaged record does not end the reading.
TEST_F(TFRecords, AreReadInTheOrderOfTheFiles) {
  const auto a = write("a", kAbc + kEmpty), b = write("b", ""), c = write("c", kAbc);
  EXPECT_THAT(all(texts({a, b, c})), ElementsAre("abc", "", "abc"));
  // The start of every TensorFlow event file: the length 24 and its checksum.
  const auto events = write("events", from_hex("1800000000000000a37f4b22") + std::string(24, 'x') +
                                          io::record_of(std::string(24, 'x')).substr(36));
  EXPECT_THAT(all(texts({events})), ElementsAre(std::string(24, 'x')));
  error_of(Code::not_found, [&] { all(texts({path("none")})); });
}

TEST_F(TFRecords, AreWrittenWithTheExpectedBytes) {
  {
    TFRecordWriter writer(path("a"));
    writer.write("abc");
    writer.write(std::span<const std::byte>());
    EXPECT_FALSE(std::filesystem::exists(path("a")));  // the file appears when it is complete
    writer.close();
    writer.close();
    error_of(Code::failed_precondition, [&] { writer.write("more"); });
  }
  EXPECT_EQ(read(path("a")), kAbc + kEmpty);
  error_of(Code::already_exists, [&] { TFRecordWriter(path("a")); });
  write_records("b", {}, TFRecordCompression::none);
  EXPECT_EQ(read(path("b")), "");
  {
    TFRecordWriter writer(path("a"), {.replace = true});
    writer.write("abc");
  }
  EXPECT_EQ(read(path("a")), kAbc + kEmpty);  // the writer was not closed
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 2);
}

TEST_F(TFRecords, OfAnySizeAreWrittenAndReadCompressed) {
  std::mt19937 random(3);
  Texts records;
  for (const std::size_t size : {0, 1, 5, 262132, 262144, 700000, 3, 1 << 20}) {
    std::string record(size, '\0');
    for (char& byte : record) byte = static_cast<char>(random());
    records.push_back(std::move(record));
  }
  const auto check = [&](const std::string& name, TFRecordCompression write, TFRecordCompression read) {
    write_records(name, records, write);
    EXPECT_EQ(all(texts({path(name)}, read)), records) << name;
  };
  using Compression = TFRecordCompression;
  check("none", Compression::none, Compression::automatic);
  check("gzip", Compression::gzip, Compression::automatic);
  check("gzip by name", Compression::gzip, Compression::gzip);
  check("zlib", Compression::zlib, Compression::zlib);
  gzFile unpacked = gzopen(path("gzip").c_str(), "rb");
  std::string plain(std::filesystem::file_size(path("none")) + 1, '\0');
  EXPECT_EQ(gzread(unpacked, plain.data(), static_cast<unsigned>(plain.size())),
            static_cast<int>(plain.size() - 1));
  gzclose(unpacked);
  EXPECT_EQ(plain.substr(0, plain.size() - 1), read(path("none")));
}

TEST_F(TFRecords, ThatStartLikeGzipAreNotDecompressed) {
  const std::string record(0x8b1f, 'x');  // gzip begins with 1f 8b
  EXPECT_THAT(all(texts({write("a", io::record_of(record))})), ElementsAre(record));
}

TEST_F(TFRecords, WithDamagedBytesAreReportedOnceAndSkipped) {
  std::string bytes = kEmpty + kAbc + kEmpty + kAbc;
  bytes[kEmpty.size() + 13] ^= 1;  // the "b" of the first "abc"
  const auto file = write("a", bytes);
  auto records = texts({file}).make_iterator();
  EXPECT_EQ(records.next(), "");
  const std::string what = error_of(Code::data_loss, [&] { records.next(); });
  EXPECT_THAT(what, AllOf(HasSubstr(file.string()), HasSubstr("byte 16"), HasSubstr("0x21f1576e")));
  EXPECT_EQ(records.next(), "");
  EXPECT_EQ(records.next(), "abc");
  EXPECT_EQ(records.try_next(), std::nullopt);
}

TEST_F(TFRecords, AfterADamagedLengthAreNotRead) {
  std::string bytes = kAbc + kAbc + kAbc;
  bytes[kAbc.size()] ^= 2;
  const auto file = write("a", bytes);
  auto records = texts({file, write("b", kAbc)}).make_iterator();
  EXPECT_EQ(records.next(), "abc");
  for (int i = 0; i < 2; ++i) {
    const std::string what = error_of(Code::data_loss, [&] { records.next(); });
    EXPECT_THAT(what, AllOf(HasSubstr(file.string()), HasSubstr("byte 19"), HasSubstr("0x0e4999b0")));
  }
}

TEST_F(TFRecords, ThatAreTruncatedAnywhereAreRejected) {
  for (std::size_t bytes = 1; bytes < kAbc.size(); ++bytes) {
    EXPECT_THAT(damage("cut", kAbc.substr(0, bytes)), HasSubstr("byte 0")) << bytes;
  }
  EXPECT_THAT(damage("cut", kAbc.substr(0, 14)), AllOf(HasSubstr("found 2"), HasSubstr("expected 3")));
  std::string huge = from_hex("ffffffffffffff7f");  // with a valid checksum
  const std::uint32_t crc = io::masked(io::crc32c(huge));
  huge.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  EXPECT_THAT(damage("huge", huge + "abc"), AllOf(HasSubstr("found 3"), HasSubstr("9223372036854775807")));
  EXPECT_THAT(damage("text", "this is a text and no TFRecord file"), HasSubstr("byte 0"));
}

TEST_F(TFRecords, OfADamagedGzipFileAreRejected) {
  write_records("a.gz", Texts(100, std::string(1000, 'a')), TFRecordCompression::gzip);
  std::string packed = read(path("a.gz"));
  (void)damage("cut.gz", packed.substr(0, 20));
  const auto file = write("plain", kAbc);
  for (const auto compression : {TFRecordCompression::gzip, TFRecordCompression::zlib}) {
    error_of(Code::data_loss, [&] { all(texts({file}, compression)); });
  }
}

TEST_F(TFRecords, ResumeFromEveryPosition) {
  const Texts records{"a", "", std::string(300000, 'b'), "c", "d"};
  for (const auto compression :
       {TFRecordCompression::none, TFRecordCompression::gzip, TFRecordCompression::zlib}) {
    const std::string name = "records " + std::to_string(static_cast<int>(compression));
    write_records(name, records, compression);
    const auto dataset = texts({path(name), path(name)}, compression);
    Texts twice = records;
    twice.insert(twice.end(), records.begin(), records.end());
    auto reading = dataset.make_iterator();
    for (std::size_t at = 0; at <= twice.size(); ++at) {
      auto other = dataset.make_iterator();
      other.restore(reading.position());
      for (std::size_t i = at; i < twice.size(); ++i) ASSERT_EQ(other.next(), twice[i]) << at << ' ' << i;
      ASSERT_EQ(other.try_next(), std::nullopt);
      reading.try_next();
    }
  }
}

TEST_F(TFRecords, FilesAreSharded) {
  write_records("a", {"a"}, TFRecordCompression::none);
  write_records("b", {"b"}, TFRecordCompression::gzip);
  write_records("c", {"c"}, TFRecordCompression::none);
  const auto dataset = texts({path("a"), path("b"), path("c")});
  EXPECT_THAT(all(auto_shard(dataset, AutoShardPolicy::file, 2, 0)), ElementsAre("a", "c"));
  EXPECT_THAT(all(auto_shard(dataset, AutoShardPolicy::file, 2, 1)), ElementsAre("b"));
  EXPECT_THAT(all(texts({})), IsEmpty());
}

}  // namespace
}  // namespace capstan
