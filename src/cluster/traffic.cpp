// traffic.cpp -- sums, differences and quantiles.
#include "cluster/traffic.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace capstan::cluster {

std::uint64_t Times::count() const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : counts) sum += one;
  return sum;
}

void Times::add(const Times& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += other.counts[i];
}

Times Times::since(const Times& earlier) const noexcept {
  Times difference;
  for (std::size_t i = 0; i < kBuckets; ++i)
    difference.counts[i] = counts[i] - std::min(counts[i], earlier.counts[i]);
  return difference;
}

double Times::quantile(double part) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count())));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    below += counts[i];
    if (below > 0 && below >= wanted) return bound(i);
  }
  return 0;
}

void CallMetrics::add(const CallMetrics& other) noexcept {
  calls += other.calls;
  rows += other.rows;
  bytes += other.bytes;
  times.add(other.times);
}

CallMetrics CallMetrics::since(const CallMetrics& earlier) const noexcept {
  const auto difference = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
  return {difference(calls, earlier.calls), difference(rows, earlier.rows), difference(bytes, earlier.bytes),
          times.since(earlier.times)};
}

void TrafficMetrics::add(const TrafficMetrics& other) noexcept {
  pull.add(other.pull);
  push.add(other.push);
  flush.add(other.flush);
  keys.add(other.keys);
}

PackedCalls packed(const CallMetrics& metrics) {
  PackedCalls all{metrics.calls, metrics.rows, metrics.bytes};
  for (std::uint32_t i = 0; i < Times::kBuckets; ++i) {
    if (metrics.times.counts[i] != 0) all.times.emplace_back(i, metrics.times.counts[i]);
  }
  return all;
}

CallMetrics unpacked(const PackedCalls& packed) {
  CallMetrics metrics{packed.calls, packed.rows, packed.bytes};
  for (const auto& [bucket, count] : packed.times) {
    if (bucket < Times::kBuckets) metrics.times.counts[bucket] = count;
  }
  return metrics;
}

CallMetrics Traffic::Calls::metrics() const noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  CallMetrics all{read(calls_), read(rows_), read(bytes_)};
  for (std::size_t i = 0; i < Times::kBuckets; ++i) all.times.counts[i] = read(times_[i]);
  return all;
}

ProcessUse use_of_this_process() noexcept {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace capstan::cluster
