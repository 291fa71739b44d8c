// replica_test.cpp -- tests that a store applies entries after its replica, and that both are bitwise equal.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "ps/durability/replica_inbox.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/ingest/push_inbox.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "support/expect_error.hpp"
#include "transport/bytes.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kReplicaRanks = 4;
constexpr std::uint64_t kReplicaRing = 32768;
constexpr std::uint32_t kReplicaRows = 40;
constexpr std::uint64_t kReplicaWidth = 16;

class ReplicaTest : public testing::Test {
 protected:
  void SetUp() override {
    replica_fabric_->on_message(transport::kReplicate, [this](const transport::Message& m) {
      ++messages_;
      follower_.receive(m);
    });
    ps_fabric_->on_message(transport::kReplicated, [this](const transport::Message& m) {
      protocol::ReplicaProgress progress;
      std::memcpy(&progress, m.header.data(), sizeof progress);
      stream_.on_progress(progress);
    });
  }

  void create(std::uint32_t variable, const Optimizer& optimizer, bool int8 = false) {
    protocol::CreateShard request{
        variable,     0,         "v",          DType::float32, {kReplicaRows, kReplicaWidth}, 0,
        kReplicaRows, optimizer, Initializer{}};
    request.storage = {int8, int8};
    if (int8) request.initializer = initializers::normal(0, 1, 2);
    stream_.call(transport::kCreateVariable, 1, to_bytes(request));
    follow();
    store_.create(request);
  }
  /// Has the replica apply all records and acknowledge them to the ps.
  void follow() {
    stream_.flush();
    replica_fabric_->progress();
    follower_.apply_some();
    ps_fabric_->progress();
  }
  static std::vector<float> values_of(Store& store, std::uint32_t variable) {
    const auto view = store.view(variable, 0);
    std::vector<float> out(view.rows * view.row_bytes / sizeof(float));
    store.gather(view, 0, std::as_writable_bytes(std::span(out)));
    return out;
  }
  /// Returns a push whose gradient has `value` as the first element of each row, and other integers.
  static std::vector<std::byte> entry(std::uint32_t variable, std::vector<std::uint32_t> rows, float value,
                                      bool first_part = true, bool last_part = true) {
    std::vector<float> gradient(rows.size() * kReplicaWidth, value);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] += static_cast<float>(i % kReplicaWidth * 37 % 101);
    return push_entry<float>(variable, 0, rows, 0, kReplicaWidth, gradient, first_part, last_part);
  }
  std::atomic_ref<std::uint64_t> word(std::uint64_t at) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(board_->memory().data() + at));
  }
  std::uint64_t applied(int rank) { return word(layout_.applied(static_cast<std::uint64_t>(rank))); }
  /// Writes an entry to the ring of a rank at position `tail`; the ring never wraps here.
  void publish(int rank, std::uint64_t& tail, const std::vector<std::byte>& entry) {
    const protocol::RingLocation location = rings_.open(rank, kReplicaRing);
    std::memcpy(store_.heap().at(location.region, location.offset).data + tail, entry.data(), entry.size());
    tail += entry.size();
    word(layout_.tail(static_cast<std::uint64_t>(rank))).store(tail);
  }
  void send(int rank, const std::vector<std::byte>& entry) {
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.acknowledge = 1;
    const transport::Bytes bytes(entry);
    inbox_.receive({transport::kPushEntry, rank, transport::as_bytes(header), bytes.subspan(sizeof header)});
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> ps_fabric_ = hub_.open();
  std::unique_ptr<transport::Fabric> replica_fabric_ = hub_.open();
  Store store_{*ps_fabric_, 1 << 20, 0};
  Store copy_{*replica_fabric_, 1 << 20, 0};
  transport::Peer& to_ps_ = replica_fabric_->connect(1, "ps", ps_fabric_->address());
  ReplicaStream stream_{ps_fabric_->connect(2, "replica", replica_fabric_->address())};
  int messages_ = 0;  // received by the replica
  std::uint64_t closed_ = 0;
  ReplicaInbox follower_{copy_,
                         [this](std::uint16_t type, int from, transport::Bytes request) {
                           if (type == transport::kWorkerDead) {
                             ++closed_;
                             follower_.close(from);
                             copy_.remove_worker(from);
                             return;
                           }
                           copy_.create(from_bytes<protocol::CreateShard>(request));
                         },
                         [this](const protocol::ReplicaProgress& progress) {
                           to_ps_.send(transport::kReplicated, transport::as_bytes(progress));
                         }};
  protocol::BoardLayout layout_{kReplicaRanks};
  std::unique_ptr<transport::Region> board_ = ps_fabric_->allocate(layout_.bytes());
  RingReader rings_{board_->memory().data(), kReplicaRanks, store_.heap(), store_, nullptr, &stream_};
  std::vector<std::pair<int, std::uint64_t>> acknowledged_;
  PushInbox inbox_{store_, [this](int rank, std::uint64_t bytes) { acknowledged_.emplace_back(rank, bytes); },
                   nullptr, &stream_};
};

