// ps_link.cpp -- writing entries into the ring, waiting for room, waiting for the end.
#include "client/ps_link.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/fence.hpp"
#include "base/log.hpp"
#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {
namespace {

using Clock = std::chrono::steady_clock;

// Polls that catch a ps which is just finishing; then the core is given away, first by yielding, then by
// sleeping.
constexpr int kSpins = 256;
constexpr int kYields = 64;

transport::WindowPath path_of(const Settings& settings) {
  const std::string& text = settings.text("window");
  return text == "mapped" ? transport::WindowPath::mapped
         : text == "rma"  ? transport::WindowPath::rma
                          : transport::WindowPath::automatic;
}

/// Gradient rows of a push into consecutive memory.
void copy_rows(const PushRows& push, std::uint64_t first, std::uint64_t count, std::byte* to) {
  if (push.order.empty()) {
    std::memcpy(to, push.gradient + first * push.row_bytes, count * push.row_bytes);
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * push.row_bytes, push.gradient + push.order[first + i] * push.row_bytes,
                push.row_bytes);
  }
}

shard::PushHeader header_of(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  shard::PushHeader header;
  header.kind = push.rows.empty() ? shard::PushKind::dense : shard::PushKind::sparse;
  header.variable = push.variable;
  header.shard = push.shard;
  header.rows = static_cast<std::uint32_t>(count);
  header.bytes = shard::entry_bytes(header.kind, count, push.row_bytes);
  header.first_row = push.first_row + first;
  header.first_part = first == 0 ? 1 : 0;
  return header;
}

}  // namespace

PsLink::PsLink(cluster::Runtime& runtime, cluster::RpcClient& rpc, int ps)
    : runtime_(runtime),
      rpc_(rpc),
      peer_(runtime.data_peer(runtime.member(Role::ps, ps))),
      path_(path_of(runtime.settings())),
      layout_(runtime.members().size()) {
  const auto reply = from_bytes<shard::ConnectReply>(
      rpc_.call(peer_, cluster::kConnect, {}, runtime_.patience(), "connect"));
  board_ = peer_.open_window(reply.board, path_);
  sink_ = reinterpret_cast<shard::PushSink*>(reply.sink);
  log::debug("{}: {} over {}", peer_.name(), board_->mapped() != nullptr ? "mapped" : "remote memory access",
             peer_.transports());
}

void PsLink::require_alive() {
  if (sink_ == nullptr) runtime_.data().progress();
  peer_.require_alive();
}

transport::Window& PsLink::window(std::uint64_t region) {
  auto& window = windows_[region];
  if (!window) {
    const auto key = from_bytes<transport::RegionKey>(rpc_.call(
        peer_, cluster::kRegionKey, transport::as_bytes(region), runtime_.patience(), "hand out a region"));
    window = peer_.open_window(key, path_);
  }
  return *window;
}

void PsLink::open_ring() {
  const std::uint64_t bytes = runtime_.settings().bytes("push-ring-bytes");
  ring_ = from_bytes<shard::RingPlace>(rpc_.call(peer_, cluster::kOpenRing, transport::as_bytes(bytes),
                                                 runtime_.patience(), "open a push ring"));
  ring_window_ = &window(ring_.region);
}

void PsLink::push(const PushRows& push) {
  if (push.count == 0) return;
  if (sink_ != nullptr) return push_inline(push);
  require_alive();
  if (ring_window_ == nullptr) open_ring();
  // Parts of at most a quarter of the ring: the ps applies one while the next is written.
  const bool sparse = !push.rows.empty();
  const std::uint64_t row_cost = push.row_bytes + (sparse ? sizeof(std::uint32_t) : 0);
  const std::uint64_t part_bytes = ring_.bytes / 4 - 3 * shard::kCacheLine;
  const std::uint64_t part = part_bytes / row_cost;
  if (part == 0) {
    throw Error(Code::resource_exhausted,
                "a row of " + std::to_string(push.row_bytes) + " bytes does not fit a push ring of " +
                    std::to_string(ring_.bytes) + " bytes; set --push-ring-bytes to eight rows or more");
  }
  for (std::uint64_t first = 0; first < push.count; first += part) {
    write_entry(push, first, std::min(part, push.count - first));
  }
}

