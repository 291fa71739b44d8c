// job_model.hpp -- a job whose steps are simulated, and the result of a simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simulate/constants.hpp"
#include "simulate/host.hpp"

namespace capstan::simulate {

/// A step of a worker is one closure: it looks up a batch of rows, computes, pushes as many rows and flushes.
struct JobModel {
  int workers = 1;
  int ps = 1;
  bool one_host = false;  ///< all ranks share a host, and the memory of the ps is mapped
  int workers_per_host = 1;
  int ps_per_host = 1;
  HostShape host = {};
  bool rdma = false;      ///< adapters read rows and write rings, without the CPU of the ps
  double batch = 256;     ///< rows of a step
  double dim = 64;        ///< floats of a row
  double compute = 1e-3;  ///< seconds
  bool paced = false;     ///< sleeps in place of the computation, which then takes no core
  int in_flight = 2;      ///< closures that a worker holds
  int staleness = -1;  ///< steps by which a worker may be ahead of the slowest; 0: synchronous; -1: no limit
  double hottest_row = 0;  ///< share of the looked up rows that are the most frequent one; 0: uniform rows
  double rows = std::numeric_limits<double>::infinity();  ///< of the table
  int steps = 20;                                         ///< per worker
  double heartbeat_period = 0;                            ///< seconds; 0: no heartbeats
  std::uint64_t seed = 1;
  /// Most ps to simulate, unless more of them share a host. The others are like them: their messages take
  /// time of the workers only. The most loaded ps is always simulated.
  int most_simulated_ps = 8;

  /// A host is simulated with all of its ps, up to this number.
  static constexpr int kMostPsOfAHost = 256;

  int simulated_ps() const noexcept {
    const int of_a_host = std::min(one_host ? ps : ps_per_host, kMostPsOfAHost);
    return std::min(ps, std::max(most_simulated_ps, of_a_host));
  }
  /// Number of ps for which a simulated one stands. The first one, the most loaded, stands for itself only.
  double ps_like(int index) const noexcept {
    const int simulated = simulated_ps();
    if (simulated == 1) return ps;
    return index == 0 ? 1 : (ps - 1.0) / (simulated - 1);
  }
  bool by_messages() const noexcept { return !one_host && !rdma; }
  /// Rows that a worker looks up on a ps in a step. The most frequent row is on the first ps.
  double rows_on(int index) const noexcept {
    return batch * (1 - hottest_row) / ps + (index == 0 ? batch * hottest_row : 0);
  }
  /// Rows that a worker pushes to a ps in a step: a push adds up the gradients of a row. Of rows other than
  /// the most frequent one, as many as possible are distinct.
  double pushed_on(int index) const noexcept {
    if (hottest_row <= 0) return std::min(batch, rows) / ps;
    const double others = std::min(batch * (1 - hottest_row), std::max(0.0, rows - 1)) / ps;
    return others + (index == 0 ? std::min(1.0, batch * hottest_row) : 0);
  }
  /// Rows that a worker pushes in a step.
  double pushed() const noexcept { return pushed_on(0) + (ps - 1) * pushed_on(1); }
  /// Messages that carry the rows of a step from each ps, or to it.
  double read_pieces() const noexcept { return std::max(1.0, batch / ps * 4 * dim / kMessageBytes); }
  double push_pieces() const noexcept { return std::max(1.0, pushed() / ps * (4 * dim + 4) / kMessageBytes); }
};

struct Prediction {
  double seconds = 0;      ///< of all steps
  double rate = 0;         ///< steps/s of all workers, without the first and the last step of each
  double whole_rate = 0;   ///< steps/s of all workers, with the start and the end, as perf_scale measures it
  double step_time = 0;    ///< seconds of a worker per step, with the wait for the next closure
  double step_median = 0;  ///< seconds from the lookup to the end of the flush
  double step_p99 = 0;
  double push_median = 0;  ///< seconds of the push and its flush
  double push_p99 = 0;
  double processors = 0;  ///< busy share of the cores of the host of the most loaded ps
  double ps_busy = 0;     ///< busy share of the most loaded ps
  double ps_waiting = 0;  ///< mean number of tasks that wait or run in the most loaded ps
  double coordinator_busy = 0;
  std::uint64_t events = 0;
};

/// Smallest sample that the share `q` of all samples does not exceed (nearest rank); 0 without samples.
double quantile(std::vector<double> samples, double q);

}  // namespace capstan::simulate
