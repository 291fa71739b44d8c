// remote_reads_test.cpp -- reads from two ps whose replies the test sends: in any order, late, wrong or
// never.
#include "client/remote_reads.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancellation_request.hpp"
#include "protocol/ps_messages.hpp"
#include "support/expect_error.hpp"
#include "transport/bytes.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::client {
namespace {

using Segment = RemoteReads::Segment;
using std::chrono::milliseconds;
constexpr milliseconds kLong{20'000};
constexpr std::uint64_t kReadRowBytes = 2 * sizeof(std::int32_t);

/// A ps that records requests and sends the replies that a test specifies.
struct AnsweringPs {
  struct Request {
    protocol::ReadRequest header;
    std::vector<protocol::ReadSegment> segments;
    std::vector<std::uint32_t> rows;
  };

  AnsweringPs(transport::LoopHub& hub, transport::Fabric& client, int rank)
      : fabric(hub.open()), peer(&client.connect(rank, "ps " + std::to_string(rank), fabric->address())) {
    fabric->set_rank(rank);
    to_client = &fabric->connect(0, "client", client.address());
    fabric->on_message(transport::kReadRows, [this](const transport::Message& message) {
      Request& request = requests.emplace_back();
      request.header = transport::read_header<protocol::ReadRequest>(message).value();
      const std::size_t bytes = request.header.segments * sizeof(protocol::ReadSegment);
      ASSERT_GE(message.payload.size(), bytes);
      request.segments.resize(request.header.segments);
      std::memcpy(request.segments.data(), message.payload.data(), bytes);
      request.rows.resize((message.payload.size() - bytes) / sizeof(std::uint32_t));
      if (request.rows.empty()) return;
      std::memcpy(request.rows.data(), message.payload.data() + bytes, message.payload.size() - bytes);
    });
  }

  /// Sends a piece. `begin` counts rows for a sparse segment, bytes for a dense one.
  void answer(RemoteReads::Id id, std::uint32_t segment, std::uint64_t begin,
              const std::vector<std::int32_t>& values) {
    const protocol::PieceHeader header{id, begin, segment, 0};
    to_client->send(transport::kRowsPiece, transport::as_bytes(header), std::as_bytes(std::span(values)));
  }
  void fail(RemoteReads::Id id, Code code, const std::string& text) {
    const protocol::ReadFailure failure{id, static_cast<std::uint64_t>(code)};
    to_client->send(transport::kReadFailed, transport::as_bytes(failure), std::as_bytes(std::span(text)));
  }

  std::unique_ptr<transport::Fabric> fabric;
  transport::Peer* peer;       // as the client sees it
  transport::Peer* to_client;  // as the ps sees the client
  std::vector<Request> requests;
};

class RemoteReadsTest : public testing::Test {
 protected:
  Segment dense(AnsweringPs& ps, std::uint64_t rows, std::vector<std::int32_t>& out) {
    Segment segment = segment_of(ps, out);
    segment.first_row = 5;
    segment.count = rows;
    return segment;
  }
  Segment sparse(AnsweringPs& ps, std::vector<std::uint32_t> rows, std::vector<std::uint32_t> order,
                 std::vector<std::int32_t>& out) {
    Segment segment = segment_of(ps, out);
    segment.count = rows.size();
    segment.rows = std::move(rows);
    segment.order = std::move(order);
    return segment;
  }
  /// Delivers messages in both directions.
  void deliver() {
    for (AnsweringPs* ps : {&ps1_, &ps2_}) {
      if (ps->fabric != nullptr) ps->fabric->progress();
    }
    fabric_->progress();
  }
  void wait(RemoteReads::Id id, milliseconds timeout = kLong) { reads_.wait(id, timeout, "read the test"); }
  static std::vector<std::int32_t> unread(std::size_t rows) {
    return std::vector<std::int32_t>(rows * 2, -1);
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  RemoteReads reads_{*fabric_};
  AnsweringPs ps1_{hub_, *fabric_, 1};
  AnsweringPs ps2_{hub_, *fabric_, 2};

 private:
  static Segment segment_of(AnsweringPs& ps, std::vector<std::int32_t>& out) {
    Segment segment;
    segment.peer = ps.peer;
    segment.variable = 3;
    segment.shard = static_cast<std::uint32_t>(ps.peer->rank());
    segment.row_bytes = kReadRowBytes;
    segment.out = reinterpret_cast<std::byte*>(out.data());
    return segment;
  }
};

TEST_F(RemoteReadsTest, SendsOneRequestToEachPs) {
  auto out = unread(10);
  const auto id =
      reads_.start({sparse(ps1_, {8, 6}, {}, out), dense(ps2_, 3, out), sparse(ps1_, {4}, {}, out)},
                   /*consistent=*/true);
  deliver();
  ASSERT_EQ(ps1_.requests.size(), 1U);
  ASSERT_EQ(ps2_.requests.size(), 1U);
  const auto& first = ps1_.requests[0];
  EXPECT_EQ(first.header.id, id);
  EXPECT_EQ(first.header.consistent, 1U);
  EXPECT_EQ(first.rows, (std::vector<std::uint32_t>{8, 6, 4}));
  ASSERT_EQ(first.segments.size(), 2U);
  EXPECT_EQ(first.segments[0].number, 0U);
  EXPECT_EQ(first.segments[0].variable, 3U);
  EXPECT_EQ(first.segments[0].shard, 1U);
  EXPECT_EQ(first.segments[0].kind, protocol::ReadKind::sparse);
  EXPECT_EQ(first.segments[0].rows, 2U);
  EXPECT_EQ(first.segments[1].number, 2U);
  EXPECT_EQ(first.segments[1].rows, 1U);
  const auto& second = ps2_.requests[0];
  EXPECT_TRUE(second.rows.empty());
  ASSERT_EQ(second.segments.size(), 1U);
  EXPECT_EQ(second.segments[0].number, 1U);
  EXPECT_EQ(second.segments[0].kind, protocol::ReadKind::dense);
  EXPECT_EQ(second.segments[0].first_row, 5U);
  EXPECT_EQ(second.segments[0].rows, 3U);

  reads_.start({dense(ps1_, 1, out)}, /*consistent=*/false);
  deliver();
  EXPECT_EQ(ps1_.requests.at(1).header.consistent, 0U);
  EXPECT_EQ(ps2_.requests.size(), 1U);
}

TEST_F(RemoteReadsTest, PlacesPiecesThatArriveInAnyOrder) {
  auto consecutive = unread(3);
  auto ordered = unread(4);
  auto bytes = unread(3);
  const auto id = reads_.start({sparse(ps1_, {8, 6, 7}, {}, consecutive),
                                sparse(ps2_, {1, 2, 3}, {3, 0, 1}, ordered), dense(ps1_, 3, bytes)},
                               false);
  EXPECT_FALSE(reads_.ready(id));
  ps2_.answer(id, 1, 1, {20, 21, 30, 31});  // rows 2 and 3
  ps1_.answer(id, 2, 12, {53, 54, 55});     // starts at byte 12, within a row
  ps1_.answer(id, 0, 2, {70, 71});
  ps1_.answer(id, 0, 0, {80, 81, 60, 61});
  ps1_.answer(id, 2, 0, {50, 51, 52});
  deliver();
  EXPECT_FALSE(reads_.ready(id));
  ps2_.answer(id, 1, 0, {10, 11});
  deliver();
  EXPECT_TRUE(reads_.ready(id));
  wait(id);
  EXPECT_EQ(consecutive, (std::vector<std::int32_t>{80, 81, 60, 61, 70, 71}));
  EXPECT_EQ(ordered, (std::vector<std::int32_t>{20, 21, 30, 31, -1, -1, 10, 11}));
  EXPECT_EQ(bytes, (std::vector<std::int32_t>{50, 51, 52, 53, 54, 55}));
}

TEST_F(RemoteReadsTest, DoesNotMixReadsInFlight) {
  auto first = unread(1);
  auto second = unread(1);
  const auto one = reads_.start({dense(ps1_, 1, first)}, false);
  const auto other = reads_.start({dense(ps1_, 1, second)}, false);
  EXPECT_NE(one, 0U);
  EXPECT_NE(one, other);
  ps1_.answer(other, 0, 0, {3, 4});
  deliver();
  EXPECT_TRUE(reads_.ready(other));
  EXPECT_FALSE(reads_.ready(one));
  EXPECT_TRUE(reads_.in_flight());
  wait(other);
  ps1_.answer(one, 0, 0, {1, 2});
  deliver();
  EXPECT_FALSE(reads_.in_flight()) << "all rows have arrived";
  wait(one);
  EXPECT_EQ(first, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(second, (std::vector<std::int32_t>{3, 4}));
}

TEST_F(RemoteReadsTest, EmptyReadIsReadyAtOnce) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps1_, 0, out)}, false);
  EXPECT_TRUE(reads_.ready(id));
  EXPECT_FALSE(reads_.in_flight());
  wait(id, milliseconds(0));
  EXPECT_TRUE(reads_.ready(id)) << "a finished read never blocks";
  wait(id, milliseconds(0));
}

