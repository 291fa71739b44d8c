// pair_tester.hpp -- connects ranks over UCX as a run does, and tests the connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/pair_plan.hpp"
#include "launch/doctor/rank_group.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::launch::doctor {

/// Connection between two ranks. Serialized and sent to all ranks, as are the structs below.
struct Link {
  int from = 0;
  int to = 0;
  std::string from_host = {};
  std::string to_host = {};
  bool mapped = false;  ///< `from` mapped the memory of `to` and reads it with loads
  bool hardware_rma = false;
  std::string transports = {};
  std::string failure = {};  ///< why the connection failed; "" on success

  bool same_host() const { return from_host == to_host; }
};

/// Result of a put and a flush over UCX while the target made no progress.
struct RmaProbe {
  Link link;
  bool completed = false;
  double milliseconds = 0;
};

struct Speed {
  Link link;
  double latency = 0;        ///< seconds; median of half the round trip of an empty active message
  double bandwidth = 0;      ///< bytes per second, over the path that Capstan would use
  double memcpy_rate = 0;    ///< bytes per second of a memcpy of the same size within the rank
  double link_gigabits = 0;  ///< Gbit/s of the device from sysfs; 0: unknown
};

/// Tests pairs of ranks. Collective: every rank makes the same calls, each at most once and in the order
/// below. Errors of a pair are returned in `failure`.
class PairTester {
 public:
  /// Opens UCX and exchanges addresses with all ranks.
  explicit PairTester(RankGroup& group);
  /// Frees the region, but leaks the fabric: closing a connection needs progress on both sides.
  ~PairTester();
  PairTester(const PairTester&) = delete;
  PairTester& operator=(const PairTester&) = delete;

  const std::vector<std::string>& hosts() const noexcept { return hosts_; }

  std::vector<Link> links();
  std::vector<Speed> speeds();
  /// Must come last: it may leave the tested connections unusable.
  std::vector<RmaProbe> rma_probes();

 private:
  struct Contact {
    std::string host = {};
    std::string failure = {};
    std::vector<std::byte> address = {};
    std::uint64_t region_address = 0;
    std::uint64_t region_length = 0;
    std::vector<std::byte> region_key = {};
  };

  void open();
  void serve();
  Link link_to(int rank) const;
  transport::Peer& reach(int rank);
  transport::Peer& peer(int rank);
  Link try_link(int rank);
  Speed measure(int rank);
  void ping(transport::Peer& to);
  double latency_to(transport::Peer& to);
  double bandwidth_to(transport::Peer& to, transport::Window& window, bool hardware_rma);
  void run_rma_probe(int rank, RmaProbe& probe);
  std::unique_ptr<transport::Window> window_onto(int rank, transport::WindowPath path);

  RankGroup& group_;
  Contact own_;
  std::vector<Contact> contacts_;
  std::vector<std::string> hosts_;
  std::vector<std::vector<Pair>> rounds_;
  transport::UcxFabric* fabric_ = nullptr;  // leaked, see the destructor; null if UCX could not be opened
  std::unique_ptr<transport::Region> region_;
  std::map<int, transport::Peer*> peers_;
  std::vector<int> pending_replies_;
  std::map<int, int> answers_;  // number of replies by rank
  std::chrono::steady_clock::time_point last_event_{};
};

}  // namespace capstan::launch::doctor
