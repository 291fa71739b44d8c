// host_rates.hpp -- the lookups and pushes of perf_gpu on the CPU cores of the machine.
#pragma once

#include <cstdint>
#include <vector>

#include "capstan/optimizers.hpp"

namespace capstan::perf {

struct HostRate {
  double rows_per_second = 0;
  bool verified = false;
};

/// A table shared by the cores, as with one ps per core: each thread has an equal part of the rows, in memory
/// that it touched first, and an equal share of the ids of a call (uniform, without duplicates). Lookups use
/// a prefetching loop, updates the kernels of a ps with shards in host memory.
class HostTable {
 public:
  /// Each measurement is `calls` calls, repeated `repeats` times; the median counts.
  HostTable(std::uint64_t bytes, std::uint64_t dim, std::uint32_t ids, int calls, int repeats);

  HostRate lookup();
  /// REQUIRES: SGD or Adam.
  HostRate push(const Optimizer& optimizer);

 private:
  static constexpr int kSets = 8;  // number of sets of ids, which calls use in turn
  struct Part {
    std::vector<float> values, slots[2], gradient, out;
    std::vector<std::vector<std::int64_t>> ids;    // by set
    std::vector<std::vector<std::uint32_t>> rows;  // by set: the same ids, as 32-bit numbers
    bool correct = true;
  };
  template <class Work>
  void for_each_part(const Work& work);
  template <class Call>
  double seconds_per_call(const Call& call);

  std::uint64_t dim_;
  int calls_, repeats_;
  std::uint64_t ids_per_call_ = 0;
  std::vector<Part> parts_;
};

}  // namespace capstan::perf
