// ps_link.hpp -- one client's way to one ps: its board, windows onto its regions, and the push ring.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cluster/rpc.hpp"
#include "cluster/runtime.hpp"
#include "shard/protocol.hpp"
#include "shard/push_format.hpp"

namespace capstan::client {

/// One push to one shard: gradient row i is at `gradient + order[i] * row_bytes`, or consecutive where
/// `order` is empty. `rows` are numbers within the shard; empty for a dense push from `first_row` on.
struct PushRows {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::uint64_t row_bytes = 0;
  std::span<const std::uint32_t> rows;
  std::span<const std::uint32_t> order;
  std::uint64_t first_row = 0;
  std::uint64_t count = 0;
  const std::byte* gradient = nullptr;
};

class PsLink {
 public:
  /// Asks the ps for its board. Throws Error: unavailable, deadline_exceeded.
  PsLink(cluster::Runtime& runtime, cluster::RpcClient& rpc, int ps);

  transport::Peer& peer() noexcept { return peer_; }
  /// Notices deaths that the transport knows of, then throws Error(unavailable) if the ps is among them.
  void require_alive();

  /// The window onto a region of the ps, opened on first use.
  transport::Window& window(std::uint64_t region);
  transport::Window& board() noexcept { return *board_; }
  const shard::BoardLayout& layout() const noexcept { return layout_; }

  /// Writes a push into the ring, in parts where it is large; waits for room. In an embedded cluster it is
  /// applied on the spot.
  void push(const PushRows& push);
  /// Waits until all pushes have been applied.
  void flush();

 private:
  void open_ring();
  void push_inline(const PushRows& push);
  void write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count);
  void reserve(std::uint64_t bytes);
  void publish();
  std::uint64_t read_applied();
  template <class Done>
  void wait_for_ps(const char* what, const Done& done);

  cluster::Runtime& runtime_;
  cluster::RpcClient& rpc_;
  transport::Peer& peer_;
  transport::WindowPath path_;
  shard::BoardLayout layout_;
  std::unique_ptr<transport::Window> board_;
  shard::PushSink* sink_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<transport::Window>> windows_;

  shard::RingPlace ring_;
  transport::Window* ring_window_ = nullptr;
  std::uint64_t tail_ = 0;          // bytes written so far
  std::uint64_t published_ = 0;     // of them, what the ps may see
  std::uint64_t applied_ = 0;       // as last read
  std::vector<std::byte> staging_;  // an entry for a window that is not mapped, or gathered for the sink
};

}  // namespace capstan::client
