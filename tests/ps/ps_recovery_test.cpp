// ps_recovery_test.cpp -- state on which a restarted ps and its clients have to agree.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>

#include "io/temporary_directory.hpp"
#include "ps/ingest/push_inbox.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kMaxRanks = 3;
constexpr std::uint64_t kRingBytes = 64 * 1024;
constexpr int kCoordinator = 0;
constexpr int kWorker = 1;

using Values = std::vector<double>;

/// A ps with one variable of four rows. The next object with the same memory is the restarted process.
class PersistentPs {
 public:
  explicit PersistentPs(const std::shared_ptr<transport::PersistentMemory>& memory)
      : persistent_(memory, fabric_, kMaxRanks, protocol::largest_entry(kRingBytes)),
        board_(persistent_.board(protocol::BoardLayout(kMaxRanks).bytes())),
        store_(
            fabric_, 1 << 20, 0, [](std::uint32_t, std::uint64_t) {}, [](std::uint32_t, std::uint64_t) {},
            &persistent_),
        rings_(board_->memory().data(), kMaxRanks, store_.heap(), store_, &persistent_),
        inbox_(
            store_, [](int, std::uint64_t) {}, &persistent_) {
    if (persistent_.has_predecessor()) {
      store_.recover();
      rings_.recover();
      inbox_.recover([this](int rank) { return rings_.applied(rank).has_value(); });
    }
    protocol::CreateShard request;
    request.variable = 1;
    request.name = "w";
    request.dtype = DType::float64;
    request.shape = {4};
    request.rows = 4;
    store_.create(request);
  }

  static std::vector<std::byte> assignment(int rank, double value, bool first_part = true,
                                           bool last_part = true) {
    auto entry = with_op(push_entry<double>(1, 0, {}, 0, 1, Values(4, value), first_part, last_part),
                         protocol::RowOp::set);
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = static_cast<std::uint32_t>(rank);
    std::memcpy(entry.data(), &header, sizeof header);
    return entry;
  }

  protocol::RingLocation open_ring(int rank) { return rings_.open(rank, kRingBytes); }
  /// Writes the first entry of the rank's ring.
  void assign_by_ring(int rank, double value) {
    const protocol::RingLocation location = open_ring(rank);
    const auto entry = assignment(rank, value);
    std::memcpy(store_.heap().at(location.region, location.offset).data, entry.data(), entry.size());
    word(protocol::BoardLayout(kMaxRanks).tail(static_cast<std::uint64_t>(rank))).store(entry.size());
    ASSERT_TRUE(rings_.apply_some());
  }
  void assign_by_message(int rank, double value, bool first_part = true, bool last_part = true) {
    const auto entry = assignment(rank, value, first_part, last_part);
    const transport::Bytes bytes(entry);
    inbox_.receive(
        {0, rank, bytes.first(sizeof(protocol::PushHeader)), bytes.subspan(sizeof(protocol::PushHeader))});
  }
  /// Applies an entry as a process that is killed before it commits the entry.
  void assign_without_commit(int rank, double value) { apply_entry(store_, assignment(rank, value)); }
  void set_learning_rate(double rate) { apply_entry(store_, rate_entry(1, 0, rate)); }
  void push_ones() { apply_entry(store_, push_entry<double>(1, 0, {}, 0, 1, Values(4, 1))); }
  void close(int rank) { close_pusher(rank, inbox_, rings_); }
  /// Returns the number of applied bytes of the rank's entries, or protocol::kFenced.
  std::uint64_t position(int rank) {
    return word(protocol::BoardLayout(kMaxRanks).applied(static_cast<std::uint64_t>(rank))).load();
  }
  void begin_waiting_read() { store_.add_waiting_read(1, 0, 1); }
  /// Like PsServer::reconnect_coordinator.
  void reconnect_coordinator() {
    close(kCoordinator);
    rings_.release(kCoordinator);
    rings_.reset(kCoordinator);
  }
  void restore(const std::filesystem::path& directory, double value) {
    const Values all(4, value);
    std::ofstream(directory / "part", std::ios::binary)
        .write(reinterpret_cast<const char*>(all.data()), sizeof(double) * 4);
    protocol::RestoreShard shard{1, 0, 5, {}, {{0, 0, 0, sizeof(double) * 4, 0}}, {}};
    store_.restore(protocol::RestorePart{directory.string(), {"part"}, {shard}});
  }

  Values values() {
    const Store::RowsView view = store_.view(1, 0);
    Values out(4);
    std::memcpy(out.data(), view.values, sizeof(double) * 4);
    return out;
  }
  std::uint64_t version() {
    const protocol::ShardLocation location = store_.list().at(0).location;
    std::uint64_t version = 0;
    std::memcpy(&version, store_.heap().at(location.version_region, location.version_offset).data,
                sizeof version);
    return version;
  }
  bool finds_uncommitted_entry() const { return persistent_.uncommitted_entry().has_value(); }

