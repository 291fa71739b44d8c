// ps_link.cpp -- choosing a path; entries into the ring or into messages; waiting for room and for the end.
#include "client/channel/ps_link.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/backoff.hpp"
#include "base/fence.hpp"
#include "capstan/cancellation.hpp"
#include "capstan/serialize.hpp"
#include "client/channel/path_report.hpp"
#include "transport/bytes.hpp"
#include "transport/memory/life_word.hpp"
#include "transport/memory/word.hpp"

namespace capstan::client {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a wait polls before it sleeps. A ps that is at work answers within this.
constexpr std::chrono::microseconds kLookAlone{500};
constexpr std::chrono::microseconds kLookOnASharedCore{500};
/// Looks at mapped memory between two looks at the wire, which take system calls.
constexpr unsigned kLooksALookAtTheWire = 64;

}  // namespace

PsLink::PsLink(cluster::Runtime& runtime, transport::RpcClient& rpc, int ps, const RunningClosure& closure,
               Returned& returned, std::uint64_t& moves, std::function<void()> dies)
    : runtime_(runtime),
      rpc_(rpc),
      peer_(runtime.data_peer(runtime.member(Role::ps, ps))),
      rank_(runtime.self().rank),
      single_host_(runtime.single_host()),
      closure_(closure),
      layout_(static_cast<std::uint64_t>(runtime.table().places())),
      returned_(returned),
      moves_(moves),
      dies_(std::move(dies)) {
  while (true) {
    try {
      connect();
      break;
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      await_return();
    }
  }
  report_path(runtime_, runtime_.member(Role::ps, ps), path_, peer_);
}

protocol::ConnectReply PsLink::ask_to_connect() {
  return from_bytes<protocol::ConnectReply>(
      rpc_.call(peer_, transport::kConnect, {}, runtime_.patience(), "connect"));
}

void PsLink::connect() { meet(ask_to_connect()); }

void PsLink::meet(const protocol::ConnectReply& reply) {
  if (reply.life != ps_life_) {
    CurrentLocations places;
    for (const auto& now : from_bytes<std::vector<protocol::CurrentLocation>>(rpc_.call(
             peer_, transport::kCurrentLocations, {}, runtime_.patience(), "say where its shards lie"))) {
      places.emplace(std::pair(now.variable, now.shard), now.place);
    }
    places_ = std::move(places);
    ps_life_ = reply.life;
  }
  const std::string& wanted = runtime_.settings().text("window");
  const bool same_host = runtime_.member(peer_.rank()).host == runtime_.self().host;
  board_ = peer_.open_window(
      reply.board, same_host || wanted == "mapped" ? window_path(wanted) : transport::WindowPath::rma);
  tail_ = published_ = applied_ = reply.applied;
  room_ = reply.ring_bytes;
  bell_ = reply.bell;
  counts_by_call_ = reply.counts_by_call != 0;
  sink_ = reinterpret_cast<protocol::PushSink*>(reply.sink);
  if (board_->mapped() != nullptr) {
    life_ = board_->mapped() + layout_.life();
    path_ = sink_ != nullptr ? Path::in_process : Path::mapped;
  } else {
    life_ = nullptr;
    path_ = path_without_mapping(wanted, peer_.has_hardware_rma());
  }
}

const protocol::ShardLocation& PsLink::place_now(std::uint32_t variable, std::uint32_t shard,
                                                 const protocol::ShardLocation& then) const {
  const auto now = places_.find({variable, shard});
  return now == places_.end() ? then : now->second;
}

/// The peer is the new process when this returns.
void PsLink::await_return() {
  gpu_rooms_.clear();
  dies_();
  const auto wait = runtime_.ps_patience();
  const bool may = runtime_.ps_may_be_replaced() && !runtime_.in_process();
  const auto back = [this] { return returned_.contains(peer_.rank()); };
  const auto settled = [&] { return back() || runtime_.ps_given_up() || cancelled(); };
  if (!may || !transport::progress_until(runtime_.data(), transport::deadline_in(wait), settled) || !back()) {
    if (may) throw_if_cancelled();
    throw Error(Code::unavailable,
                peer_.name() + " is gone" +
                    (!may                     ? ""
                     : runtime_.ps_given_up() ? ", and nothing has taken its place"
                                              : ", and has not come back within " +
                                                    std::to_string(wait.count()) + " ms (--ps-wait)"));
  }
  ++returns_;
  auto ps = returned_.extract(peer_.rank());
  runtime_.ps_returned_to_data(ps.mapped());
}