TEST_F(ReplicaTest, AppliesARingEntryAfterTheReplica) {
  create(1, optimizers::SGD{.learning_rate = 1});
  std::uint64_t tail = 0;
  publish(1, tail, entry(1, {0, 2}, 1));
  EXPECT_FALSE(rings_.apply_some());
  EXPECT_EQ(applied(1), 0U);
  EXPECT_EQ(values_of(store_, 1)[0], 0);
  EXPECT_FALSE(rings_.has_work()) << "the replica's acknowledgement will wake the ps";
  stream_.flush();
  replica_fabric_->progress();
  EXPECT_FALSE(rings_.apply_some()) << "the replica has received but not applied it";
  follow();
  EXPECT_EQ(values_of(copy_, 1)[0], -1);
  EXPECT_TRUE(rings_.has_work());
  EXPECT_TRUE(rings_.apply_some());
  EXPECT_EQ(applied(1), tail);
  EXPECT_EQ(values_of(store_, 1), values_of(copy_, 1));
}

TEST_F(ReplicaTest, AppliesAMessageEntryAfterTheReplica) {
  create(1, optimizers::SGD{.learning_rate = 1});
  send(1, entry(1, {4}, 2));
  inbox_.apply_some();
  EXPECT_TRUE(acknowledged_.empty());
  follow();
  EXPECT_TRUE(inbox_.apply_some());
  ASSERT_EQ(acknowledged_.size(), 1U);
  EXPECT_EQ(values_of(store_, 1), values_of(copy_, 1));
  EXPECT_EQ(values_of(store_, 1)[4 * kReplicaWidth], -2);
}

TEST_F(ReplicaTest, ReplicatesALearningRate) {
  create(1, optimizers::SGD{.learning_rate = 1});
  std::uint64_t tail = 0;
  publish(1, tail, rate_entry(1, 0, 5));
  publish(1, tail, entry(1, {0}, 1));
  send(2, rate_entry(1, 0, 5));
  send(2, entry(1, {1}, 1));
  EXPECT_FALSE(rings_.apply_some()) << "the replica has not applied them";
  follow();
  EXPECT_TRUE(rings_.apply_some());
  EXPECT_TRUE(inbox_.apply_some());
  EXPECT_EQ(values_of(copy_, 1)[0], -5);
  EXPECT_EQ(values_of(copy_, 1)[kReplicaWidth], -5);
  EXPECT_EQ(values_of(store_, 1), values_of(copy_, 1));
}

