// row_sender_test.cpp -- reads by message as clients receive them: pieces, turns, errors.
#include "ps/server/row_sender.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "base/log.hpp"
#include "gpu/gpu_to_test.hpp"
#include "ps/push_entry.hpp"
#include "ps/two_stores.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kReadId = 77;

/// Connection to a client. Pieces stay in flight until `deliver` copies them.
class ReadingPeer final : public transport::Peer {
 public:
  struct ReceivedPiece {
    protocol::PieceHeader header;
    std::vector<std::byte> bytes;
  };
  struct Refusal {
    std::uint64_t id;
    Code code;
  };

  explicit ReadingPeer(int rank) : Peer(rank, "worker " + std::to_string(rank)) {}

  void send(std::uint16_t type, transport::Bytes header, transport::Bytes payload) override {
    EXPECT_EQ(type, transport::kReadFailed);
    const auto failure = transport::read_header<protocol::ReadFailure>({type, 0, header, payload});
    ASSERT_TRUE(failure);
    EXPECT_THAT(payload, testing::Not(IsEmpty())) << "the text of the error";
    refusals.push_back({failure->id, static_cast<Code>(failure->code)});
  }
  void send_in_place(std::uint16_t type, transport::Bytes header, transport::Bytes payload,
                     std::uint32_t& in_flight) override {
    EXPECT_EQ(type, transport::kRowsPiece);
    const auto piece = transport::read_header<protocol::PieceHeader>({type, 0, header, payload});
    ASSERT_TRUE(piece);
    ++in_flight;
    in_flight_.push_back({*piece, payload, &in_flight});
  }
  void disconnect() noexcept override { failed_ = true; }
  std::unique_ptr<transport::Window> open_window(const transport::RegionKey&,
                                                 transport::WindowPath) override {
    return nullptr;
  }
  std::string transports() const override { return "none"; }
  bool has_hardware_rma() const override { return false; }

  std::size_t in_flight() const { return in_flight_.size(); }
  void deliver() {
    for (const InFlight& piece : in_flight_) {
      pieces.push_back({piece.header, {piece.payload.begin(), piece.payload.end()}});
      --*piece.counter;
    }
    in_flight_.clear();
  }
  /// Returns the bytes of a segment, in order of arrival. `unit`: number of bytes per unit of `begin`.
  std::vector<std::byte> segment(std::uint32_t number, std::uint64_t unit = 1) const {
    std::vector<std::byte> all;
    for (const ReceivedPiece& piece : pieces) {
      EXPECT_EQ(piece.header.id, kReadId);
      if (piece.header.segment != number) continue;
      EXPECT_EQ(piece.header.begin * unit, all.size());
      all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    }
    return all;
  }

  std::vector<ReceivedPiece> pieces;
  std::vector<Refusal> refusals;

 private:
  struct InFlight {
    protocol::PieceHeader header;
    transport::Bytes payload;
    std::uint32_t* counter;
  };
  std::vector<InFlight> in_flight_;
};

protocol::ReadSegment sparse_segment(std::uint32_t number, std::uint32_t variable, std::uint64_t rows) {
  return {.number = number, .variable = variable, .kind = protocol::ReadKind::sparse, .rows = rows};
}
protocol::ReadSegment dense_segment(std::uint32_t number, std::uint32_t variable, std::uint64_t first_row,
                                    std::uint64_t rows) {
  return {.number = number, .variable = variable, .first_row = first_row, .rows = rows};
}

/// A store in host or GPU memory, and two clients that read from it.
class RowSenderTest : public gpu::OnGpu, public testing::WithParamInterface<ShardMemory> {
 protected:
  static constexpr int kClient = 4;
  static constexpr int kOtherClient = 5;

  void SetUp() override {
    log::set_rank_tag("ps 3@here");
    gpu::OnGpu::SetUp();
    store_ = std::make_unique<OneStore>(GetParam());
    sender_.emplace(store_->store(), [this](int rank) -> transport::Peer& {
      return rank == kClient ? client_ : other_client_;
    });
  }
  void TearDown() override {
    client_.deliver();
    other_client_.deliver();
    sender_.reset();
    store_.reset();
    gpu::OnGpu::TearDown();
  }

