// peer.cpp -- opening and closing an endpoint, sending, windows.
#include "transport/ucx/peer.hpp"

#include <fmt/ranges.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.hpp"
#include "base/fence.hpp"
#include "base/log.hpp"
#include "base/topology.hpp"
#include "transport/ucx/offer.hpp"

namespace capstan::transport {
namespace {

// Deadline of a put, for which the interface has none. A working network needs much less.
constexpr std::chrono::seconds kLocalCompletion{60};

class UcxWindow final : public Window {
 public:
  UcxWindow(UcxPeer& peer, const RegionKey& key, WindowPath path) : peer_(peer), base_(key.address) {
    length_ = key.length;
    const bool registered = !key.packed.empty();
    if (registered)
      check(ucp_ep_rkey_unpack(peer.endpoint(), key.packed.data(), rkey_.out()), "ucp_ep_rkey_unpack");
    if (path == WindowPath::rma && registered) return;  // other memory can only be mapped
    void* local = nullptr;
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    if (key.file.path.empty()) {
      status = ucp_rkey_ptr(rkey_.get(), base_, &local);
    } else if ((local = map_persistent(key.file, length_)) != nullptr) {
      shared_.reset(static_cast<std::byte*>(local), [length = length_](std::byte* p) { munmap(p, length); });
      status = UCS_OK;
    }
    if (status == UCS_OK) {
      mapped_ = static_cast<std::byte*>(local);
      topology::advise_huge_pages({mapped_, static_cast<std::size_t>(length_)});
    } else if (path == WindowPath::mapped || !registered) {
      throw Error(Code::unavailable, "memory of " + peer.name() + " cannot be mapped here (" +
                                         ucs_status_string(status) +
                                         "): another host, or another IPC namespace; use --window auto");
    }
  }

  UcxWindow(const UcxWindow&) = delete;
  UcxWindow& operator=(const UcxWindow&) = delete;

  void put(std::uint64_t offset, Bytes data) override {
    require_inside(offset, data.size());
    if (mapped_ != nullptr) {
      store(offset, data);
      return;
    }
    peer_.require_alive();
    const ucp_request_param_t param{};
    finish(ucp_put_nbx(peer_.endpoint(), data.data(), data.size(), base_ + offset, rkey_.get(), &param),
           deadline_in(kLocalCompletion), "a put");
  }

  void get(std::uint64_t offset, std::span<std::byte> out, Deadline deadline) override {
    require_inside(offset, out.size());
    if (mapped_ != nullptr) {
      load(offset, out);
      return;
    }
    peer_.require_alive();
    const ucp_request_param_t param{};
    finish(ucp_get_nbx(peer_.endpoint(), out.data(), out.size(), base_ + offset, rkey_.get(), &param),
           deadline, "a get");
  }

  void fence() override {
    if (mapped_ != nullptr) {
      thread_fence(std::memory_order_release);
    } else {
      check(ucp_worker_fence(peer_.fabric().worker()), "ucp_worker_fence");
    }
  }

  void flush(Deadline deadline) override {
    if (mapped_ != nullptr) return;
    peer_.require_alive();
    const ucp_request_param_t param{};
    // Per endpoint: a flush of the worker succeeds even if an endpoint has failed.
    finish(ucp_ep_flush_nbx(peer_.endpoint(), &param), deadline, "a flush");
  }

 private:
  void store(std::uint64_t offset, Bytes data) {
    std::byte* to = mapped_ + offset;
    if (is_word(offset, data.size())) {
      std::uint64_t value = 0;
      std::memcpy(&value, data.data(), sizeof value);
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
          .store(value, std::memory_order_release);
    } else if (!data.empty()) {
      std::memcpy(to, data.data(), data.size());
    }
  }
  void load(std::uint64_t offset, std::span<std::byte> out) {
    std::byte* from = mapped_ + offset;
    if (is_word(offset, out.size())) {
      const std::uint64_t value = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(from))
                                      .load(std::memory_order_acquire);
      std::memcpy(out.data(), &value, sizeof value);
    } else if (!out.empty()) {
      std::memcpy(out.data(), from, out.size());
    }
  }
  void finish(ucs_status_ptr_t request, Deadline deadline, const char* what) {
    peer_.fabric().complete(request, peer_, deadline, what);
  }

  UcxPeer& peer_;
  std::uint64_t base_;
  Handle<RemoteKeyTraits> rkey_;
};

}  // namespace

UcxPeer::UcxPeer(UcxFabric& fabric, int rank, std::string name, Bytes address)
    : Peer(rank, std::move(name)), fabric_(fabric) {
  open(address);
}

void UcxPeer::revive(Bytes address, const std::string& name) {
  close_by_force();
  fabric_.forget_failure(*this);
  failed_ = false;
  ++revivals_;
  name_ = name;
  open(address);
}

void UcxPeer::open(Bytes address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {&UcxPeer::on_error, this};
  const ucs_status_t status = ucp_ep_create(fabric_.worker(), &params, &endpoint_);
  if (status != UCS_OK) {
    // The peer may have died since it published its address: not an error of this rank.
    log::warn(
        "cannot connect to {}: ucp_ep_create: {}; UCX has the transports {} here; see standard error or "
        "UCX_LOG_FILE for details",
        name_, ucs_status_string(status), fmt::join(fabric_.transports(), ", "));
    endpoint_ = nullptr;
    failed_ = true;
    fabric_.note_failure(*this);
  }
}