void PsLink::come_back() {
  bool mapped = path_ == Path::mapped;
  while (true) {
    await_return();
    try {
      const protocol::ConnectReply reply = ask_to_connect();
      if (mapped && reply.life == ps_life_) {
        // The memory is what it was, with all that lies in the ring.
        bell_ = reply.bell;
        return;
      }
      mapped = false;
      ++moves_;
      windows_.clear();
      ring_window_ = nullptr;
      const bool moved = reply.life != ps_life_;
      meet(reply);
      if (moved) report_path(runtime_, runtime_.member(peer_.rank()), path_, peer_);
      break;
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;  // it has died again
    }
  }
  throw Error(Code::unavailable,
              peer_.name() + " died and is back; what it had not applied by then is to be pushed again");
}

std::vector<std::byte> PsLink::call(std::uint16_t type, transport::Bytes request, const char* what) {
  while (true) {
    try {
      return rpc_.call(peer_, type, request, runtime_.patience(), what);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable || alive()) throw;
      come_back();
    }
  }
}

PsLink::~PsLink() {
  for (auto& parcel : parcels_) {
    if (parcel->in_flight != 0) (void)parcel.release();  // the transport reads it still
  }
}

bool PsLink::alive() const noexcept {
  return !peer_.failed() && (returned_.empty() || !returned_.contains(peer_.rank())) &&
         (life_ == nullptr || transport::LifeWord::alive(life_));
}

void PsLink::require_alive() {
  if (life_ == nullptr) runtime_.data().progress();  // which notices deaths
  if (!alive()) come_back();
}

transport::Window& PsLink::window(std::uint64_t region) {
  auto& window = windows_[region];
  if (!window) {
    const auto key = from_bytes<transport::RegionKey>(
        call(transport::kRegionKey, transport::as_bytes(region), "hand out a region"));
    window =
        peer_.open_window(key, life_ != nullptr ? transport::WindowPath::mapped : transport::WindowPath::rma);
  }
  return *window;
}

void PsLink::open_ring() {
  ring_ = from_bytes<protocol::RingLocation>(
      call(transport::kOpenRing, transport::as_bytes(room_), "open a push ring"));
  ring_window_ = &window(ring_.region);
}

void PsLink::push(const PushRows& push, bool more) {
  if (push.count == 0 || push.row_bytes == 0) return;
  if (sink_ != nullptr) return push_inline(push);
  require_alive();
  if (path_ != Path::messages && ring_window_ == nullptr) open_ring();
  try {
    write_or_send(push, more);
    if (from_gradient_ != 0) wait_for_ps("take a gradient", [this] { return from_gradient_ == 0; });
  } catch (...) {
    reclaim_gradient();
    throw;
  }
}

void PsLink::write_or_send(const PushRows& push, bool more) {
  const std::uint64_t part = rows_an_entry(push, room_);
  for (std::uint64_t first = 0; first < push.count; first += part) {
    const std::uint64_t count = std::min(part, push.count - first);
    if (push.arrival != nullptr) (*push.arrival)((first + count) * push.row_bytes);
    if (path_ == Path::messages) {
      send_entry(push, first, count);
    } else {
      write_entry(push, first, count);
      if (!more) publish();
    }
  }
}

/// The caller of a push that has failed will reuse its memory, which the transport must not read any longer.
void PsLink::reclaim_gradient() {
  const auto done = [this] { return from_gradient_ == 0; };
  if (transport::progress_until(runtime_.data(), transport::deadline_in(runtime_.patience()), done)) return;
  peer_.give_up();
  transport::progress_until(runtime_.data(), transport::deadline_in(std::chrono::seconds(10)), done);
}

void PsLink::push_inline(const PushRows& push) {
  if (push.arrival != nullptr) (*push.arrival)(push.count * push.row_bytes);
  const std::byte* values = push.gradient;
  if (!push.order.empty()) {
    staging_.resize(push.count * push.row_bytes);
    copy_rows(push, 0, push.count, staging_.data());
    values = staging_.data();
  }
  std::span<const std::uint32_t> rows = push.rows;
  if (!push.ids.empty()) {
    numbers_.resize(push.count);
    copy_numbers(push, 0, push.count, numbers_.data());
    rows = numbers_;
  }
  sink_->apply(next_header(push, 0, push.count), rows, values);
}

/// The header is of the entry that is sent next.
void PsLink::number(protocol::PushHeader& header) {
  if (closure_.id == 0) return;
  if (numbered_ != closure_.pushes) {
    numbered_ = closure_.pushes;
    parts_ = 0;
  }
  header.closure = closure_.id;
  header.again = closure_.again ? 1 : 0;
  header.replica = closure_.replica;
  header.call = closure_.call;
  header.part = parts_++;
}

