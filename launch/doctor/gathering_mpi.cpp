// gathering_mpi.cpp -- all ranks of MPI_COMM_WORLD: non-blocking collective calls, looked at until the
// deadline.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "capstan/error.hpp"
#include "launch/doctor/gathering.hpp"
#include "mpi/gather.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStartAndEnd{60};
/// Between two looks of a rank that has nothing to serve; others compute meanwhile, on the same cores maybe.
constexpr std::chrono::microseconds kBetweenLooks{200};

/// Calls `give_up` unless it is destroyed in time.
class Watch {
 public:
  Watch(std::function<void(const std::string&)> give_up, std::string what)
      : thread_([this, give_up = std::move(give_up), what = std::move(what)] {
          std::unique_lock lock(mutex_);
          if (!ended_.wait_for(lock, kStartAndEnd, [this] { return over_; })) give_up(what);
        }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

class MpiGathering final : public Gathering {
 public:
  explicit MpiGathering(std::function<void(const std::string&)> give_up) : give_up_(std::move(give_up)) {
    const Watch watch(give_up_, "MPI_Init has not returned within 60 s");
    mpi::start();
    world_ = mpi::Communicator::world();
    rank_ = world_->rank();
    size_ = world_->size();
  }
  ~MpiGathering() override {
    if (stuck_) return;  // MPI_Finalize would wait for it
    const Watch watch(give_up_, "MPI_Finalize has not returned within 60 s");
    mpi::end();
  }
  MpiGathering(const MpiGathering&) = delete;
  MpiGathering& operator=(const MpiGathering&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                           const std::function<void()>& meanwhile, bool everywhere) override {
    const auto deadline = Clock::now() + kTimeout;
    mpi::Gather call(*world_, mine, everywhere);
    while (!call.done()) {
      if (Clock::now() > deadline) {
        stuck_ = true;
        throw Error(
            Code::deadline_exceeded,
            "a rank has not come within " + std::to_string(kTimeout.count()) + " s; waited for: " + what);
      }
      if (meanwhile) {
        meanwhile();
      } else {
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
    return call.parts();
  }

 private:
  std::function<void(const std::string&)> give_up_;
  std::optional<mpi::Communicator> world_;
  int rank_ = 0;
  int size_ = 1;
  bool stuck_ = false;
};

}  // namespace

std::unique_ptr<Gathering> gather_by_mpi(std::function<void(const std::string&)> give_up) {
  return std::make_unique<MpiGathering>(std::move(give_up));
}

}  // namespace capstan::launch::doctor