void UcxPeer::on_error(void* arg, ucp_ep_h endpoint, ucs_status_t status) {
  auto* self = static_cast<UcxPeer*>(arg);
  // Ignores an error of a previous endpoint. endpoint_ is null while an endpoint is being opened.
  if (self->endpoint_ != nullptr && endpoint != self->endpoint_) return;
  if (std::exchange(self->failed_, true)) return;
  log::debug("endpoint to {} failed: {}", self->name_, ucs_status_string(status));
  self->fabric_.note_failure(*self);
}

void UcxPeer::disconnect() noexcept {
  if (!std::exchange(failed_, true)) fabric_.note_failure(*this);
  close_by_force();
}

ucs_status_ptr_t UcxPeer::begin_close(unsigned flags) noexcept {
  if (endpoint_ == nullptr) return nullptr;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &param);
  return UCS_PTR_IS_PTR(request) ? request : nullptr;
}

void UcxPeer::close_by_force() noexcept {
  const ucs_status_ptr_t request = begin_close(UCP_EP_CLOSE_FLAG_FORCE);
  if (request != nullptr) fabric_.complete_closes({&request, 1});
}

void UcxPeer::send(std::uint16_t type, Bytes header, Bytes payload) {
  if (failed_) return;
  // One buffer, which lives until UCX has sent it: WireHeader, header, payload.
  const WireHeader wire{type, 0, fabric_.rank(), fabric_.secret()};
  auto buffer = std::make_unique<std::vector<std::byte>>(sizeof wire + header.size() + payload.size());
  std::byte* out = buffer->data();
  std::memcpy(out, &wire, sizeof wire);
  if (!header.empty()) std::memcpy(out + sizeof wire, header.data(), header.size());
  const std::size_t header_length = sizeof wire + header.size();
  if (!payload.empty()) std::memcpy(out + header_length, payload.data(), payload.size());

  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;  // eager messages keep their order, rendezvous ones do not
  param.user_data = buffer.get();
  param.cb.send = [](void* request, ucs_status_t, void* user_data) {
    delete static_cast<std::vector<std::byte>*>(user_data);
    ucp_request_free(request);
  };
  const ucs_status_ptr_t request = ucp_am_send_nbx(endpoint_, kActiveMessageId, out, header_length,
                                                   out + header_length, payload.size(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    (void)buffer.release();  // the callback owns it now
  } else if (UCS_PTR_IS_ERR(request)) {
    note_failed_send(UCS_PTR_STATUS(request));
  }
}

void UcxPeer::note_failed_send(ucs_status_t status) {
  log::debug("ucp_am_send_nbx to {}: {}", name_, ucs_status_string(status));
  if (!std::exchange(failed_, true)) fabric_.note_failure(*this);
}

void UcxPeer::send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t& in_flight) {
  CAPSTAN_ASSERT(header.size() <= kInPlaceHeader);
  if (failed_) return;
  // The header must live as long as the payload, so it is stored with the counter.
  struct Sending {
    std::uint32_t* in_flight;
    std::array<std::byte, sizeof(WireHeader) + kInPlaceHeader> header;
  };
  auto sending = std::make_unique<Sending>();
  sending->in_flight = &in_flight;
  const WireHeader wire{type, 0, fabric_.rank(), fabric_.secret()};
  std::memcpy(sending->header.data(), &wire, sizeof wire);
  if (!header.empty()) std::memcpy(sending->header.data() + sizeof wire, header.data(), header.size());

  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.user_data = sending.get();
  param.cb.send = [](void* request, ucs_status_t, void* user_data) {
    const std::unique_ptr<Sending> sent(static_cast<Sending*>(user_data));
    --*sent->in_flight;
    ucp_request_free(request);
  };
  ++in_flight;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint_, kActiveMessageId, sending->header.data(), sizeof wire + header.size(),
                      payload.data(), payload.size(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    (void)sending.release();  // the callback owns it now
    return;
  }
  --in_flight;
  if (UCS_PTR_IS_ERR(request)) note_failed_send(UCS_PTR_STATUS(request));
}

bool UcxPeer::has_hardware_rma() const { return transport::has_hardware_rma(transports()); }

std::unique_ptr<Window> UcxPeer::open_window(const RegionKey& key, WindowPath path) {
  require_alive();
  return std::make_unique<UcxWindow>(*this, key, path);
}

std::string UcxPeer::transports() const {
  // ucp_ep_query lists them only since UCX 1.14; every version prints them.
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = endpoint_ != nullptr ? open_memstream(&text, &length) : nullptr;
  if (stream == nullptr) return "unknown";
  ucp_ep_print_info(endpoint_, stream);
  std::fclose(stream);
  const std::string description(text, length);
  std::free(text);
  // The lines look like "#   lane[0]:  1:tcp/eth0.0 md[1] ...".
  std::string names;
  for (std::size_t at = description.find("lane["); at != std::string::npos;
       at = description.find("lane[", at + 1)) {
    const std::size_t colon = description.find(':', description.find(']', at) + 2);
    const std::size_t end = description.find_first_of(". ", colon + 1);
    if (colon == std::string::npos || end == std::string::npos) continue;
    const std::string name = description.substr(colon + 1, end - colon - 1);
    if (names.find(name) == std::string::npos) names.append(names.empty() ? "" : "+").append(name);
  }
  return names.empty() ? "unknown" : names;
}

}  // namespace capstan::transport
