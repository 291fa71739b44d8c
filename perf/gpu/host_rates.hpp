// host_rates.hpp -- the lookups and pushes of perf_gpu by the machine's own cores.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/optimizers.hpp"

namespace capstan::perf {

struct HostRate {
  double rows_a_second = 0;
  bool verified = false;
};

/// A table that the cores share, as with one ps a core: each has an equal part of the rows in memory that it
/// touched first, an equal share of the ids of a call (uniform, no row twice in one), and a thread. Reads go
/// by a loop that prefetches, updates by the kernels of ps with shards in the memory of hosts.
class HostTable {
 public:
  /// `calls` of each measurement, `repeats` times; the median counts.
  HostTable(std::uint64_t bytes, std::uint64_t dim, std::uint32_t ids, int calls, int repeats);

  HostRate lookup();
  /// SGD or Adam.
  HostRate push(const Optimizer& optimizer);

 private:
  static constexpr int kSets = 8;  // of ids, by turns
  struct Part {
    std::vector<float> values, slots[2], gradient, out;
    std::vector<std::vector<std::int64_t>> ids;    // of each set
    std::vector<std::vector<std::uint32_t>> rows;  // the same
    bool right = true;
  };
  template <class Work>
  void by_all(const Work& work);
  template <class Call>
  double seconds_a_call(const Call& call);

  std::uint64_t dim_;
  int calls_, repeats_;
  std::uint64_t ids_a_call_ = 0;
  std::vector<Part> parts_;
};

}  // namespace capstan::perf
