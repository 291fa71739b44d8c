// gathering_mpi.cpp -- all ranks of MPI_COMM_WORLD: non-blocking collective calls, looked at until the
// deadline.
#include <mpi.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>

#include "capstan/error.hpp"
#include "launch/doctor/gathering.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStartAndEnd{60};
/// Between two looks of a rank that has nothing to serve; others compute meanwhile, on the same cores maybe.
constexpr std::chrono::microseconds kBetweenLooks{200};

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw call_failed(call, std::string_view(text.data(), static_cast<std::size_t>(length)));
}

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

/// What MPI reads and writes until a call has ended; one that never does keeps it.
struct Call {
  Blob mine;
  int length = 0;
  std::vector<int> lengths;
  std::vector<int> offsets;
  Blob all;
};

class MpiGathering final : public Gathering {
 public:
  explicit MpiGathering(std::function<void(const std::string&)> give_up) : give_up_(std::move(give_up)) {
    const Watch watch(give_up_, "MPI_Init has not returned within 60 s");
    check(MPI_Init(nullptr, nullptr), "MPI_Init");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  }
  ~MpiGathering() override {
    if (stuck_) return;  // MPI_Finalize would wait for it
    const Watch watch(give_up_, "MPI_Finalize has not returned within 60 s");
    (void)MPI_Finalize();  // nothing depends on it any more
  }
  MpiGathering(const MpiGathering&) = delete;
  MpiGathering& operator=(const MpiGathering&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  std::vector<Blob> gather(std::span<const std::byte> mine, const std::string& what,
                           const std::function<void()>& meanwhile, bool everywhere) override {
    const auto deadline = Clock::now() + kPatience;
    auto call = std::make_unique<Call>();
    call->mine.assign(mine.begin(), mine.end());
    call->length = static_cast<int>(mine.size());
    call->lengths.resize(static_cast<std::size_t>(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Iallgather(&call->length, 1, MPI_INT, call->lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, &request),
        "MPI_Iallgather");
    wait(request, call, what, meanwhile, deadline);
    call->offsets.resize(call->lengths.size());
    std::exclusive_scan(call->lengths.begin(), call->lengths.end(), call->offsets.begin(), 0);
    const bool mine_too = everywhere || rank_ == 0;
    if (mine_too) call->all.resize(static_cast<std::size_t>(call->offsets.back() + call->lengths.back()));
    if (everywhere) {
      check(MPI_Iallgatherv(call->mine.data(), call->length, MPI_BYTE, call->all.data(), call->lengths.data(),
                            call->offsets.data(), MPI_BYTE, MPI_COMM_WORLD, &request),
            "MPI_Iallgatherv");
    } else {
      check(MPI_Igatherv(call->mine.data(), call->length, MPI_BYTE, call->all.data(), call->lengths.data(),
                         call->offsets.data(), MPI_BYTE, 0, MPI_COMM_WORLD, &request),
            "MPI_Igatherv");
    }
    wait(request, call, what, meanwhile, deadline);
    std::vector<Blob> blobs;
    for (std::size_t rank = 0; mine_too && rank < call->lengths.size(); ++rank) {
      const auto begin = call->all.begin() + call->offsets[rank];
      blobs.emplace_back(begin, begin + call->lengths[rank]);
    }
    return blobs;
  }

 private:
  void wait(MPI_Request& request, std::unique_ptr<Call>& call, const std::string& what,
            const std::function<void()>& meanwhile, Clock::time_point deadline) {
    for (;;) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
      if (Clock::now() > deadline) {
        stuck_ = true;
        (void)call.release();
        throw Error(
            Code::deadline_exceeded,
            "a rank has not come within " + std::to_string(kPatience.count()) + " s; waited for: " + what);
      }
      if (meanwhile) {
        meanwhile();
      } else {
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
  }

  std::function<void(const std::string&)> give_up_;
  int rank_ = 0;
  int size_ = 1;
  bool stuck_ = false;
};

}  // namespace

std::unique_ptr<Gathering> gather_by_mpi(std::function<void(const std::string&)> give_up) {
  return std::make_unique<MpiGathering>(std::move(give_up));
}

}  // namespace capstan::launch::doctor