// The replica may apply entries of different ranks in another order. Variable 1, which several ranks push to,
// therefore uses SGD with integral gradients, whose sums are exact.
TEST_F(ReplicaTest, StoresAreBitwiseEqual) {
  create(1, optimizers::SGD{.learning_rate = 1});
  create(2, optimizers::Adam{.learning_rate = 0.01});
  create(3, optimizers::Adagrad{.learning_rate = 0.01}, /*int8=*/true);
  const std::vector<float> before = values_of(store_, 3);
  ASSERT_EQ(before, values_of(copy_, 3));
  std::mt19937 random(7);
  std::uint64_t tails[kReplicaRanks] = {};
  for (int step = 0; step < 300; ++step) {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = random() % 5; row < kReplicaRows; row += 1 + random() % 9) rows.push_back(row);
    const int rank = static_cast<int>(random() % kReplicaRanks);
    const auto made = entry(rank != 3 ? 1 : step % 2 == 0 ? 2 : 3, rows, static_cast<float>(random() % 100));
    if (rank >= 2) {
      send(rank, made);
    } else if (tails[rank] + made.size() <= kReplicaRing) {
      publish(rank, tails[rank], made);
    }
    if (random() % 3 == 0) follow();
    rings_.apply_some();
    inbox_.apply_some();
  }
  do follow();
  while (rings_.apply_some() || inbox_.apply_some());
  EXPECT_FALSE(stream_.has_pending());
  for (const std::uint32_t variable : {1U, 2U, 3U}) {
    EXPECT_EQ(values_of(store_, variable), values_of(copy_, variable));
    EXPECT_NE(values_of(store_, variable)[kReplicaWidth], 0);
  }
  EXPECT_NE(values_of(store_, 3), before);
}

TEST_F(ReplicaTest, ContinuesAfterTheReplicaIsDropped) {
  create(1, optimizers::SGD{.learning_rate = 1});
  std::uint64_t tail = 0;
  publish(1, tail, entry(1, {0}, 1));
  send(2, entry(1, {0}, 1));
  rings_.apply_some();
  inbox_.apply_some();
  EXPECT_EQ(values_of(store_, 1)[0], 0);
  bool safe = false;
  stream_.when_safe([&] { safe = true; });
  EXPECT_FALSE(stream_.advance());
  stream_.drop();
  EXPECT_TRUE(rings_.apply_some());
  EXPECT_TRUE(inbox_.apply_some());
  EXPECT_TRUE(stream_.advance());
  EXPECT_TRUE(safe);
  EXPECT_EQ(values_of(store_, 1)[0], -2);
}

TEST_F(ReplicaTest, AbandonsAPartiallySentPushWhenItsPusherOrThePsDies) {
  create(1, optimizers::SGD{.learning_rate = 1});
  send(1, entry(1, {0}, 1, true, false));
  send(2, entry(1, {1}, 1, true, false));
  follow();
  EXPECT_FALSE(copy_.is_consistent(1, 0));
  stream_.call(transport::kWorkerDead, 1, {});
  follow();
  EXPECT_EQ(closed_, 1U);
  EXPECT_FALSE(copy_.is_consistent(1, 0)) << "the push of rank 2 is still open";
  follower_.end();
  EXPECT_TRUE(copy_.is_consistent(1, 0));
  EXPECT_EQ(values_of(copy_, 1)[0], -1) << "records received before the end stay applied";
}

TEST_F(ReplicaTest, NeverAcknowledgesARecordAfterAMissingOne) {
  create(1, optimizers::SGD{.learning_rate = 1});
  const auto whole = entry(1, {0, 1}, 1);
  const protocol::ReplicaRecord record{3, transport::kPushEntry, 1, whole.size()};  // 2 is missing
  std::vector<std::byte> records(sizeof record + whole.size());
  std::memcpy(records.data(), &record, sizeof record);
  std::memcpy(records.data() + sizeof record, whole.data(), whole.size());
  follower_.receive({transport::kReplicate, 1, {}, records});
  (void)error_of(Code::data_loss, [this] { follower_.apply_some(); });
  ps_fabric_->progress();
  EXPECT_FALSE(stream_.safe(2));
  EXPECT_EQ(values_of(copy_, 1)[0], 0);
}

TEST_F(ReplicaTest, AppliesRecordsOfAnySizeInOneMessage) {
  create(1, optimizers::SGD{.learning_rate = 1});
  const std::array<std::byte, 5> request{};
  messages_ = 0;
  std::uint64_t tail = 0;
  publish(1, tail, entry(1, {0}, 1));
  rings_.apply_some();
  stream_.call(transport::kWorkerDead, 3, request);
  publish(2, tail = 0, entry(1, {0}, 1));
  rings_.apply_some();
  follow();
  EXPECT_EQ(closed_, 1U);
  EXPECT_EQ(values_of(copy_, 1)[0], -2);
}

