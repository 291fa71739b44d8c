// fabric.cpp -- context, worker, registered memory, receiving, sleeping.
#include "transport/ucx/fabric.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/first_touch.hpp"
#include "base/log.hpp"
#include "transport/ucx/context.hpp"
#include "transport/ucx/offer.hpp"
#include "transport/ucx/peer.hpp"

namespace capstan::transport {
namespace {

/// Space in /dev/shm that a worker of UCX 1.13 needs, in bytes, with the defaults that context.cpp sets.
constexpr std::uint64_t kSharedBytesOfWorker = 561'152;

/// Adds the likely cause: UCX reports only that memory or a resource is missing.
Error worker_failed(ucs_status_t status) {
  const Error failed = call_failed("ucp_worker_create", ucs_status_string(status));
  struct statvfs space {};
  const bool may_be_space = status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE;
  if (!may_be_space || statvfs("/dev/shm", &space) != 0) return failed;
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free >= kSharedBytesOfWorker) return failed;
  return Error(
      Code::resource_exhausted,
      fmt::format(
          "ucp_worker_create: {}: /dev/shm has {} of {} bytes free, expected {} for each UCX worker (a "
          "ps has one, a coordinator or worker two); remove files from it, or enlarge it (mount -o "
          "remount,size=50% /dev/shm; for a container, --shm-size=8g)",
          ucs_status_string(status), free, std::uint64_t{space.f_blocks} * space.f_frsize,
          kSharedBytesOfWorker));
}

Handle<WorkerTraits> open_worker(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // One thread creates a fabric and another one uses it, so UCS_THREAD_MODE_SINGLE would be wrong.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  Handle<WorkerTraits> worker;
  const ShortQueues queues;
  const ucs_status_t status = ucp_worker_create(context, &params, worker.out());
  if (status != UCS_OK) throw worker_failed(status);
  return worker;
}

struct Unmap {
  ucp_context_h context = nullptr;
  void operator()(ucp_mem_h memory) const noexcept {
    const ucs_status_t status = ucp_mem_unmap(context, memory);
    if (status != UCS_OK) log::warn("ucp_mem_unmap: {}", ucs_status_string(status));
  }
};

class UcxRegion final : public Region {
 public:
  UcxRegion(std::shared_ptr<Handle<ContextTraits>> context, std::size_t bytes)
      : context_(std::move(context)) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = bytes;
    params.flags = UCP_MEM_MAP_ALLOCATE;  // peers can map only memory that UCX allocated
    const ucs_status_t status = map(params);
    if (status != UCS_OK) {
      throw Error(Code::resource_exhausted, "ucp_mem_map of " + std::to_string(bytes) +
                                                " bytes: " + ucs_status_string(status) +
                                                "; free memory, or raise kernel.shmmax and kernel.shmall");
    }
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    check(ucp_mem_query(memory_.get(), &attributes), "ucp_mem_query");
    address_ = static_cast<std::byte*>(attributes.address);
    bytes_ = bytes;
    touch_first({address_, bytes_});
  }
  /// Registers memory that it does not own.
  UcxRegion(std::shared_ptr<Handle<ContextTraits>> context, std::span<std::byte> memory,
            FileLocation location)
      : context_(std::move(context)),
        address_(memory.data()),
        bytes_(memory.size()),
        location_(std::move(location)) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = address_;
    params.length = bytes_;
    check(map(params), "ucp_mem_map");
  }

  std::span<std::byte> memory() noexcept override { return {address_, bytes_}; }

  RegionKey key() const override {
    void* packed = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(context_->get(), memory_.get(), &packed, &length), "ucp_rkey_pack");
    const std::unique_ptr<void, decltype(&ucp_rkey_buffer_release)> owned(packed, &ucp_rkey_buffer_release);
    const auto* first = static_cast<const std::byte*>(packed);
    return {reinterpret_cast<std::uint64_t>(address_), bytes_, {first, first + length}, location_};
  }

 private:
  ucs_status_t map(const ucp_mem_map_params_t& params) {
    ucp_mem_h memory = nullptr;
    const ucs_status_t status = ucp_mem_map(context_->get(), &params, &memory);
    if (status == UCS_OK) memory_ = {memory, Unmap{context_->get()}};
    return status;
  }

  std::shared_ptr<Handle<ContextTraits>> context_;  // outlives the memory
  std::unique_ptr<std::remove_pointer_t<ucp_mem_h>, Unmap> memory_;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  FileLocation location_;
};

