// push_inbox_test.cpp -- pushes by message: applied on arrival, deferred, acknowledged, malformed.
#include "ps/ingest/push_inbox.hpp"

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "ps/push_entry.hpp"

namespace capstan::ps {
namespace {

class Recorder : public protocol::PushSink {
 public:
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) override {
    float first = 0;
    std::memcpy(&first, values, sizeof first);
    applied.push_back(header.variable);
    row_counts.push_back(rows.size());
    EXPECT_EQ(first, static_cast<float>(header.variable));
  }
  bool ready(const protocol::PushHeader& header) override { return !held || header.first_part == 0; }
  void abandon(std::uint32_t variable, std::uint32_t) override { abandoned.push_back(variable); }
  bool unsettled() const noexcept override { return settled < applied.size(); }
  void settle() override { settled = applied.size(); }

  std::size_t settled = 0;  // number of `applied` entries that are settled
  bool held = false;
  std::vector<std::uint32_t> applied;
  std::vector<std::size_t> row_counts;
  std::vector<std::uint32_t> abandoned;
};

using Variables = std::vector<std::uint32_t>;

class PushInboxTest : public testing::Test {
 protected:
  /// Sends an entry made by push_entry; returns its size in bytes.
  std::uint64_t send(int rank, std::uint32_t variable, bool dense = false, bool acknowledge = true,
                     bool first_part = true, bool last_part = true) {
    const std::vector<std::uint32_t> rows =
        dense ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{0, 5, 2};
    const auto entry = push_entry<float>(
        variable, 0, rows, 0, 1, std::vector<float>(3, static_cast<float>(variable)), first_part, last_part);
    return deliver(rank, entry, acknowledge);
  }
  std::uint64_t deliver(int rank, std::vector<std::byte> entry, bool acknowledge) {
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.acknowledge = acknowledge ? 1 : 0;
    std::memcpy(entry.data(), &header, sizeof header);
    const transport::Bytes bytes(entry);
    inbox_.receive({0, rank, bytes.first(sizeof header), bytes.subspan(sizeof header)});
    return header.bytes;
  }

  Recorder sink_;
  std::vector<std::pair<int, std::uint64_t>> acknowledged_;
  PushInbox inbox_{sink_, [this](int rank, std::uint64_t bytes) { acknowledged_.emplace_back(rank, bytes); }};
};

TEST_F(PushInboxTest, SettlesBeforeAcknowledging) {
  std::size_t settled = 0;
  PushInbox inbox(sink_, [&](int, std::uint64_t) { settled = sink_.settled; });
  protocol::PushHeader header;
  header.kind = protocol::PushKind::dense;
  header.rows = header.variable = 1;
  header.bytes = 2 * protocol::kCacheLine;
  header.acknowledge = 1;
  std::vector<std::byte> values(protocol::kCacheLine);
  const float one = 1;
  std::memcpy(values.data(), &one, sizeof one);
  for (int entry = 0; entry < 3; ++entry) inbox.receive({0, 4, std::as_bytes(std::span(&header, 1)), values});
  EXPECT_EQ(sink_.settled, 0U) << "further entries may arrive";
  EXPECT_TRUE(inbox.apply_some());
  EXPECT_EQ(settled, 3U);
  inbox.receive({0, 4, std::as_bytes(std::span(&header, 1)), values});
  (void)inbox.settle(4);
  EXPECT_EQ(sink_.settled, 4U);
}

TEST_F(PushInboxTest, AppliesOnArrivalAndAcknowledgesOnce) {
  std::uint64_t bytes = send(4, 1, false, false);
  EXPECT_FALSE(inbox_.apply_some()) << "no acknowledgement was requested";
  bytes += send(4, 2, true);
  bytes += send(4, 3);
  EXPECT_EQ(sink_.applied, (Variables{1, 2, 3}));
  EXPECT_EQ(sink_.row_counts, (std::vector<std::size_t>{3, 0, 3}));
  EXPECT_TRUE(inbox_.apply_some());
  EXPECT_EQ(acknowledged_, (std::vector<std::pair<int, std::uint64_t>>{{4, bytes}}));
  EXPECT_FALSE(inbox_.apply_some());
}

TEST_F(PushInboxTest, AppliesDeferredEntriesInOrder) {
  send(1, 1, false, false, true, false);
  sink_.held = true;
  send(1, 2, false, false, false, true);  // the rest of the push that has begun
  send(1, 3);
  send(2, 4);
  EXPECT_EQ(sink_.applied, (Variables{1, 2}));
  EXPECT_FALSE(inbox_.apply_some());
  sink_.held = false;
  send(1, 5);  // not before 3
  EXPECT_EQ(sink_.applied, (Variables{1, 2}));
  EXPECT_TRUE(inbox_.apply_some());
  EXPECT_EQ(sink_.applied, (Variables{1, 2, 3, 5, 4}));
  EXPECT_EQ(acknowledged_.size(), 2U);
}

TEST_F(PushInboxTest, AppliesEntriesOfADeadRankAndAbandonsItsUnfinishedPush) {
  sink_.held = true;
  send(1, 1);
  send(1, 2, false, false, true, false);
  inbox_.close(1);
  EXPECT_EQ(sink_.applied, (Variables{1, 2}));
  EXPECT_EQ(sink_.abandoned, Variables{2});
  inbox_.close(1);
  EXPECT_EQ(sink_.applied.size(), 2U);
}

TEST_F(PushInboxTest, DropsAnEntryThatContradictsItsHeader) {
  testing::internal::CaptureStderr();
  log::set_rank_tag("ps 0@here");
  auto entry = push_entry<float>(1, 0, {0, 5, 2}, 0, 1, std::vector<float>(3, 1));
  entry.resize(entry.size() - 64);
  deliver(1, entry, true);
  entry = push_entry<float>(1, 0, {0, 5, 2}, 0, 1, std::vector<float>(3, 1));
  const std::uint32_t many = 0xffffffff;
  std::memcpy(entry.data() + offsetof(protocol::PushHeader, rows), &many, sizeof many);
  deliver(1, entry, true);
  const auto malformed = transport::malformed_messages();
  inbox_.receive({0, 1, transport::Bytes(entry).first(7), {}});
  EXPECT_TRUE(sink_.applied.empty());
  const std::string logged = testing::internal::GetCapturedStderr();
  for (const char* const parameter : {"rank 1 ", "variable 1 shard 0", "128", "192"})
    EXPECT_NE(logged.find(parameter), std::string::npos) << logged;
  EXPECT_EQ(transport::malformed_messages(), malformed + 1);
}

}  // namespace
}  // namespace capstan::ps