protocol::PushHeader PsLink::next_header(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  protocol::PushHeader header = header_of(push, first, count, rank_);
  number(header);
  return header;
}

void PsLink::write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  const protocol::PushHeader header = next_header(push, first, count);
  reserve(header.bytes);
  const std::uint64_t at = ring_.offset + tail_ % ring_.bytes;
  if (push.on_gpu) {
    ring_window_->put(at, transport::as_bytes(header));
    ring_window_->put(at + sizeof header, {push.gradient + first * push.row_bytes, count * push.row_bytes});
    tail_ += header.bytes;
    return;
  }
  std::byte* entry = ring_window_->mapped();
  if (entry != nullptr) {
    entry += at;
  } else {
    staging_.resize(header.bytes);
    entry = staging_.data();
  }
  std::memcpy(entry, &header, sizeof header);
  std::byte* values = entry + sizeof header;
  if (push.sparse()) {
    copy_numbers(push, first, count, reinterpret_cast<std::uint32_t*>(values));
    values += protocol::round_up(count * sizeof(std::uint32_t));
  }
  copy_rows(push, first, count, values);
  if (ring_window_->mapped() == nullptr) ring_window_->put(at, staging_);
  tail_ += header.bytes;
}

void PsLink::send_entry(const PushRows& push, std::uint64_t first, std::uint64_t count) {
  protocol::PushHeader header = next_header(push, first, count);
  const bool fills_a_quarter = (tail_ + header.bytes) / (room_ / 4) != tail_ / (room_ / 4);
  header.acknowledge = header.last_part != 0 || fills_a_quarter ? 1 : 0;
  wait_for_room(header.bytes);
  const std::uint64_t bytes = header.bytes - sizeof header;
  const bool whole_lines = count * push.row_bytes % protocol::kCacheLine == 0;
  if (!push.sparse() && whole_lines) {
    peer_.send_in_place(transport::kPushEntry, transport::as_bytes(header),
                        {push.gradient + first * push.row_bytes, bytes}, from_gradient_);
  } else {
    SendBuffer& parcel = free_parcel();
    if (parcel.bytes.size() < bytes) parcel.bytes.resize(bytes);
    std::byte* values = parcel.bytes.data();
    if (push.sparse()) {
      copy_numbers(push, first, count, reinterpret_cast<std::uint32_t*>(values));
      values += protocol::round_up(count * sizeof(std::uint32_t));
    }
    copy_rows(push, first, count, values);
    peer_.send_in_place(transport::kPushEntry, transport::as_bytes(header), {parcel.bytes.data(), bytes},
                        parcel.in_flight);
  }
  tail_ += header.bytes;
  published_ = tail_;
}

PsLink::SendBuffer& PsLink::free_parcel() {
  for (const auto& parcel : parcels_) {
    if (parcel->in_flight == 0) return *parcel;
  }
  return *parcels_.emplace_back(std::make_unique<SendBuffer>());  // as many as fit the room
}

void PsLink::wait_for_room(std::uint64_t bytes) {
  const auto fits = [&] { return tail_ + bytes - applied_ <= room_; };
  if (fits()) return;
  if (path_ != Path::messages) publish();
  wait_for_ps("make room in its push ring", [&] {
    read_applied();
    return fits();
  });
}

void PsLink::reserve(std::uint64_t bytes) {
  const std::uint64_t to_end = ring_.bytes - tail_ % ring_.bytes;
  if (to_end < bytes) {
    wait_for_room(to_end);
    protocol::PushHeader padding;
    padding.bytes = to_end;
    ring_window_->put(ring_.offset + tail_ % ring_.bytes, transport::as_bytes(padding));
    tail_ += to_end;
  }
  wait_for_room(bytes);
}

void PsLink::publish() {
  if (published_ == tail_) return;
  const auto rank = static_cast<std::uint64_t>(runtime_.self().rank);
  board_->fence();
  board_->put(layout_.tail(rank), transport::as_bytes(tail_));
  published_ = tail_;
  if (board_->mapped() == nullptr) {
    peer_.send(transport::kDoorbell, {});  // its flag is too far away to look at first
    return;
  }
  // Either the ps sees the tail before it sleeps, or we see that it sleeps.
  thread_fence(std::memory_order_seq_cst);
  const auto asleep = transport::word_at(board_->mapped() + layout_.asleep());
  if (asleep.load(std::memory_order_relaxed) == 0 || asleep.exchange(0) == 0) return;
  if (!runtime_.data().ring(bell_)) {
    peer_.send(transport::kDoorbell, {});
    runtime_.data().progress();  // out with it
  }
}

