// communicator.cpp -- MPI calls that never block on another rank, which may be missing.
#include "mpi/communicator.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "capstan/error.hpp"
#include "capstan/mpi.hpp"
#include "mpi/handle.hpp"

namespace capstan::mpi {

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw call_failed(call, std::string_view(text.data(), static_cast<std::size_t>(length)));
}

void start() {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

void end() noexcept { (void)MPI_Finalize(); }  // ignores errors: MPI is not used afterwards

bool was_started() {
  int initialized = 0;
  check(MPI_Initialized(&initialized), "MPI_Initialized");
  return initialized != 0;
}

std::shared_ptr<const Communicator> share(MPI_Comm communicator) {
  return std::make_shared<const Communicator>(
      std::make_shared<const Communicator::Handle>(Communicator::Handle{communicator}));
}

Communicator Communicator::world() { return *share(MPI_COMM_WORLD); }

int Communicator::rank() const {
  int rank = 0;
  check(MPI_Comm_rank(handle_->communicator, &rank), "MPI_Comm_rank");
  return rank;
}

int Communicator::size() const {
  int size = 0;
  check(MPI_Comm_size(handle_->communicator, &size), "MPI_Comm_size");
  return size;
}

std::optional<Message> Communicator::take(int tag, std::optional<int> from) const {
  int found = 0;
  MPI_Status status;
  check(MPI_Iprobe(from.value_or(MPI_ANY_SOURCE), tag, handle_->communicator, &found, &status), "MPI_Iprobe");
  if (found == 0) return std::nullopt;
  int size = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  Message message{status.MPI_SOURCE, Bytes(static_cast<std::size_t>(size))};
  check(MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.from, tag, handle_->communicator,
                 MPI_STATUS_IGNORE),
        "MPI_Recv");
  return message;
}

void Communicator::broadcast(std::span<std::byte> bytes) const {
  constexpr std::size_t kBlock = 1 << 30;  // MPI counts are int
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    const auto block = static_cast<int>(std::min(kBlock, bytes.size() - at));
    check(MPI_Bcast(bytes.data() + at, block, MPI_BYTE, 0, handle_->communicator), "MPI_Bcast");
  }
}

struct Duplicate::Call {
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
};

Duplicate::Duplicate(const Communicator& original) : call_(std::make_unique<Call>()) {
  check(MPI_Comm_idup(original.handle().communicator, &call_->communicator, &call_->request),
        "MPI_Comm_idup");
}

Duplicate::~Duplicate() {
  if (call_->request != MPI_REQUEST_NULL) (void)call_.release();
}

bool Duplicate::done() {
  int done = 0;
  check(MPI_Test(&call_->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

Communicator Duplicate::communicator() const { return *share(call_->communicator); }

void Duplicate::free() noexcept { (void)MPI_Comm_free(&call_->communicator); }

}  // namespace capstan::mpi
