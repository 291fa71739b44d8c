// gather.cpp -- two non-blocking collectives: the lengths first, then the bytes.
#include "mpi/gather.hpp"

#include <numeric>

#include "mpi/handle.hpp"

namespace capstan::mpi {

struct Gather::Call {
  Communicator communicator;
  bool to_all;
  bool receives;  // whether this rank receives the parts
  Bytes own;
  int length;
  std::vector<int> lengths{};
  std::vector<int> offsets{};
  Bytes all{};
  MPI_Request request = MPI_REQUEST_NULL;
  bool sent = false;
  bool done = false;
};

Gather::Gather(const Communicator& communicator, std::span<const std::byte> own, bool to_all)
    : call_(new Call{communicator, to_all, to_all || communicator.rank() == 0, Bytes(own.begin(), own.end()),
                     static_cast<int>(own.size())}) {
  Call& call = *call_;
  call.lengths.resize(static_cast<std::size_t>(communicator.size()));
  check(MPI_Iallgather(&call.length, 1, MPI_INT, call.lengths.data(), 1, MPI_INT,
                       communicator.handle().communicator, &call.request),
        "MPI_Iallgather");
}

Gather::~Gather() {
  if (!call_->done) (void)call_.release();
}

bool Gather::done() {
  while (!call_->done) {
    int done = 0;
    check(MPI_Test(&call_->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) return false;
    call_->done = call_->sent;
    if (!call_->sent) send();
  }
  return true;
}

void Gather::send() {
  Call& call = *call_;
  call.sent = true;
  call.offsets.resize(call.lengths.size());
  std::exclusive_scan(call.lengths.begin(), call.lengths.end(), call.offsets.begin(), 0);
  if (call.receives) call.all.resize(static_cast<std::size_t>(call.offsets.back() + call.lengths.back()));
  MPI_Comm communicator = call.communicator.handle().communicator;
  if (call.to_all) {
    check(MPI_Iallgatherv(call.own.data(), call.length, MPI_BYTE, call.all.data(), call.lengths.data(),
                          call.offsets.data(), MPI_BYTE, communicator, &call.request),
          "MPI_Iallgatherv");
  } else {
    check(MPI_Igatherv(call.own.data(), call.length, MPI_BYTE, call.all.data(), call.lengths.data(),
                       call.offsets.data(), MPI_BYTE, 0, communicator, &call.request),
          "MPI_Igatherv");
  }
}

std::vector<Bytes> Gather::parts() const {
  std::vector<Bytes> parts;
  for (std::size_t rank = 0; call_->receives && rank < call_->lengths.size(); ++rank) {
    const auto begin = call_->all.begin() + call_->offsets[rank];
    parts.emplace_back(begin, begin + call_->lengths[rank]);
  }
  return parts;
}

}  // namespace capstan::mpi