TEST_F(ReplicaTest, NeverAcknowledgesARecordOfAnUnknownType) {
  create(1, optimizers::SGD{.learning_rate = 1});
  ASSERT_FALSE(stream_.has_pending());
  stream_.call(60'000, 1, {});
  send(1, entry(1, {0}, 1));
  inbox_.apply_some();
  stream_.flush();
  replica_fabric_->progress();
  (void)error_of(Code::data_loss, [this] { follower_.apply_some(); });
  ps_fabric_->progress();
  EXPECT_FALSE(inbox_.apply_some());
  EXPECT_TRUE(acknowledged_.empty());
  EXPECT_TRUE(stream_.has_pending());
  EXPECT_EQ(values_of(copy_, 1)[0], 0);
}

TEST_F(ReplicaTest, NeverAcknowledgesATruncatedPush) {
  create(1, optimizers::SGD{.learning_rate = 1});
  const auto whole = entry(1, {0, 1}, 1);
  protocol::PushHeader header;
  std::memcpy(&header, whole.data(), sizeof header);
  stream_.push(header, transport::Bytes(whole).subspan(sizeof header, 4));
  stream_.flush();
  replica_fabric_->progress();
  (void)error_of(Code::data_loss, [this] { follower_.apply_some(); });
  ps_fabric_->progress();
  EXPECT_TRUE(stream_.has_pending());
}

TEST_F(ReplicaTest, NeverAcknowledgesARecordThatIsCutShort) {
  create(1, optimizers::SGD{.learning_rate = 1});
  const auto whole = entry(1, {0, 1}, 1);
  // A valid record 2, and the first 8 bytes of record 3.
  const protocol::ReplicaRecord record{2, transport::kPushEntry, 1, whole.size()};
  std::vector<std::byte> records(sizeof record + whole.size() + 8);
  std::memcpy(records.data(), &record, sizeof record);
  std::memcpy(records.data() + sizeof record, whole.data(), whole.size());
  for (const std::size_t bytes : {records.size() - 16, sizeof record - 1, std::size_t{1}, records.size()}) {
    follower_.receive({transport::kReplicate, 1, {}, transport::Bytes(records).first(bytes)});
    (void)error_of(Code::data_loss, [this] { follower_.apply_some(); });
  }
  ps_fabric_->progress();
  EXPECT_FALSE(stream_.safe(2));
}

TEST_F(ReplicaTest, CollectsRecordsWhileEarlierOnesAreInFlight) {
  create(1, optimizers::SGD{.learning_rate = 1});
  messages_ = 0;
  const auto receive = [this] {
    stream_.send_if_idle();
    replica_fabric_->progress();
    return messages_;
  };
  std::uint64_t tail = 0;
  for (const std::uint32_t row : {0U, 1U, 2U}) {
    publish(1, tail, entry(1, {row}, 1));
    rings_.apply_some();
    EXPECT_EQ(receive(), 1) << "row " << row;
    EXPECT_FALSE(rings_.has_work()) << "an acknowledgement wakes the ps, which then sends the other records";
  }
  follower_.apply_some();
  ps_fabric_->progress();
  EXPECT_TRUE(stream_.has_pending());
  EXPECT_EQ(receive(), 2);
  follower_.apply_some();
  ps_fabric_->progress();
  EXPECT_FALSE(stream_.has_pending());
  EXPECT_TRUE(rings_.apply_some());
  EXPECT_EQ(applied(1), tail);
  EXPECT_EQ(values_of(store_, 1), values_of(copy_, 1));
  EXPECT_EQ(values_of(copy_, 1)[2 * kReplicaWidth], -1);
}

TEST_F(ReplicaTest, SendsAFullMessageWhileEarlierOnesAreInFlight) {
  create(1, optimizers::SGD{.learning_rate = 1});
  messages_ = 0;
  send(1, entry(1, {0}, 1));
  stream_.send_if_idle();
  const auto small = entry(1, {0}, 1);
  const std::size_t records = transport::kPieceBytes / (small.size() + sizeof(protocol::ReplicaRecord)) + 1;
  for (std::size_t i = 0; i < records; ++i) {
    send(1, small);
    stream_.send_if_idle();
  }
  replica_fabric_->progress();
  EXPECT_EQ(messages_, 2) << "a full one, and the last record is still collected";
  follow();
  while (inbox_.apply_some()) {
  }
  EXPECT_EQ(values_of(copy_, 1)[0], -static_cast<float>(records) - 1);
  EXPECT_EQ(values_of(store_, 1), values_of(copy_, 1));
}

TEST_F(ReplicaTest, KeepsTheOrderOfSmallAndLargeRecords) {
  const std::uint32_t rows = transport::kPieceBytes / (kReplicaWidth * sizeof(float)) + 1;
  const protocol::CreateShard request{
      1, 0, "v", DType::float32, {rows, kReplicaWidth}, 0, rows, optimizers::SGD{}, Initializer{}};
  stream_.call(transport::kCreateVariable, 1, to_bytes(request));
  follow();
  store_.create(request);
  const auto set = [](std::uint32_t row, std::uint32_t count, float value) {
    std::vector<std::uint32_t> numbers(count);
    for (std::uint32_t i = 0; i < count; ++i) numbers[i] = row + i;
    return with_op(entry(1, numbers, value), protocol::RowOp::set);
  };
  messages_ = 0;
  send(1, set(0, 1, 1));
  send(1, set(0, rows, 2));
  send(1, set(1, 1, 3));
  follow();
  EXPECT_EQ(messages_, 3);
  EXPECT_FALSE(stream_.has_pending());
  inbox_.apply_some();
  const auto values = values_of(copy_, 1);
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[kReplicaWidth], 3);
  EXPECT_EQ(values[values.size() - kReplicaWidth], 2);
  EXPECT_EQ(values_of(store_, 1), values);
}