TEST_F(RemoteReadsTest, DropsPiecesThatDoNotBelongToTheRead) {
  auto out = unread(3);  // the third row is not part of the read
  auto others = unread(3);
  const auto id = reads_.start({sparse(ps1_, {8, 6}, {}, out), dense(ps1_, 2, others)}, false);
  ps1_.answer(id, 2, 0, {9, 9});        // unknown segment
  ps1_.answer(id + 7, 0, 0, {9, 9});    // unknown read
  ps1_.answer(id, 0, 2, {9, 9});        // after the last row
  ps1_.answer(id, 0, 3, {});            // starts after the end
  ps1_.answer(id, 0, 1, {9, 9, 9, 9});  // one row too many
  ps1_.answer(id, 0, ~std::uint64_t{0}, {9, 9});
  ps1_.answer(id, 0, 0, {9});      // a partial row
  ps1_.answer(id, 1, 12, {9, 9});  // bytes after the end
  ps1_.answer(id, 1, 0, std::vector<std::int32_t>(40, 9));
  ps1_.to_client->send(transport::kRowsPiece, transport::as_bytes(id));  // not a PieceHeader
  ps1_.to_client->send(transport::kReadFailed, transport::as_bytes(id));
  deliver();
  EXPECT_EQ(out, unread(3));
  EXPECT_EQ(others, unread(3));
  EXPECT_FALSE(reads_.ready(id));
  ps1_.answer(id, 0, 0, {1, 2, 3, 4});
  ps1_.answer(id, 1, 0, {5, 6, 7, 8});
  wait(id);
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 2, 3, 4, -1, -1}));
  EXPECT_EQ(others, (std::vector<std::int32_t>{5, 6, 7, 8, -1, -1}));
}