/// A large message whose data is still arriving.
struct Rendezvous {
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
  std::function<void(const Rendezvous&)> deliver;
};

/// REQUIRES: `header` was admitted.
Message to_message(Bytes header, Bytes payload) {
  WireHeader wire{};
  std::memcpy(&wire, header.data(), sizeof wire);
  return {wire.type, wire.from, header.subspan(sizeof wire), payload};
}

}  // namespace

UcxFabric::UcxFabric()
    : context_(std::make_shared<Handle<ContextTraits>>(open_context())),
      reaches_gpus_(knows_gpu_memory(context_->get())),
      worker_(open_worker(context_->get())) {
  check(ucp_worker_get_efd(worker_.get(), &event_fd_), "ucp_worker_get_efd");
  wake_fd_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_fd_) throw call_failed("eventfd", std::strerror(errno));

  ucp_am_handler_param_t handler{};
  handler.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kActiveMessageId;
  handler.cb = &UcxFabric::receive;
  handler.arg = this;
  check(ucp_worker_set_am_recv_handler(worker_.get(), &handler), "ucp_worker_set_am_recv_handler");
}

UcxFabric::~UcxFabric() {
  std::vector<ucs_status_ptr_t> closes;
  for (const auto& peer : peers_) {
    if (const ucs_status_ptr_t request = peer->begin_close()) closes.push_back(request);
  }
  complete_closes(closes);
  peers_.clear();
  if (!left_to_exit_) return;
  // UCX 1.13 aborts in ucp_worker_destroy while its reply to a connecting rank is unsent.
  (void)worker_.release();
  (void)new std::shared_ptr(context_);
}

std::vector<std::byte> UcxFabric::address() const {
  ucp_address_t* raw = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_.get(), &raw, &length), "ucp_worker_get_address");
  const auto release = [this](ucp_address_t* a) { ucp_worker_release_address(worker_.get(), a); };
  const std::unique_ptr<ucp_address_t, decltype(release)> owned(raw, release);
  const auto* first = reinterpret_cast<const std::byte*>(raw);
  return {first, first + length};
}

Peer& UcxFabric::connect(int rank, const std::string& name, Bytes address) {
  return *peers_.emplace_back(std::make_unique<UcxPeer>(*this, rank, name, address));
}

std::unique_ptr<Region> UcxFabric::allocate(std::size_t bytes) {
  return std::make_unique<UcxRegion>(context_, bytes);
}

std::unique_ptr<Region> UcxFabric::adopt(std::span<std::byte> memory, const FileLocation& location) {
  // A user who excludes shared memory from UCX_TLS does not want mapped windows either.
  static const bool shared = !ucx_offer().in_memory.empty();
  return std::make_unique<UcxRegion>(context_, memory, shared ? location : FileLocation{});
}

bool UcxFabric::admits(Bytes header) noexcept {
  WireHeader wire{};
  if (header.size() >= sizeof wire) {
    std::memcpy(&wire, header.data(), sizeof wire);
    if (wire.secret == secret_) return true;
  }
  if (rejected_++ == 0) {
    log::warn(
        "dropped a message without this job's secret, from a process outside of the job that reaches this "
        "rank's UCX ports; more such messages are not logged (docs/failures.md#foreign-processes)");
  }
  return false;
}