TEST_F(ReplicaTest, SendsNothingOnceTheReplicaIsDropped) {
  create(1, optimizers::SGD{.learning_rate = 1});
  messages_ = 0;
  send(1, entry(1, {0}, 1));
  stream_.drop();
  send(1, entry(1, {0}, 1));
  stream_.send_if_idle();
  stream_.flush();
  replica_fabric_->progress();
  EXPECT_EQ(messages_, 0);
}

TEST_F(ReplicaTest, CountsRefusedCalls) {
  create(1, optimizers::SGD{});
  EXPECT_EQ(stream_.refused(), 0U);
  EXPECT_THROW(create(1, optimizers::SGD{}), Error);  // it already exists in both
  EXPECT_EQ(stream_.refused(), 1U);
  EXPECT_FALSE(stream_.busy());
}

TEST_F(ReplicaTest, CountsARepeatedClosureOnceOnTheReplica) {
  create(1, optimizers::SGD{.learning_rate = 1});
  const auto of_closure = [](std::vector<std::byte> bytes, std::uint32_t number, bool again) {
    protocol::PushHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.closure = 9;
    header.call = number;
    header.again = again ? 1 : 0;
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  };
  send(1, of_closure(entry(1, {0}, 1), 0, false));
  follow();
  // The ps dies; after the failover to the replica, the closure runs again elsewhere.
  follower_.end();
  copy_.remove_worker(1);
  for (std::uint32_t number = 0; number < 2; ++number) {
    auto again = of_closure(entry(1, {0}, 1), number, true);
    protocol::PushHeader header;
    std::memcpy(&header, again.data(), sizeof header);
    header.rank = 2;
    std::memcpy(again.data(), &header, sizeof header);
    apply_entry(copy_, again);
  }
  EXPECT_EQ(values_of(copy_, 1)[0], -2);
}

}  // namespace
}  // namespace capstan::ps
