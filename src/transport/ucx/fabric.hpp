// fabric.hpp -- a fabric between processes, on UCX: InfiniBand, RoCE, TCP, and mapped memory on one host.
//
// Endpoints are opened with UCP_ERR_HANDLING_MODE_PEER, so that UCX reports a dead rank. In that mode UCX
// does not use its shared-memory transports; data within a host passes through mapped windows (ucp_rkey_ptr),
// which are faster. UCX_* variables apply; CAPSTAN_UCX_* ones apply to Capstan only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "transport/doorbell.hpp"
#include "transport/fabric.hpp"
#include "transport/ucx/handles.hpp"

namespace capstan::transport {

class UcxPeer;

class UcxFabric final : public Fabric {
 public:
  /// Opens UCX. Throws Error if it finds no usable device.
  UcxFabric();
  ~UcxFabric() override;

  std::vector<std::byte> address() const override;
  Peer& connect(int rank, const std::string& name, Bytes address) override;
  std::unique_ptr<Region> allocate(std::size_t bytes) override;
  std::unique_ptr<Region> adopt(std::span<std::byte> memory, const FileLocation& location) override;
  unsigned progress() override;
  bool arm() override;
  void sleep(std::chrono::milliseconds timeout) override;
  void wake() noexcept override;
  std::string doorbell() const override { return doorbell_.name(); }
  bool signal(const std::string& doorbell) noexcept override { return doorbell_.signal(doorbell); }

  bool reaches_gpus() const override { return reaches_gpus_; }

  void set_secret(const JobSecret& secret) noexcept override { secret_ = secret; }
  const JobSecret& secret() const noexcept { return secret_; }
  /// Number of messages that were dropped because they did not carry the secret.
  std::uint64_t rejected() const noexcept { return rejected_; }

  void leave_teardown_to_exit() noexcept override { left_to_exit_ = true; }

  ucp_worker_h worker() const noexcept { return worker_.get(); }
  /// Transports of the context: "self/memory0", "tcp/lo".
  std::vector<std::string> transports() const;

  /// Progresses until `request` is complete. If the deadline passes first, disconnects the peer, which ends
  /// the request, and throws Error(deadline_exceeded), which names the peer.
  void complete(ucs_status_ptr_t request, UcxPeer& peer, Deadline deadline, const char* what);

  /// Progresses until all requests are complete, or none has completed for a second. Frees them.
  void complete_closes(std::span<const ucs_status_ptr_t> requests) noexcept;

  /// Called by the endpoint's error handler; the end of progress() reports the failure.
  void note_failure(UcxPeer& peer) { newly_failed_.push_back(&peer); }
  /// Cancels the report of a failure of `peer`, which has been revived.
  void forget_failure(const UcxPeer& peer) { std::erase(newly_failed_, &peer); }

 private:
  static ucs_status_t receive(void* self, const void* header, std::size_t header_length, void* data,
                              std::size_t length, const ucp_am_recv_param_t* param);
  /// Returns true for the header of a message of this job; counts and logs any other.
  bool admits(Bytes header) noexcept;

  // Destroyed bottom-up: peers (endpoints) first, then the worker, then the context.
  std::shared_ptr<Handle<ContextTraits>> context_;  // shared with regions, which may outlive the fabric
  bool reaches_gpus_;
  Handle<WorkerTraits> worker_;
  int event_fd_ = -1;  // owned by UCX, closed with the worker
  FileDescriptor wake_fd_;
  Doorbell doorbell_;
  std::vector<std::unique_ptr<UcxPeer>> peers_;
  std::vector<UcxPeer*> newly_failed_;
  bool left_to_exit_ = false;
  JobSecret secret_;
  std::uint64_t rejected_ = 0;
};

}  // namespace capstan::transport
