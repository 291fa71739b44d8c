// ps_memory_test.cpp -- checks the memory of a ps with 64 workers, of which some die, against the formula in
// docs/performance.md.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "capstan/serialize.hpp"
#include "client/client_fixture.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/ps_calls.hpp"
#include "transport/message_types.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::client {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kWorkers = 64;
constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kPsMemoryRing = 64 * kKiB;
constexpr std::uint64_t kPsMemorySlab = 1024 * kKiB;  // as RankThreads sets it

/// Orders to the workers, which are threads. Each push adds 1 to the first row of the variable.
struct Orders {
  std::atomic<bool> made{false};
  protocol::VariableDescriptor variable;
  std::atomic<std::uint64_t> may_push{0};  // workers with a lower index may push
  std::atomic<std::uint64_t> rounds{1};    // pushes per worker
  std::atomic<std::uint64_t> must_die{0};  // workers with a lower index exit
  std::atomic<bool> over{false};           // workers that exit serve until the job ends
  std::atomic<std::uint64_t> pushes{0};    // applied so far
};

void obey(Orders& orders, const std::shared_ptr<cluster::Runtime>& runtime) {
  const auto self = static_cast<std::uint64_t>(runtime->self().index);
  const auto pause = [] { std::this_thread::sleep_for(milliseconds(1)); };  // between two polls
  while (!orders.made || self >= orders.may_push) {
    if (self < orders.must_die) return;
    pause();
  }
  Client client(runtime);
  const std::vector<std::int64_t> first_row{0};
  const std::vector<float> gradient(orders.variable.width(), 1);
  for (std::uint64_t round = 0; self >= orders.must_die;) {
    if (round == orders.rounds) {
      pause();
      continue;
    }
    client.push(orders.variable, first_row, gradient.data());
    client.flush();
    ++round;
    ++orders.pushes;
  }
}

class PsMemoryTest : public ClientFixture {
 protected:
  void SetUp() override {
    RankThreadsOptions options{.ranks = static_cast<int>(2 + kWorkers),
                               .flags = {{"ps", "1"}, {"push-ring-bytes", "64KiB"}}};
    options.worker = [this, serve = options.worker](const std::shared_ptr<cluster::Runtime>& runtime) {
      obey(orders_, runtime);
      return orders_.over ? serve(runtime) : 0;
    };
    start(options, 1);
    orders_.variable = create("pushed", DType::float32, {1024, 16});  // 64 KiB
    orders_.made = true;
  }
  void TearDown() override {
    orders_.over = true;
    orders_.must_die = kWorkers;
    ClientFixture::TearDown();
  }

  protocol::PsStatistics statistics() {
    return from_bytes<protocol::PsStatistics>(
        strategy::ask_every_ps(strategy_->context().client(), transport::kPsStatistics, {},
                               milliseconds(20'000), "report its statistics")
            .at(0));
  }
  void wait_for_pushes(std::uint64_t pushes) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (orders_.pushes < pushes) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << orders_.pushes << " of " << pushes;
      std::this_thread::sleep_for(milliseconds(1));  // between two polls
    }
  }
  void wait_for_rings(std::uint64_t rings) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (statistics().rings != rings) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << statistics().rings << " of " << rings;
      std::this_thread::sleep_for(milliseconds(1));  // between two polls
    }
  }
  float first_row() { return lookup<float>(orders_.variable, {0}).at(0); }

  /// Returns the bytes of the heap. Rings use the first slab beyond `before` bytes, then further slabs.
  static std::uint64_t formula(std::uint64_t before, std::uint64_t rings) {
    const std::uint64_t in_first = (kPsMemorySlab - before) / kPsMemoryRing;
    const std::uint64_t in_others = rings > in_first ? rings - in_first : 0;
    const std::uint64_t others =
        (in_others + kPsMemorySlab / kPsMemoryRing - 1) / (kPsMemorySlab / kPsMemoryRing);
    return (1 + others) * kPsMemorySlab;
  }
  static constexpr std::uint64_t kShardAndVersion = 64 * kKiB + 4 * kKiB;

  Orders orders_;
};

TEST_P(PsMemoryTest, MemoryOf64WorkersMatchesTheFormula) {
  create("adam", DType::float32, {1024, 16}, optimizers::Adam{});  // 64 KiB, and twice that of slots
  for (int i = 0; i < 63; ++i) create("small" + std::to_string(i), DType::float32, {16});    // a page each
  const std::uint64_t before = kShardAndVersion + 3 * 64 * kKiB + 63 * 4 * kKiB + 4 * kKiB;  // 65 versions
  EXPECT_EQ(statistics().heap_bytes, kPsMemorySlab) << "no ring is allocated before a worker pushes";
  EXPECT_EQ(statistics().rings, 0U);
  for (const std::uint64_t workers : {std::uint64_t{1}, kWorkers / 2, kWorkers}) {
    orders_.may_push = workers;
    wait_for_pushes(workers);
    EXPECT_EQ(statistics().rings, workers);
    EXPECT_EQ(statistics().heap_bytes, formula(before, workers)) << workers;
  }
  orders_.rounds = 20;
  wait_for_pushes(20 * kWorkers);
  EXPECT_EQ(statistics().heap_bytes, formula(before, kWorkers)) << "pushes take no memory";
  EXPECT_EQ(first_row(), 20 * kWorkers);
}

TEST_P(PsMemoryTest, ReusesTheMemoryOfDeadWorkers) {
  if (GetParam().network == Network::ucx && transport::ucx_version().starts_with("1.13"))
    GTEST_SKIP() << "UCX 1.13 may abort the process if a rank dies while another one connects to it";
  orders_.may_push = kWorkers / 2;
  wait_for_pushes(kWorkers / 2);
  const std::uint64_t half = statistics().heap_bytes;
  EXPECT_EQ(half, formula(kShardAndVersion, kWorkers / 2));
  orders_.must_die = kWorkers / 2;
  wait_for_rings(0);
  orders_.may_push = kWorkers;
  wait_for_pushes(kWorkers);
  EXPECT_EQ(statistics().rings, kWorkers / 2);
  EXPECT_EQ(statistics().heap_bytes, half);
  EXPECT_EQ(first_row(), kWorkers);
}

INSTANTIATE_TEST_SUITE_P(Networks, PsMemoryTest,
                         testing::Values(PathParam{Network::loop, "auto"}, PathParam{Network::ucx, "auto"}),
                         path_name);

}  // namespace
}  // namespace capstan::client