  /// Creates a variable of one shard whose element i is i + 1.
  void create(std::uint32_t variable, std::uint64_t rows, std::uint64_t width) {
    store_->create(one_shard<float>(variable, {rows, width}, optimizers::SGD{1}));
    auto& values = values_[variable];
    values.resize(rows * width);
    std::iota(values.begin(), values.end(), 1.0F);
    set_all(variable, width, values);
  }
  void set_all(std::uint32_t variable, std::uint64_t width, const std::vector<float>& values) {
    apply_entry(store_->store(),
                with_op(push_entry<float>(variable, 0, {}, 0, width, values), protocol::RowOp::set));
  }
  /// Returns the elements of `rows`, each of `width` elements, in that order.
  std::vector<std::byte> rows_of(std::uint32_t variable, std::uint64_t width,
                                 const std::vector<std::uint32_t>& rows) {
    std::vector<std::byte> out;
    for (const std::uint32_t row : rows) {
      const auto bytes = std::as_bytes(std::span(values_.at(variable)).subspan(row * width, width));
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
  }
  static std::vector<std::uint32_t> consecutive(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), first);
    return rows;
  }

  /// Sends a read request. `rows`: row numbers of all sparse segments, concatenated.
  void request(int client, const std::vector<protocol::ReadSegment>& segments,
               const std::vector<std::uint32_t>& rows = {}, bool consistent = false) {
    const protocol::ReadRequest request{kReadId, static_cast<std::uint32_t>(segments.size()),
                                        consistent ? 1U : 0U};
    std::vector<std::byte> payload(segments.size() * sizeof(protocol::ReadSegment) +
                                   rows.size() * sizeof(std::uint32_t));
    const auto named = std::as_bytes(std::span(rows));
    const auto listed = std::as_bytes(std::span(segments));
    std::copy(named.begin(), named.end(), std::copy(listed.begin(), listed.end(), payload.begin()));
    receive(client, request, payload);
  }
  void receive(int client, const protocol::ReadRequest& request, const std::vector<std::byte>& payload) {
    sender_->receive({transport::kReadRows, client, transport::as_bytes(request), payload});
  }
  /// Sends and delivers until the sender is idle.
  void send_all() {
    for (int i = 0; i < 10000 && sender_->busy(); ++i) {
      (void)sender_->advance();
      client_.deliver();
      other_client_.deliver();
    }
    EXPECT_FALSE(sender_->busy());
  }
  void expect_refused(Code code, const std::vector<protocol::ReadSegment>& segments,
                      const std::vector<std::uint32_t>& rows = {}) {
    client_.refusals.clear();
    request(kClient, segments, rows);
    expect_one_refusal(code);
  }
  void expect_one_refusal(Code code) {
    ASSERT_THAT(client_.refusals, SizeIs(1));
    EXPECT_EQ(client_.refusals[0].id, kReadId);
    EXPECT_EQ(to_string(client_.refusals[0].code), to_string(code));
    EXPECT_FALSE(sender_->busy());
  }
  /// Applies a part of a push to row 0 of variable 1, whose rows have one element.
  void push_part(bool first, bool last, float gradient) {
    apply_entry(store_->store(), push_entry<float>(1, 0, {0}, 0, 1, {gradient}, first, last));
  }
  bool may_begin_push() {
    protocol::PushHeader header;
    header.kind = protocol::PushKind::sparse;
    header.variable = 1;
    return store_->store().ready(header);
  }

  ReadingPeer client_{kClient};
  ReadingPeer other_client_{kOtherClient};
  std::map<std::uint32_t, std::vector<float>> values_;
  std::unique_ptr<OneStore> store_;
  std::optional<RowSender> sender_;
};

TEST_P(RowSenderTest, SendsRowsInTheOrderRequested) {
  create(1, 5, 2);
  request(kClient, {sparse_segment(0, 1, 4)}, {3, 0, 4, 3});
  EXPECT_TRUE(sender_->busy());
  send_all();
  EXPECT_EQ(client_.segment(0, 8), rows_of(1, 2, {3, 0, 4, 3}));
  EXPECT_THAT(other_client_.pieces, IsEmpty());
}

TEST_P(RowSenderTest, SendsConsecutiveRows) {
  create(1, 5, 2);
  request(kClient, {dense_segment(0, 1, 2, 3)});
  send_all();
  EXPECT_EQ(client_.segment(0), rows_of(1, 2, {2, 3, 4}));
}

TEST_P(RowSenderTest, SendsEachSegmentUnderItsNumber) {
  create(1, 5, 2);
  create(2, 3, 4);
  request(kClient, {sparse_segment(7, 2, 2), dense_segment(3, 1, 1, 2), sparse_segment(5, 1, 1)}, {2, 0, 4});
  send_all();
  EXPECT_EQ(client_.segment(7, 16), rows_of(2, 4, {2, 0}));
  EXPECT_EQ(client_.segment(3), rows_of(1, 2, {1, 2}));
  EXPECT_EQ(client_.segment(5, 8), rows_of(1, 2, {4}));
}

