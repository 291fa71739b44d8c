// event_file_test.cpp -- bytes of event files; tests/multi/seeing_test.py reads one with TensorBoard.
#include "io/events/event_file.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "io/events/crc32c.hpp"
#include "io/temporary_directory.hpp"

namespace capstan::io {
namespace {

std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// RFC 3720, B.4, and the check value in the CRC catalogue.
TEST(Crc32c, MatchesReferenceValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventFile, ARecordHasItsLengthAndTwoChecksums) {
  const std::string record = record_of("abc");
  ASSERT_EQ(record.size(), 8U + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), bytes_of({3, 0, 0, 0, 0, 0, 0, 0}));
  std::uint32_t crc = 0;
  std::memcpy(&crc, record.data() + 8, sizeof crc);
  EXPECT_EQ(crc, masked(crc32c(record.substr(0, 8))));
  EXPECT_EQ(record.substr(12, 3), "abc");
  std::memcpy(&crc, record.data() + 15, sizeof crc);
  EXPECT_EQ(crc, masked(crc32c("abc")));
}

// Encoded by hand from event.proto and summary.proto.
TEST(EventFile, AScalarIsAnEventWithASummary) {
  const std::string one_and_a_half = bytes_of({0, 0, 0xc0, 0x3f});
  const std::string second = bytes_of({0, 0, 0, 0, 0, 0, 0xf0, 0x3f});  // 1.0
  EXPECT_EQ(scalar_event("loss", 1.5, 300, 1.0),
            bytes_of({0x09}) + second + bytes_of({0x10, 0xac, 0x02, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 4}) +
                "loss" + bytes_of({0x15}) + one_and_a_half);
  EXPECT_EQ(version_event(1.0), bytes_of({0x09}) + second + bytes_of({0x1a, 13}) + "brain.Event:2");
}

TEST(EventFile, IsCreatedByItsFirstScalarAndStartsWithTheVersion) {
  const TemporaryDirectory directory;
  EventFile file(directory.path() / "events", "node17", 1'800'000'000);
  EXPECT_EQ(file.path().filename(), "events.out.tfevents.1800000000.node17." + std::to_string(getpid()));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "events"));
  file.scalar("loss", 0.5, 1, 1'800'000'001);
  file.flush();
  file.scalar("loss", 0.25, 2, 1'800'000'002);
  file.flush();
  EXPECT_EQ(read(file.path()), record_of(version_event(1'800'000'000)) +
                                   record_of(scalar_event("loss", 0.5, 1, 1'800'000'001)) +
                                   record_of(scalar_event("loss", 0.25, 2, 1'800'000'002)));
}

}  // namespace
}  // namespace capstan::io