void PsLink::push_inline(const PushRows& push) {
  const std::byte* values = push.gradient;
  if (!push.order.empty()) {
    staging_.resize(push.count * push.row_bytes);
    copy_rows(push, 0, push.count, staging_.data());
    values = staging_.data();
  }
  sink_->apply(header_of(push, 0, push.count), push.rows, values);
}

void PsLink::write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  const shard::PushHeader header = header_of(push, first, count);
  reserve(header.bytes);
  const std::uint64_t at = ring_.offset + tail_ % ring_.bytes;
  std::byte* entry = ring_window_->mapped();
  if (entry != nullptr) {
    entry += at;
  } else {
    staging_.resize(header.bytes);
    entry = staging_.data();
  }
  std::memcpy(entry, &header, sizeof header);
  std::byte* values = entry + sizeof header;
  if (!push.rows.empty()) {
    std::memcpy(values, push.rows.data() + first, count * sizeof(std::uint32_t));
    values += shard::round_up(count * sizeof(std::uint32_t));
  }
  copy_rows(push, first, count, values);
  if (ring_window_->mapped() == nullptr) ring_window_->put(at, staging_);
  tail_ += header.bytes;
  publish();
}

void PsLink::reserve(std::uint64_t bytes) {
  const auto wait_for_room = [this](std::uint64_t wanted) {
    if (tail_ + wanted - applied_ <= ring_.bytes) return;
    wait_for_ps("make room in its push ring",
                [&] { return tail_ + wanted - (applied_ = read_applied()) <= ring_.bytes; });
  };
  const std::uint64_t to_end = ring_.bytes - tail_ % ring_.bytes;
  if (to_end < bytes) {
    wait_for_room(to_end);
    shard::PushHeader padding;
    padding.bytes = to_end;
    ring_window_->put(ring_.offset + tail_ % ring_.bytes, transport::as_bytes(padding));
    tail_ += to_end;
  }
  wait_for_room(bytes);
}

void PsLink::publish() {
  const auto rank = static_cast<std::uint64_t>(runtime_.self().rank);
  board_->fence();
  board_->put(layout_.tail(rank), transport::as_bytes(tail_));
  published_ = tail_;
  if (board_->mapped() == nullptr) {
    peer_.send(cluster::kDoorbell, {});  // its flag is too far away to look at first
    return;
  }
  // Either the ps sees the tail before it sleeps, or we see that it sleeps.
  thread_fence(std::memory_order_seq_cst);
  std::atomic_ref<std::uint64_t> asleep(
      *reinterpret_cast<std::uint64_t*>(board_->mapped() + layout_.asleep()));
  if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0)
    peer_.send(cluster::kDoorbell, {});
}

std::uint64_t PsLink::read_applied() {
  std::uint64_t applied = 0;
  board_->get(layout_.applied(static_cast<std::uint64_t>(runtime_.self().rank)),
              std::as_writable_bytes(std::span<std::uint64_t, 1>(&applied, 1)),
              transport::deadline_in(runtime_.patience()));
  return applied;
}

template <class Done>
void PsLink::wait_for_ps(const char* what, const Done& done) {
  const auto deadline = Clock::now() + runtime_.patience();
  for (int tries = 0; !done(); ++tries) {
    runtime_.data().progress();
    peer_.require_alive();
    if (tries < kSpins) continue;
    if (tries < kSpins + kYields) {
      sched_yield();
      continue;
    }
    if (Clock::now() >= deadline) {
      throw Error(Code::deadline_exceeded, "waited " + std::to_string(runtime_.patience().count()) +
                                               " ms for " + peer_.name() + " to " + what);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void PsLink::flush() {
  if (sink_ != nullptr || applied_ == published_) return;
  wait_for_ps("apply pushes", [this] { return (applied_ = read_applied()) == published_; });
}

}  // namespace capstan::client
