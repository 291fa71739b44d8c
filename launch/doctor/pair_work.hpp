// pair_work.hpp -- ranks connect by UCX, as a run does, and try what it gives.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/gathering.hpp"
#include "launch/doctor/pair_plan.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::launch::doctor {

/// Two ranks and how they are connected. All of these travel to all ranks.
struct Link {
  int from = 0;
  int to = 0;
  std::string from_host = {};
  std::string to_host = {};
  bool mapped = false;  ///< the other's memory was read by a load
  bool hardware_rma = false;
  std::string transports = {};
  std::string failure = {};  ///< it was not reached, and why

  bool same_host() const { return from_host == to_host; }
};

/// A put and a flush by UCX while the other side made no progress.
struct Probe {
  Link link;
  bool completed = false;
  double milliseconds = 0;
};

struct Speed {
  Link link;
  double latency = 0;        ///< seconds: half a round trip of an active message without payload, the median
  double bandwidth = 0;      ///< bytes a second, the way that Capstan would take
  double own_copies = 0;     ///< bytes a second of a memcpy of the same size in the rank's own memory
  double link_gigabits = 0;  ///< a second, of the device, by sysfs; 0: it does not say
};

/// Every rank makes the same calls, in this order at most once each. What one of them cannot do it says in
/// `failure`.
class PairWork {
 public:
  /// Opens UCX and tells all others where.
  explicit PairWork(Gathering& gathering);
  /// Gives memory back. The connections are left to the end of the process: closing one takes part of both
  /// ends.
  ~PairWork();
  PairWork(const PairWork&) = delete;
  PairWork& operator=(const PairWork&) = delete;

  const std::vector<std::string>& hosts() const noexcept { return hosts_; }

  std::vector<Link> links();
  std::vector<Speed> speeds();
  /// Last: connections that it has tried are broken afterwards.
  std::vector<Probe> probes();

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
  void probe(int rank, Probe& probe);
  std::unique_ptr<transport::Window> window_onto(int rank, transport::WindowPath path);

  Gathering& gathering_;
  Contact own_;
  std::vector<Contact> contacts_;
  std::vector<std::string> hosts_;
  std::vector<std::vector<Pair>> rounds_;
  transport::UcxFabric* fabric_ = nullptr;  // never deleted, see above; null when UCX could not be opened
  std::unique_ptr<transport::Region> region_;
  std::map<int, transport::Peer*> peers_;
  std::vector<int> to_answer_;
  std::map<int, int> answers_;  // by rank
  std::chrono::steady_clock::time_point last_event_{};
};

}  // namespace capstan::launch::doctor