ucs_status_t UcxFabric::receive(void* arg, const void* header, std::size_t header_length, void* data,
                                std::size_t length, const ucp_am_recv_param_t* param) {
  auto* self = static_cast<UcxFabric*>(arg);
  const Bytes header_bytes{static_cast<const std::byte*>(header), header_length};
  if (!self->admits(header_bytes))
    return UCS_OK;  // UCX frees the data, and completes the sender's rendezvous
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    self->deliver(to_message(header_bytes, {static_cast<const std::byte*>(data), length}));
    return UCS_OK;
  }
  auto pending = std::make_unique<Rendezvous>();
  pending->header.assign(header_bytes.begin(), header_bytes.end());
  pending->payload.resize(length);
  pending->deliver = [self](const Rendezvous& done) { self->deliver(to_message(done.header, done.payload)); };

  ucp_request_param_t request{};
  request.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  request.user_data = pending.get();
  request.cb.recv_am = [](void* finished, ucs_status_t status, std::size_t, void* user_data) {
    const std::unique_ptr<Rendezvous> done(static_cast<Rendezvous*>(user_data));
    if (status == UCS_OK) done->deliver(*done);
    ucp_request_free(finished);
  };
  const ucs_status_ptr_t started =
      ucp_am_recv_data_nbx(self->worker_.get(), data, pending->payload.data(), length, &request);
  if (UCS_PTR_IS_ERR(started)) {
    log::error("ucp_am_recv_data_nbx: {}", ucs_status_string(UCS_PTR_STATUS(started)));
    return UCS_OK;
  }
  (void)pending.release();  // the callback owns it now
  return UCS_OK;
}

unsigned UcxFabric::progress() {
  const unsigned kept = deliver_unhandled();
  const unsigned events = kept + ucp_worker_progress(worker_.get());
  while (!newly_failed_.empty()) {
    UcxPeer* peer = newly_failed_.back();
    newly_failed_.pop_back();
    report_failure(*peer);
  }
  return events;
}

bool UcxFabric::arm() {
  const ucs_status_t armed = ucp_worker_arm(worker_.get());
  if (armed == UCS_ERR_BUSY) return false;
  check(armed, "ucp_worker_arm");
  return true;
}

void UcxFabric::sleep(std::chrono::milliseconds timeout) {
  pollfd fds[3] = {{event_fd_, POLLIN, 0}, {wake_fd_.get(), POLLIN, 0}, {doorbell_.fd(), POLLIN, 0}};
  const int ready = poll(fds, 3, static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) throw call_failed("poll", std::strerror(errno));
  if (ready <= 0) return;
  if ((fds[1].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    (void)!read(wake_fd_.get(), &count, sizeof count);  // only empties the counter
  }
  if ((fds[2].revents & POLLIN) != 0) doorbell_.clear();
}

void UcxFabric::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!write(wake_fd_.get(), &one, sizeof one);  // a full counter means that a wake-up is pending
}

std::vector<std::string> UcxFabric::transports() const { return transports_of(context_->get()); }

void UcxFabric::complete_closes(std::span<const ucs_status_ptr_t> requests) noexcept {
  // A dead peer never answers. Live ones answer one after another, so each answer extends the wait.
  constexpr std::chrono::seconds kBetweenAnswers{1};
  const auto open = [&] {
    return std::ranges::count_if(requests, [](ucs_status_ptr_t request) {
      return ucp_request_check_status(request) == UCS_INPROGRESS;
    });
  };
  Deadline deadline = deadline_in(kBetweenAnswers);
  for (auto left = open(); left > 0 && std::chrono::steady_clock::now() < deadline;) {
    ucp_worker_progress(worker_.get());
    const auto now_open = open();
    if (now_open < left) deadline = deadline_in(kBetweenAnswers);
    left = now_open;
  }
  for (const ucs_status_ptr_t request : requests) ucp_request_free(request);
}

void UcxFabric::complete(ucs_status_ptr_t request, UcxPeer& peer, Deadline deadline, const char* what) {
  if (request == nullptr) return;
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    const auto finished = [&] { return (status = ucp_request_check_status(request)) != UCS_INPROGRESS; };
    const bool ended = progress_until(*this, deadline, [&] { return finished() || peer.failed(); });
    if (status == UCS_INPROGRESS) {
      peer.disconnect();
      // In PEER mode a forced close ends every request of the endpoint.
      if (progress_until(*this, deadline_in(std::chrono::seconds(10)), finished)) ucp_request_free(request);
      if (ended) peer.require_alive();
      throw Error(Code::deadline_exceeded, std::string("no answer from ") + peer.name() + " to " + what);
    }
    ucp_request_free(request);
  }
  if (status == UCS_OK) return;
  if (peer.failed()) peer.require_alive();
  throw Error(Code::unavailable, std::string(what) + " at " + peer.name() + ": " + ucs_status_string(status));
}

}  // namespace capstan::transport