TEST_P(RowSenderTest, DividesLongSegmentsIntoPieces) {
  constexpr std::uint32_t kLongRows = 9000;
  create(1, kLongRows, 50);  // 1.8 MB
  for (const bool consistent : {false, true}) {
    client_.pieces.clear();
    auto backwards = consecutive(0, kLongRows);
    std::reverse(backwards.begin(), backwards.end());
    request(kClient, {sparse_segment(0, 1, kLongRows), dense_segment(1, 1, 0, kLongRows)}, backwards,
            consistent);
    send_all();
    EXPECT_EQ(client_.segment(0, 200), rows_of(1, 50, backwards));
    EXPECT_EQ(client_.segment(1), rows_of(1, 50, consecutive(0, kLongRows)));
    for (const auto& piece : client_.pieces) EXPECT_LE(piece.bytes.size(), transport::kPieceBytes);
  }
}

TEST_P(RowSenderTest, SendsBfloat16ForFloatsOfTheHost) {
  constexpr std::uint32_t kLongRows = 9000;
  create(1, kLongRows, 51);
  const auto with_bfloat16 = [](protocol::ReadSegment segment) {
    segment.values = protocol::SentValues::bfloat16;
    return segment;
  };
  if (GetParam() == ShardMemory::device) {
    return expect_refused(Code::out_of_range, {with_bfloat16(dense_segment(0, 1, 0, 1))});
  }
  const auto rounded = [&](const std::vector<std::uint32_t>& rows) {
    std::vector<bfloat16> out;
    for (const std::uint32_t row : rows) {
      for (std::uint32_t i = 0; i < 51; ++i) out.emplace_back(values_.at(1)[row * 51 + i]);
    }
    const auto bytes = std::as_bytes(std::span(out));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  for (const bool consistent : {false, true}) {
    client_.pieces.clear();
    auto backwards = consecutive(0, kLongRows);
    std::reverse(backwards.begin(), backwards.end());
    request(kClient,
            {with_bfloat16(sparse_segment(0, 1, kLongRows)),
             with_bfloat16(dense_segment(1, 1, 3, kLongRows - 3)), dense_segment(2, 1, 0, 2)},
            backwards, consistent);
    send_all();
    EXPECT_EQ(client_.segment(0, 102), rounded(backwards));
    EXPECT_EQ(client_.segment(1, 2), rounded(consecutive(3, kLongRows - 3)));
    EXPECT_EQ(client_.segment(2), rows_of(1, 51, {0, 1}));
    for (const auto& piece : client_.pieces) EXPECT_LE(piece.bytes.size(), transport::kPieceBytes);
  }
  protocol::ReadSegment malformed = dense_segment(0, 1, 0, 1);
  for (const int unknown : {2, 4}) {
    malformed.values = static_cast<protocol::SentValues>(unknown);
    expect_refused(Code::out_of_range, {malformed});
  }
  store_->create(one_shard<std::int32_t>(2, {4}, optimizers::SGD{1}));
  expect_refused(Code::out_of_range, {with_bfloat16(dense_segment(0, 2, 0, 1))});
}

TEST_P(RowSenderTest, SendsInt8RowsForFloatsOfTheHost) {
  constexpr std::uint32_t kLongRows = 9000;
  constexpr std::uint64_t kLongWidth = 51;
  create(1, kLongRows, kLongWidth);
  const auto with_int8 = [](protocol::ReadSegment segment) {
    segment.values = protocol::SentValues::int8;
    return segment;
  };
  if (GetParam() == ShardMemory::device) {
    request(kClient, {with_int8(sparse_segment(0, 1, 1))}, {0});
    return expect_one_refusal(Code::out_of_range);
  }
  auto backwards = consecutive(0, kLongRows);
  std::reverse(backwards.begin(), backwards.end());
  std::vector<float> floats(values_.at(1).size());
  const auto stored = rows_of(1, kLongWidth, backwards);
  std::memcpy(floats.data(), stored.data(), stored.size());
  constexpr std::uint64_t kSentRowBytes = protocol::int8_row_bytes(kLongWidth);
  std::vector<std::byte> expected(kLongRows * kSentRowBytes);
  protocol::to_int8_rows(floats, kLongWidth, expected.data());
  for (const bool consistent : {false, true}) {
    client_.pieces.clear();
    request(kClient, {with_int8(sparse_segment(0, 1, kLongRows)), dense_segment(2, 1, 0, 2)}, backwards,
            consistent);
    send_all();
    EXPECT_EQ(client_.segment(0, kSentRowBytes), expected);
    EXPECT_EQ(client_.segment(2), rows_of(1, kLongWidth, {0, 1}));
    for (const auto& piece : client_.pieces) EXPECT_LE(piece.bytes.size(), transport::kPieceBytes);
  }
  expect_refused(Code::out_of_range, {with_int8(dense_segment(0, 1, 0, 1))});
  expect_refused(Code::out_of_range, {with_int8(sparse_segment(0, 1, 1))}, {kLongRows});
  store_->create(one_shard<std::int32_t>(2, {4}, optimizers::SGD{1}));
  expect_refused(Code::out_of_range, {with_int8(sparse_segment(0, 2, 1))}, {0});
}

TEST_P(RowSenderTest, SendsRowsLargerThanAPieceIndividually) {
  constexpr std::uint64_t kLong = transport::kPieceBytes / sizeof(float) + 1;
  create(1, 3, kLong);
  request(kClient, {sparse_segment(0, 1, 2)}, {2, 0});
  send_all();
  EXPECT_EQ(client_.segment(0, kLong * sizeof(float)), rows_of(1, kLong, {2, 0}));
  EXPECT_THAT(client_.pieces, SizeIs(2));
}

TEST_P(RowSenderTest, ServesReadsInTurns) {
  create(1, 200000, 8);  // 6.4 MB, more than may be in flight
  request(kClient, {dense_segment(0, 1, 0, 200000)});
  request(kOtherClient, {dense_segment(0, 1, 0, 3)});
  EXPECT_TRUE(sender_->advance());
  EXPECT_GT(client_.in_flight(), 0U);
  EXPECT_EQ(other_client_.in_flight(), 1U) << "a short read must not wait for a long one to complete";
}

TEST_P(RowSenderTest, BoundsThePiecesInFlight) {
  create(1, 200000, 8);  // 6.4 MB
  request(kClient, {dense_segment(0, 1, 0, 200000)});
  while (sender_->advance()) {
  }
  constexpr std::size_t kMaxInFlight = 64;
  EXPECT_EQ(client_.in_flight(), kMaxInFlight);
  EXPECT_TRUE(sender_->busy());
  client_.deliver();
  EXPECT_TRUE(sender_->advance());
  send_all();
  EXPECT_EQ(client_.segment(0), rows_of(1, 8, consecutive(0, 200000)));
}

TEST_P(RowSenderTest, IsBusyUntilTheLastPieceHasBeenSent) {
  create(1, 5, 2);
  request(kClient, {dense_segment(0, 1, 0, 5)});
  EXPECT_TRUE(sender_->advance());
  EXPECT_FALSE(sender_->advance());
  EXPECT_TRUE(sender_->busy());
  client_.deliver();
  (void)sender_->advance();
  EXPECT_FALSE(sender_->busy());
}

TEST_P(RowSenderTest, RejectsRowsBeyondTheShard) {
  create(1, 5, 2);
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  expect_refused(Code::out_of_range, {sparse_segment(0, 1, 2)}, {4, 5});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, 5, 1)});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, 0, 6)});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, kMost, 2)});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, 2, kMost)});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, 0, 0)});
  expect_refused(Code::out_of_range, {dense_segment(0, 1, 0, 5), sparse_segment(1, 1, 1)}, {7});
  EXPECT_THAT(client_.pieces, IsEmpty());
}

