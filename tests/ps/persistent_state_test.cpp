// persistent_state_test.cpp -- kills a ps repeatedly while it applies pushes, and compares its final state
// bit for bit with that of a ps that was not killed.
#include "ps/durability/persistent_state.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "ps/ingest/ring_reader.hpp"
#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kPersistentStateRanks = 3;
constexpr std::uint64_t kPersistentStateRing = std::uint64_t{1} << 20;
constexpr std::uint64_t kPersistentStateRows = 500;
constexpr std::uint64_t kEntries = 4000;
constexpr int kPusher = 1;

struct Table {
  DType dtype;
  std::uint64_t width;
  Optimizer optimizer;
  bool int8 = false;
};

/// Narrow and wide rows; two, one and no slots; a row larger than a group.
const std::vector<Table>& tables() {
  static const std::vector<Table> all{{DType::float32, 24, optimizers::Adam{}},
                                      {DType::bfloat16, 40, optimizers::Adagrad{}},
                                      {DType::float32, 3000, optimizers::Adam{}},
                                      {DType::int64, 8, optimizers::SGD{.learning_rate = 1}},
                                      {DType::float64, 5, optimizers::Momentum{}},
                                      {DType::float32, 24, optimizers::Adam{}, true},
                                      {DType::float32, 3000, optimizers::Adagrad{}, true}};
  return all;
}

template <class T>
std::vector<std::byte> entry_of(std::mt19937_64& random, std::uint32_t table, std::uint64_t width) {
  const bool dense = random() % 4 == 0;
  const std::uint64_t count = width > 1000 ? 1 + random() % 4 : 1 + random() % 150;
  std::vector<std::uint32_t> rows;
  for (std::uint64_t i = 0; i < count && !dense; ++i)
    rows.push_back(static_cast<std::uint32_t>((random() % 3 + i * 3) % kPersistentStateRows));
  std::vector<T> gradient(count * width);
  for (T& g : gradient) g = static_cast<T>(static_cast<float>(random() % 100) / 10);
  return push_entry<T>(table, 0, rows, random() % (kPersistentStateRows - count), width, gradient);
}

