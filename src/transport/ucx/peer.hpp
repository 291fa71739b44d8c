// peer.hpp -- a UCX endpoint, and windows onto the peer's memory.
#pragma once

#include <memory>
#include <string>

#include "transport/ucx/fabric.hpp"

namespace capstan::transport {

class UcxPeer final : public Peer {
 public:
  UcxPeer(UcxFabric& fabric, int rank, std::string name, Bytes address);
  /// REQUIRES: the endpoint is closed. The fabric closes the endpoints of all its peers together before it
  /// destroys a peer.
  ~UcxPeer() override = default;
  UcxPeer(const UcxPeer&) = delete;
  UcxPeer& operator=(const UcxPeer&) = delete;

  void send(std::uint16_t type, Bytes header, Bytes payload) override;
  void send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t& in_flight) override;
  std::unique_ptr<Window> open_window(const RegionKey& key, WindowPath path) override;
  std::string transports() const override;
  bool has_hardware_rma() const override;

  UcxFabric& fabric() noexcept { return fabric_; }
  ucp_ep_h endpoint() const noexcept { return endpoint_; }

  void disconnect() noexcept override;
  void revive(Bytes address, const std::string& name) override;

  /// Starts to close the endpoint. Messages already sent are delivered first, unless the peer has failed.
  /// Returns the request to wait for, or nullptr if the endpoint is closed.
  ucs_status_ptr_t begin_close() noexcept { return begin_close(failed_ ? UCP_EP_CLOSE_FLAG_FORCE : 0); }

 private:
  void open(Bytes address);
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  ucs_status_ptr_t begin_close(unsigned flags) noexcept;
  void close_by_force() noexcept;
  void note_failed_send(ucs_status_t status);

  UcxFabric& fabric_;
  ucp_ep_h endpoint_ = nullptr;  // closed with a deadline, so not a Handle
};

/// Precedes the caller's header in every active message.
struct WireHeader {
  std::uint16_t type;
  std::uint16_t reserved;
  std::int32_t from;
  JobSecret secret;
};
static_assert(sizeof(WireHeader) % alignof(std::uint64_t) == 0);

inline constexpr unsigned kActiveMessageId = 7;  // one UCX id; the type is in the WireHeader

}  // namespace capstan::transport