TEST_P(RowSenderTest, RejectsReadsOfUnknownShards) {
  create(1, 5, 2);
  expect_refused(Code::not_found, {dense_segment(0, 2, 0, 1)});
  expect_refused(Code::not_found, {{.variable = 1, .shard = 1, .rows = 1}});
}

TEST_P(RowSenderTest, RejectsTruncatedRequests) {
  create(1, 5, 2);
  expect_refused(Code::out_of_range, {sparse_segment(0, 1, 3)}, {1, 2});
  expect_refused(Code::out_of_range, {sparse_segment(0, 1, std::uint64_t{1} << 62)}, {1, 2});
  client_.refusals.clear();
  receive(kClient, {kReadId, 2, 0}, std::vector<std::byte>(2 * sizeof(protocol::ReadSegment) - 1));
  expect_one_refusal(Code::invalid_argument);
  client_.refusals.clear();
  receive(kClient, {kReadId, ~std::uint32_t{0}, 0}, {});
  expect_one_refusal(Code::invalid_argument);
}

TEST_P(RowSenderTest, IgnoresMalformedRequests) {
  const std::vector<std::byte> header(sizeof(protocol::ReadRequest) - 1);
  sender_->receive({transport::kReadRows, kClient, header, {}});
  receive(kClient, {kReadId, 0, 0}, {});
  EXPECT_FALSE(sender_->busy());
  EXPECT_THAT(client_.refusals, IsEmpty());
}

