// rank_group_mpi.cpp -- a rank group of MPI_COMM_WORLD: nonblocking collectives, polled until the deadline.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "capstan/error.hpp"
#include "launch/doctor/rank_group.hpp"
#include "mpi/gather.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kInitTimeout{60};
/// Sleep of an idle rank between polls, since other ranks may need its core.
constexpr std::chrono::microseconds kPollInterval{200};

/// Calls `give_up` unless destroyed within kInitTimeout.
class Watchdog {
 public:
  Watchdog(std::function<void(const std::string&)> give_up, std::string what)
      : thread_([this, give_up = std::move(give_up), what = std::move(what)] {
          std::unique_lock lock(mutex_);
          if (!ended_.wait_for(lock, kInitTimeout, [this] { return over_; })) give_up(what);
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;  // last member, since the thread uses the others
};

class MpiRankGroup final : public RankGroup {
 public:
  explicit MpiRankGroup(std::function<void(const std::string&)> give_up) : give_up_(std::move(give_up)) {
    const Watchdog watch(give_up_, "MPI_Init has not returned within 60 s");
    mpi::start();
    world_ = mpi::Communicator::world();
    rank_ = world_->rank();
    size_ = world_->size();
  }
  ~MpiRankGroup() override {
    if (collective_pending_) return;  // MPI_Finalize would block
    const Watchdog watch(give_up_, "MPI_Finalize has not returned within 60 s");
    mpi::end();
  }
  MpiRankGroup(const MpiRankGroup&) = delete;
  MpiRankGroup& operator=(const MpiRankGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                           const std::function<void()>& progress, bool everywhere) override {
    const auto deadline = Clock::now() + kTimeout;
    mpi::Gather call(*world_, mine, everywhere);
    while (!call.done()) {
      if (Clock::now() > deadline) {
        collective_pending_ = true;
        throw Error(Code::deadline_exceeded, "a rank did not join a collective call within " +
                                                 std::to_string(kTimeout.count()) +
                                                 " s; waiting for: " + what);
      }
      if (progress) {
        progress();
      } else {
        std::this_thread::sleep_for(kPollInterval);
      }
    }
    return call.parts();
  }

 private:
  std::function<void(const std::string&)> give_up_;
  std::optional<mpi::Communicator> world_;
  int rank_ = 0;
  int size_ = 1;
  bool collective_pending_ = false;
};

}  // namespace

std::unique_ptr<RankGroup> mpi_rank_group(std::function<void(const std::string&)> give_up) {
  return std::make_unique<MpiRankGroup>(std::move(give_up));
}

}  // namespace capstan::launch::doctor
