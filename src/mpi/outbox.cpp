// outbox.cpp -- polls non-blocking sends until they are done.
#include "mpi/outbox.hpp"

#include <list>
#include <thread>

#include "mpi/handle.hpp"

namespace capstan::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeliveryTimeout{2};
/// MPI's own waits would spin, and there may be more ranks than cores.
constexpr std::chrono::milliseconds kPollInterval{1};

}  // namespace

struct Outbox::Sent {
  Communicator communicator;
  std::list<Bytes> buffers;
  std::vector<MPI_Request> requests;
};

Outbox::Outbox(const Communicator& communicator) : sent_(new Sent{communicator, {}, {}}) {}

Outbox::~Outbox() {
  if (!wait(Clock::now() + kDeliveryTimeout)) (void)sent_.release();
}

void Outbox::send(int to, int tag, Bytes bytes) {
  const Bytes& buffer = sent_->buffers.emplace_back(std::move(bytes));
  check(MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, to, tag,
                  sent_->communicator.handle().communicator, &sent_->requests.emplace_back()),
        "MPI_Isend");
}

bool Outbox::wait(Clock::time_point deadline) {
  auto& requests = sent_->requests;
  while (true) {
    int done = 0;
    if (MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE) !=
        MPI_SUCCESS) {
      return false;
    }
    if (done != 0) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace capstan::mpi