/// Returns the k-th entry of the pusher, which depends only on k.
std::vector<std::byte> make_entry(std::uint64_t k) {
  std::mt19937_64 random(k);
  std::vector<std::byte> bytes;
  if (random() % 16 == 0) {
    protocol::PushHeader count;
    count.kind = protocol::PushKind::count;
    count.first_row = 1 + random() % 5;
    count.bytes = sizeof count;
    bytes.resize(sizeof count);
    std::memcpy(bytes.data(), &count, sizeof count);
  } else {
    const auto table = static_cast<std::uint32_t>(random() % tables().size());
    const std::uint64_t width = tables()[table].width;
    switch (tables()[table].dtype) {
      case DType::float32:
        bytes = entry_of<float>(random, table, width);
        break;
      case DType::bfloat16:
        bytes = entry_of<bfloat16>(random, table, width);
        break;
      case DType::int64:
        bytes = entry_of<std::int64_t>(random, table, width);
        break;
      default:
        bytes = entry_of<double>(random, table, width);
    }
    if (k % 7 == 0) bytes = with_op(std::move(bytes), protocol::RowOp::add);
  }
  protocol::PushHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.closure = 1 + k / 5;  // five entries per closure
  header.call = static_cast<std::uint32_t>(k % 5);
  header.rank = kPusher;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

/// Returns make_entry(k). All entries are made once, before the first process is forked.
const std::vector<std::byte>& entry(std::uint64_t k) {
  static const std::vector<std::vector<std::byte>> all = [] {
    std::vector<std::vector<std::byte>> made;
    for (std::uint64_t i = 0; i < kEntries; ++i) made.push_back(make_entry(i));
    return made;
  }();
  return all[k];
}

/// One process of the ps, and the pusher, which continues after the entries that it has published.
class PsProcess {
 public:
  explicit PsProcess(const std::shared_ptr<transport::PersistentMemory>& memory)
      : persistent_(memory, fabric_, kPersistentStateRanks, protocol::largest_entry(kPersistentStateRing)),
        board_(persistent_.board(protocol::BoardLayout(kPersistentStateRanks).bytes())),
        store_(
            fabric_, 1 << 20, 0, [](std::uint32_t, std::uint64_t) {}, [](std::uint32_t, std::uint64_t) {},
            &persistent_),
        rings_(board_->memory().data(), kPersistentStateRanks, store_.heap(), store_, &persistent_) {
    if (persistent_.has_predecessor()) {
      uncommitted_ = persistent_.uncommitted_entry().has_value();
      store_.recover();
      rings_.recover();
    }
    for (std::uint32_t t = 0; t < tables().size(); ++t) {
      protocol::CreateShard request;
      request.variable = t;
      request.name = "t" + std::to_string(t);
      request.dtype = tables()[t].dtype;
      request.storage = {tables()[t].int8, tables()[t].int8};
      request.shape = {kPersistentStateRows, tables()[t].width};
      request.rows = kPersistentStateRows;
      request.optimizer = tables()[t].optimizer;
      store_.create(request);  // already exists after a restart
    }
    location_ = rings_.open(kPusher, kPersistentStateRing);
    ring_ = store_.heap().at(location_.region, location_.offset).data;
  }

  bool found_uncommitted_entry() const { return uncommitted_; }

  void push_all() {
    const protocol::BoardLayout layout(kPersistentStateRanks);
    auto tail = word(layout.tail(kPusher));
    std::uint64_t k = 0;
    for (std::uint64_t at = 0; at < tail.load(); ++k) at = begin_of(at, entry(k).size()) + entry(k).size();
    while (word(layout.applied(kPusher)).load() != tail.load() || k < kEntries) {
      while (k < kEntries) {
        const std::vector<std::byte>& bytes = entry(k);
        const std::uint64_t from = tail.load();
        const std::uint64_t at = begin_of(from, bytes.size());
        if (at + bytes.size() - word(layout.applied(kPusher)).load() > kPersistentStateRing) break;
        if (at != from) {
          protocol::PushHeader padding;
          padding.bytes = at - from;
          std::memcpy(ring_ + from % kPersistentStateRing, &padding, sizeof padding);
        }
        std::memcpy(ring_ + at % kPersistentStateRing, bytes.data(), bytes.size());
        tail.store(at + bytes.size());
        ++k;
      }
      rings_.apply_some();
    }
  }

  /// Returns the first position from `at` on at which an entry of `bytes` does not wrap around.
  static std::uint64_t begin_of(std::uint64_t at, std::uint64_t bytes) {
    const std::uint64_t to_end = kPersistentStateRing - at % kPersistentStateRing;
    return to_end < bytes ? at + to_end : at;
  }

  /// Returns all values.
  std::vector<std::byte> contents() {
    std::vector<std::byte> all;
    for (std::uint32_t t = 0; t < tables().size(); ++t) {
      const Store::RowsView view = store_.view(t, 0);
      std::vector<std::byte> values(view.rows * view.row_bytes);
      store_.gather(view, 0, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

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
  protocol::RingLocation location_;
  std::byte* ring_ = nullptr;
  bool uncommitted_ = false;
};

/// Runs a ps process, which pushes all entries unless it is killed. Writes to `out`: 'c' if it found an
/// uncommitted entry, 'b' before the first push, and all values after the last push.
[[noreturn]] void run_ps(const std::shared_ptr<transport::PersistentMemory>& memory, int out) {
  try {
    PsProcess incarnation(memory);
    if (incarnation.found_uncommitted_entry()) (void)!::write(out, "c", 1);
    (void)!::write(out, "b", 1);
    incarnation.push_all();
    const std::vector<std::byte> contents = incarnation.contents();
    for (std::size_t at = 0; at < contents.size();) {
      const ssize_t wrote = ::write(out, contents.data() + at, contents.size() - at);
      if (wrote <= 0) _exit(2);
      at += static_cast<std::size_t>(wrote);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

struct Outcome {
  int kills = 0;
  int uncommitted = 0;
  std::string contents;
};

Outcome run_with_kills(unsigned seed, int max_kills) {
  (void)entry(0);
  const auto memory = transport::PersistentMemory::create();
  std::mt19937 random(seed);
  Outcome end;
  while (true) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      run_ps(memory, ends[1]);
    }
    close(ends[1]);
    std::string output;
    char buffer[65536];
    const bool dies = end.kills < max_kills;
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
      const bool began = output.find('b') == output.npos;
      output.append(buffer, static_cast<std::size_t>(got));
      if (dies && began && output.find('b') != output.npos) {
        // Kill at a random time during its work.
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
        kill(child, SIGKILL);
      }
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    end.uncommitted += output.starts_with('c') ? 1 : 0;
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL);
      ++end.kills;
      continue;
    }
    EXPECT_EQ(status, 0);
    end.contents = output.substr(output.find('b') + 1);
    return end;
  }
}

TEST(PersistentStateTest, KilledProcessesReachTheSameState) {
  const Outcome whole = run_with_kills(0, 0);
  ASSERT_FALSE(whole.contents.empty());
  int kills = 0;
  int uncommitted = 0;
  // Most kills fall between two entries.
  for (unsigned seed = 1; seed <= 20 && uncommitted < 5; ++seed) {
    const Outcome killed = run_with_kills(seed, 60);
    EXPECT_TRUE(killed.contents == whole.contents) << "the values differ after " << killed.kills << " kills";
    kills += killed.kills;
    uncommitted += killed.uncommitted;
  }
  std::printf("%d kills, %d uncommitted entries\n", kills, uncommitted);
  EXPECT_GT(uncommitted, 0) << "no kill interrupted an entry";
}

}  // namespace
}  // namespace capstan::ps