TEST_F(RemoteReadsTest, DropsPiecesThatExceedTheMissingBytes) {
  auto out = unread(2);
  const auto id = reads_.start({dense(ps1_, 2, out)}, false);
  ps1_.answer(id, 0, 0, {1, 2});
  ps1_.answer(id, 0, 0, {9, 9, 9, 9});
  deliver();
  EXPECT_FALSE(reads_.ready(id));
  ps1_.answer(id, 0, 8, {3, 4});
  wait(id);
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 2, 3, 4}));
}

TEST_F(RemoteReadsTest, DropsRowsOfACancelledRead) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps1_, 1, out)}, false);
  reads_.cancel(id);
  EXPECT_TRUE(reads_.ready(id));
  ps1_.answer(id, 0, 0, {1, 2});
  ps1_.fail(id, Code::internal, "too late");
  deliver();
  EXPECT_EQ(out, unread(1));
  wait(id, milliseconds(0));
}

TEST_F(RemoteReadsTest, FailureWithoutTextEndsTheRead) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps1_, 1, out)}, false);
  ps1_.fail(id, Code::not_found, "");
  deliver();
  EXPECT_TRUE(reads_.ready(id));
  (void)error_of(Code::not_found, [&] { wait(id); });
}

TEST_F(RemoteReadsTest, ThrowsTheErrorOfThePs) {
  auto out = unread(2);
  const auto id = reads_.start({dense(ps1_, 1, out), dense(ps2_, 1, out)}, false);
  ps2_.answer(id, 1, 0, {1, 2});
  ps1_.fail(id, Code::not_found, "variable 3 is unknown");
  deliver();
  EXPECT_TRUE(reads_.ready(id));
  EXPECT_EQ(error_of(Code::not_found, [&] { wait(id); }), "variable 3 is unknown");
  ps1_.answer(id, 0, 0, {7, 7});
  deliver();
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 2, -1, -1})) << "a failed read is cancelled";
}

TEST_F(RemoteReadsTest, ThrowsUnavailableWithTheNameOfTheDeadPs) {
  auto out = unread(2);
  const auto id = reads_.start({dense(ps1_, 1, out), dense(ps2_, 1, out)}, false);
  ps1_.answer(id, 0, 0, {1, 2});
  ps2_.fabric.reset();
  const std::string error = error_of(Code::unavailable, [&] { wait(id); });
  EXPECT_NE(error.find("ps 2"), std::string::npos) << error;
  EXPECT_NE(error.find("read the test"), std::string::npos) << error;
}

TEST_F(RemoteReadsTest, ReturnsRowsThatArrivedBeforeTheDeathOfThePs) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps2_, 1, out)}, false);
  ps2_.answer(id, 0, 0, {1, 2});
  ps2_.fabric.reset();
  deliver();
  EXPECT_TRUE(ps2_.peer->failed());
  wait(id);
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 2}));
}

TEST_F(RemoteReadsTest, SendsNothingIfAPsIsDead) {
  auto out = unread(2);
  ps2_.fabric.reset();
  deliver();
  const auto start = [&] { reads_.start({dense(ps1_, 1, out), dense(ps2_, 1, out)}, false); };
  const std::string error = error_of(Code::unavailable, start);
  EXPECT_NE(error.find("ps 2"), std::string::npos) << error;
  deliver();
  EXPECT_TRUE(ps1_.requests.empty());
}

TEST_F(RemoteReadsTest, EndsAtTheDeadlineAndDropsLaterPieces) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps1_, 1, out)}, false);
  const std::string error = error_of(Code::deadline_exceeded, [&] { wait(id, milliseconds(1)); });
  for (const char* parameter : {"ps 1", "read the test", "1 ms"}) {
    EXPECT_NE(error.find(parameter), std::string::npos) << error;
  }
  ps1_.answer(id, 0, 0, {1, 2});
  deliver();
  EXPECT_EQ(out, unread(1));
}

TEST_F(RemoteReadsTest, EndsIfItsFunctionIsCancelled) {
  auto out = unread(1);
  const auto id = reads_.start({dense(ps1_, 1, out)}, false);
  CancellationRequest request;
  const CancellationScope scope(&request);
  request.request();
  (void)error_of(Code::cancelled, [&] { wait(id); });
  ps1_.answer(id, 0, 0, {1, 2});
  deliver();
  EXPECT_EQ(out, unread(1));
}

}  // namespace
}  // namespace capstan::client