TEST_P(RowSenderTest, DefersAConsistentReadDuringAPush) {
  create(1, 5, 1);
  push_part(true, false, 10);
  request(kClient, {dense_segment(0, 1, 0, 1)}, {}, true);
  EXPECT_FALSE(sender_->advance());
  EXPECT_FALSE(sender_->advance());
  EXPECT_TRUE(sender_->busy());
  EXPECT_FALSE(may_begin_push()) << "consecutive pushes would starve the read";
  push_part(false, true, 100);
  send_all();
  EXPECT_TRUE(may_begin_push());
  values_[1][0] -= 110;
  EXPECT_EQ(client_.segment(0), rows_of(1, 1, {0}));
}

TEST_P(RowSenderTest, SendsOneStateOfAShardForAConsistentRead) {
  create(1, 200000, 4);  // 3.2 MB
  request(kClient, {dense_segment(0, 1, 0, 200000)}, {}, true);
  EXPECT_TRUE(sender_->advance());
  set_all(1, 4, std::vector<float>(800000, -1));
  EXPECT_TRUE(sender_->busy());
  send_all();
  EXPECT_EQ(client_.segment(0), rows_of(1, 4, consecutive(0, 200000)));
}

TEST_P(RowSenderTest, SendsCurrentRowsForAnInconsistentRead) {
  create(1, 5, 1);
  push_part(true, false, 10);
  request(kClient, {sparse_segment(0, 1, 1)}, {0});
  send_all();
  values_[1][0] -= 10;
  EXPECT_EQ(client_.segment(0, 4), rows_of(1, 1, {0}));
}

TEST_P(RowSenderTest, DropsReadsOfADeadRank) {
  create(1, 5, 1);
  push_part(true, false, 10);
  request(kClient, {dense_segment(0, 1, 0, 5)}, {}, true);
  request(kOtherClient, {dense_segment(0, 1, 0, 5)});
  (void)sender_->advance();
  EXPECT_FALSE(may_begin_push());
  sender_->drop_reads_of(kClient);
  EXPECT_TRUE(may_begin_push()) << "reads of a dead rank must not block pushes";
  send_all();
  EXPECT_THAT(client_.pieces, IsEmpty());
  EXPECT_THAT(other_client_.pieces, SizeIs(1));
}

TEST_P(RowSenderTest, DropsReadsOfAFailedPeer) {
  create(1, 5, 1);
  push_part(true, false, 10);
  request(kClient, {dense_segment(0, 1, 0, 5)}, {}, true);
  (void)sender_->advance();
  client_.mark_failed();
  EXPECT_FALSE(sender_->advance());
  EXPECT_FALSE(sender_->busy());
  EXPECT_TRUE(may_begin_push());
}

TEST_P(RowSenderTest, RefusesAConsistentReadWhoseVariableIsDropped) {
  create(1, 5, 1);
  create(2, 5, 1);
  push_part(true, false, 10);
  request(kClient, {dense_segment(0, 1, 0, 5)}, {}, true);
  (void)sender_->advance();
  store_->store().drop(1);
  request(kOtherClient, {dense_segment(0, 2, 0, 5)});
  send_all();
  client_.deliver();
  expect_one_refusal(Code::not_found);
  EXPECT_THAT(client_.pieces, IsEmpty());
  EXPECT_THAT(other_client_.pieces, SizeIs(1));
}

TEST_P(RowSenderTest, DropsReadsOfADroppedVariableWhenTheirRankDies) {
  create(1, 5, 1);
  push_part(true, false, 10);
  request(kClient, {dense_segment(0, 1, 0, 5)}, {}, true);
  (void)sender_->advance();
  store_->store().drop(1);
  sender_->drop_reads_of(kClient);
  EXPECT_FALSE(sender_->busy());
}

TEST_P(RowSenderTest, CountsRowsOfCompletedSegments) {
  create(1, 100000, 8);
  request(kClient, {sparse_segment(0, 1, 3), dense_segment(1, 1, 0, 100000)}, {4, 4, 1});
  (void)sender_->advance();
  EXPECT_EQ(store_->store().statistics().rows_sent, 3U);
  send_all();
  EXPECT_EQ(store_->store().statistics().rows_sent, 100003U);
}

INSTANTIATE_TEST_SUITE_P(Memories, RowSenderTest, testing::Values(ShardMemory::host, ShardMemory::device),
                         [](const auto& memory) {
                           return memory.param == ShardMemory::host ? "host" : "device";
                         });

}  // namespace
}  // namespace capstan::ps