void PsLink::read_applied() {
  const std::uint64_t at = layout_.applied(static_cast<std::uint64_t>(runtime_.self().rank));
  if (path_ == Path::messages) {
    // we are told
  } else if (std::byte* board = board_->mapped(); board != nullptr) {
    applied_ = transport::word_at(board + at).load(std::memory_order_acquire);
  } else {
    board_->get(at, std::as_writable_bytes(std::span<std::uint64_t, 1>(&applied_, 1)),
                transport::deadline_in(runtime_.patience()));
  }
  if (applied_ != protocol::kFenced) return;
  throw Error(Code::aborted, "this rank counts as dead; " + peer_.name() + " takes nothing of it any more");
}

void PsLink::end_step(std::uint32_t group, std::uint64_t step) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::step;
  header.variable = group;
  header.first_row = step;
  send_header(header);
}

void PsLink::count(std::uint32_t counter, std::uint64_t delta) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::count;
  header.variable = counter;
  header.first_row = delta;
  number(header);
  send_header(header);
}

/// An entry that is nothing else.
void PsLink::send_header(protocol::PushHeader header) {
  header.rank = static_cast<std::uint32_t>(rank_);
  header.bytes = sizeof header;
  if (sink_ != nullptr) return sink_->apply(header, {}, nullptr);
  require_alive();
  if (path_ == Path::messages) {
    header.acknowledge = 1;
    wait_for_room(header.bytes);
    peer_.send(transport::kPushEntry, transport::as_bytes(header));
    tail_ += header.bytes;
    published_ = tail_;
    return;
  }
  if (ring_window_ == nullptr) open_ring();
  reserve(header.bytes);
  ring_window_->put(ring_.offset + tail_ % ring_.bytes, transport::as_bytes(header));
  tail_ += header.bytes;
  publish();
}

protocol::GroupClocks PsLink::clocks(std::uint32_t group) {
  return from_bytes<protocol::GroupClocks>(
      call(transport::kGroupClocks, transport::as_bytes(group), "say which steps have ended"));
}

std::uint64_t PsLink::steps_of(std::uint32_t group) {
  if (board_->mapped() != nullptr) {
    return transport::word_at(board_->mapped() + layout_.group(group)).load(std::memory_order_acquire);
  }
  if (path_ == Path::messages) return clocks(group).steps;
  std::uint64_t steps = 0;
  board_->get(layout_.group(group), std::as_writable_bytes(std::span<std::uint64_t, 1>(&steps, 1)),
              transport::deadline_in(runtime_.patience()));
  return steps;
}

std::uint64_t PsLink::fetch_add(std::uint64_t index, std::uint64_t delta) {
  require_alive();
  // Ranks on the ps's host would use the CPU's atomics and the others perhaps an adapter's, which do not see
  // each other: so the owner adds for all. So it does where it has a replica, which has to hear of it.
  if (!single_host_ || path_ == Path::messages || counts_by_call_) {
    return from_bytes<std::uint64_t>(
        call(transport::kFetchAdd, to_bytes(protocol::FetchAdd{index, delta}), "add to a counter"));
  }
  if (sink_ == nullptr) read_applied();  // whether this rank may
  if (board_->mapped() != nullptr)
    return transport::word_at(board_->mapped() + layout_.counter(index)).fetch_add(delta);
  return board_->fetch_add(layout_.counter(index), delta, transport::deadline_in(runtime_.patience()));
}

bool PsLink::wait_until(const std::function<bool()>& done) {
  Backoff backoff(kLookAlone, kLookOnASharedCore);
  Clock::time_point deadline{};
  transport::Fabric& fabric = runtime_.data();
  for (unsigned looks = 1; !done(); ++looks) {
    if (life_ == nullptr || looks % kLooksALookAtTheWire == 0) fabric.progress();
    if (!alive()) {
      come_back();
      deadline = {};
      backoff.reset();
    }
    if (backoff.pause()) continue;
    if (deadline == Clock::time_point{}) deadline = Clock::now() + runtime_.patience();
    if (Clock::now() >= deadline) return false;
    if (life_ == nullptr) {
      fabric.wait(std::chrono::milliseconds(1));
    } else {
      fabric.progress();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

void PsLink::wait_for_ps(const char* what, const std::function<bool()>& done) {
  if (wait_until(done)) return;
  throw Error(Code::deadline_exceeded, "waited " + std::to_string(runtime_.patience().count()) + " ms for " +
                                           peer_.name() + " to " + what);
}

void PsLink::flush() {
  if (sink_ != nullptr) return sink_->settle();
  if (path_ != Path::messages) publish();
  if (applied_ == published_) return;
  wait_for_ps("apply pushes", [this] {
    throw_if_cancelled();
    read_applied();
    return applied_ == published_;
  });
}

}  // namespace capstan::client
