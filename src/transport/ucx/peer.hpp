// peer.hpp -- one UCX endpoint, and windows onto its memory.
#pragma once

#include <memory>
#include <string>

#include "transport/ucx/fabric.hpp"

namespace capstan::transport {

class UcxPeer final : public Peer {
 public:
  UcxPeer(UcxFabric& fabric, int rank, std::string name, Bytes address);
  ~UcxPeer() override;
  UcxPeer(const UcxPeer&) = delete;
  UcxPeer& operator=(const UcxPeer&) = delete;

  void send(std::uint16_t type, Bytes header, Bytes payload) override;
  void send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t& in_flight) override;
  std::unique_ptr<Window> open_window(const RegionKey& key, WindowPath path) override;
  std::string transports() const override;
  bool has_hardware_rma() const override;

  UcxFabric& fabric() noexcept { return fabric_; }
  ucp_ep_h endpoint() const noexcept { return endpoint_; }

  void give_up() noexcept override;
  void revive(Bytes address, const std::string& name) override;

 private:
  void open(Bytes address);
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  void close(unsigned flags) noexcept;
  void note_failed_send(ucs_status_t status);

  UcxFabric& fabric_;
  ucp_ep_h endpoint_ = nullptr;  // closed by name, with a deadline, so not a Handle
};

/// What precedes the caller's header in every active message.
struct WireHeader {
  std::uint16_t type;
  std::uint16_t reserved;
  std::int32_t from;
  JobSecret secret;
};
static_assert(sizeof(WireHeader) % alignof(std::uint64_t) == 0);

inline constexpr unsigned kActiveMessageId = 7;  // one UCX id; the type is in the WireHeader

}  // namespace capstan::transport
