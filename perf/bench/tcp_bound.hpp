// tcp_bound.hpp -- the bound of cases over TCP: a raw TCP stream of the same bytes between the same ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/bench/tcp_stream.hpp"

namespace capstan {
class Cluster;
}

namespace capstan::perf {

class MpiRanks;
class Report;
struct Options;

struct TcpCase {
  std::string name;  // of the result
  TcpExchange exchange;
  /// Work of one worker in a sample, in the unit of the result; nullopt if that is microseconds per sample.
  std::optional<double> work;
};

/// Returns true if the ranks are on several hosts, and TCP is the only network that UCX has on each.
bool only_tcp_connects(const Cluster& cluster);

/// Collective. Sets the bound of each case on rank 0: the median with sockets that sleep or with sockets that
/// are polled, the better. Each worker has one connection to each ps. Sets no bound, and prints a warning, if
/// a worker cannot connect. Throws Error(unavailable) if a connection breaks later.
void set_tcp_bounds(const MpiRanks& ranks, const Options& options, const std::vector<TcpCase>& cases,
                    Report& report);

}  // namespace capstan::perf
