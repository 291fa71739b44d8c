// tcp_bound.cpp -- ps serve the exchanges, workers run and time them.
#include "perf/bench/tcp_bound.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "capstan/cluster.hpp"
#include "capstan/error.hpp"
#include "cluster/runtime.hpp"
#include "perf/bench/mpi_ranks.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr int kMinSamples = 5;
constexpr std::size_t kAddressBytes = 64;  // of "255.255.255.255:65535" with its end

/// Collective. Returns the addresses of all ps.
std::vector<std::string> exchange_addresses(const MpiRanks& ranks, const std::string& own) {
  std::array<char, kAddressBytes> text{};
  std::copy_n(own.begin(), std::min(own.size(), text.size() - 1), text.begin());
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<std::array<char, kAddressBytes>> all(static_cast<std::size_t>(size));
  MPI_Allgather(text.data(), kAddressBytes, MPI_CHAR, all.data(), kAddressBytes, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> addresses;
  for (const int ps : ranks.ps()) addresses.emplace_back(all[static_cast<std::size_t>(ps)].data());
  return addresses;
}

/// Samples of each exchange, in seconds. Cases with equal exchanges share them.
using Samples = std::map<TcpExchange, std::vector<double>>;

Samples measure(const MpiRanks& ranks, const Options& options, const std::vector<TcpCase>& cases,
                TcpClient& client) {
  const int samples = std::max(kMinSamples, options.iters * options.repeat);
  Samples found;
  for (const TcpCase& one : cases) {
    TcpExchange exchange = one.exchange;
    for (exchange.polling = 0; exchange.polling <= 1; ++exchange.polling) {
      std::vector<double>& seconds = found[exchange];
      for (int sample = seconds.empty() ? -options.warmup : samples; sample < samples; ++sample) {
        MPI_Barrier(ranks.worker_comm());
        const double time = client.seconds(exchange);
        if (sample >= 0) seconds.push_back(time);
      }
    }
  }
  return found;
}

}  // namespace

bool only_tcp_connects(const Cluster& cluster) {
  if (cluster.runtime()->membership().single_host()) return false;
  const std::vector<std::string> tcp = {"tcp"};
  const auto& members = cluster.runtime()->members();
  return std::all_of(members.begin(), members.end(),
                     [&](const cluster::Member& member) { return member.resources.network == tcp; });
}

void set_tcp_bounds(const MpiRanks& ranks, const Options& options, const std::vector<TcpCase>& cases,
                    Report& report) {
  const bool worker = ranks.role() == Role::worker;
  std::optional<TcpServer> server;
  std::optional<TcpClient> client;
  std::string error;
  const auto attempt = [&](const auto& connect) {
    try {
      connect();
    } catch (const Error& found) {
      error = found.what();
    }
  };
  if (ranks.role() == Role::ps) attempt([&] { server.emplace(); });
  const std::vector<std::string> addresses = exchange_addresses(ranks, server ? server->address() : "");
  if (worker) attempt([&] { client.emplace(addresses); });
  if (server) attempt([&] { server->accept(ranks.workers().size()); });
  if (!error.empty()) std::cerr << error << std::endl;
  if (!ranks.true_on_all(error.empty())) {
    if (ranks.rank() == 0) std::cerr << "no raw TCP stream was measured: no result has a bound" << std::endl;
    return;
  }

  Samples found;
  if (worker) {
    found = measure(ranks, options, cases, *client);
    client.reset();
  }
  if (server) server->serve();
  const int samples = std::max(kMinSamples, options.iters * options.repeat);
  for (const TcpCase& one : cases) {
    const auto slowest_median = [&](std::uint64_t polling) {
      TcpExchange exchange = one.exchange;
      exchange.polling = polling;
      return ranks.slowest(found[exchange], samples);
    };
    const std::vector<double> sleeping = slowest_median(0);
    const std::vector<double> polled = slowest_median(1);
    if (ranks.rank() != 0) continue;
    const double seconds = std::min(median(sleeping), median(polled));
    const double value =
        one.work ? *one.work * static_cast<double>(ranks.workers().size()) / seconds : 1e6 * seconds;
    report.set_bound(one.name, value,
                     fmt::format("raw TCP stream, {} sockets, to {}",
                                 median(polled) < median(sleeping) ? "polled" : "sleeping",
                                 addresses.front().substr(0, addresses.front().rfind(':'))));
  }
}

}  // namespace capstan::perf