 private:
  std::atomic_ref<std::uint64_t> word(std::uint64_t offset) {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(board_->memory().data() + offset));
  }

  transport::UcxFabric fabric_;
  PersistentState persistent_;
  std::unique_ptr<transport::Region> board_;
  Store store_;
  RingReader rings_;
  PushInbox inbox_;
};

TEST(PsRecovery, RetainsTheFirstPushOfAKilledCoordinator) {
  for (const bool by_ring : {true, false}) {
    SCOPED_TRACE(by_ring ? "by a ring" : "by a message");
    const auto memory = transport::PersistentMemory::create();
    std::optional<PersistentPs> ps(std::in_place, memory);
    by_ring ? ps->assign_by_ring(kCoordinator, 7) : ps->assign_by_message(kCoordinator, 7);
    ps->reconnect_coordinator();
    EXPECT_FALSE(ps->finds_uncommitted_entry());
    ps.emplace(memory);
    EXPECT_EQ(ps->values(), Values(4, 7));
  }
}

TEST(PsRecovery, RecoversALearningRateOverride) {
  const auto memory = transport::PersistentMemory::create();
  std::optional<PersistentPs> ps(std::in_place, memory);
  ps->set_learning_rate(-5);
  ps->set_learning_rate(0);
  ps.emplace(memory);
  ps->push_ones();
  EXPECT_EQ(ps->values(), Values(4, 0));
  ps->set_learning_rate(-3);
  ps.emplace(memory);
  ps->push_ones();
  EXPECT_EQ(ps->values(), Values(4, 3));
}

TEST(PsRecovery, RetainsAPushByMessageIfItsRankOpensARing) {
  const auto memory = transport::PersistentMemory::create();
  std::optional<PersistentPs> ps(std::in_place, memory);
  ps->assign_by_message(kWorker, 7);
  ps->open_ring(kWorker);
  ps.emplace(memory);
  EXPECT_EQ(ps->values(), Values(4, 7));
}

TEST(PsRecovery, UndoesAnUncommittedPushOnceAndNeverARestore) {
  const io::TemporaryDirectory directory;
  const auto memory = transport::PersistentMemory::create();
  std::optional<PersistentPs> ps(std::in_place, memory);
  ps->assign_by_message(kWorker, 7);
  ps->assign_without_commit(kWorker, 8);
  EXPECT_TRUE(ps->finds_uncommitted_entry());
  ps.emplace(memory);
  EXPECT_EQ(ps->values(), Values(4, 7));
  ps->restore(directory.path(), 9);
  ps.emplace(memory);
  EXPECT_EQ(ps->values(), Values(4, 9));
}

TEST(PsRecovery, ConsistentReadDoesNotSeeAnInterruptedPush) {
  const auto memory = transport::PersistentMemory::create();
  for (const bool closed : {false, true}) {
    std::optional<PersistentPs> ps(std::in_place, memory);
    ps->assign_by_message(kWorker, 7, true, false);
    EXPECT_EQ(ps->version() % 2, 1U);
    const std::uint64_t before = ps->version();
    ps.emplace(memory);
    EXPECT_EQ(ps->version() % 2, 1U);
    EXPECT_NE(ps->version(), before);
    if (closed) {
      ps->close(kWorker);
    } else {  // the second run of its closure does not wait for the reader
      ps->begin_waiting_read();
      ps->assign_by_message(kWorker, 7, true, false);
      EXPECT_EQ(ps->version() % 2, 1U);
      ps->assign_by_message(kWorker, 7, false, true);
    }
    EXPECT_EQ(ps->version() % 2, 0U);
  }
}

TEST(PsRecovery, FencesADeadRankWithWaitingMessages) {
  PersistentPs ps(transport::PersistentMemory::create());
  ps.begin_waiting_read();
  ps.assign_by_message(kWorker, 7);
  EXPECT_EQ(ps.values(), Values(4, 0));
  ps.close(kWorker);
  EXPECT_EQ(ps.values(), Values(4, 7));
  EXPECT_EQ(ps.position(kWorker), protocol::kFenced);
}

TEST(PsRecovery, RestoreChangesTheVersion) {
  const io::TemporaryDirectory directory;
  PersistentPs ps(transport::PersistentMemory::create());
  const std::uint64_t before = ps.version();
  ps.restore(directory.path(), 9);
  EXPECT_EQ(ps.version() % 2, 0U);
  EXPECT_NE(ps.version(), before);
}

}  // namespace
}  // namespace capstan::ps
