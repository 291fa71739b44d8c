// host_rates.cpp -- see host_rates.hpp.
#include "perf/gpu/host_rates.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <limits>
#include <random>
#include <thread>
#include <unordered_set>

#include "perf/bench/row_loops.hpp"
#include "perf/gpu/first_step.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::perf {
namespace {

float value_of(std::uint64_t i) { return static_cast<float>(i % 4093) / 4096; }
float gradient_of(std::uint64_t i) { return static_cast<float>(i % 1021) / 65536; }

double median(std::vector<double> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

}  // namespace

/// Runs work(part) for each part, each on its own thread.
template <class Work>
void HostTable::for_each_part(const Work& work) {
  std::vector<std::jthread> threads;
  for (Part& part : parts_) threads.emplace_back([&work, &part] { work(part); });
}

/// Runs call(part, set) for all parts concurrently. Returns the seconds per call: the median of `repeats_`
/// measurements.
template <class Call>
double HostTable::seconds_per_call(const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUp = 2;
  std::barrier barrier(static_cast<std::ptrdiff_t>(parts_.size()) + 1);
  std::vector<double> times;
  std::jthread timing_thread([&] {
    for (int repeat = 0; repeat < kWarmUp + repeats_; ++repeat) {
      barrier.arrive_and_wait();
      const auto begin = Clock::now();
      barrier.arrive_and_wait();
      const std::chrono::duration<double> taken = Clock::now() - begin;
      if (repeat >= kWarmUp) times.push_back(taken.count() / calls_);
    }
  });
  for_each_part([&](Part& part) {
    for (int repeat = 0; repeat < kWarmUp + repeats_; ++repeat) {
      barrier.arrive_and_wait();
      for (int i = 0; i < calls_; ++i) call(part, static_cast<std::size_t>((repeat * calls_ + i) % kSets));
      barrier.arrive_and_wait();
    }
  });
  timing_thread.join();
  return median(std::move(times));
}

HostTable::HostTable(std::uint64_t bytes, std::uint64_t dim, std::uint32_t ids, int calls, int repeats)
    : dim_(dim), calls_(calls), repeats_(repeats), parts_(std::max(1U, std::thread::hardware_concurrency())) {
  const std::uint64_t rows = std::max<std::uint64_t>(bytes / (dim * sizeof(float)) / parts_.size(), 1);
  const std::uint64_t share = std::clamp<std::uint64_t>(ids / parts_.size(), 1, rows);
  ids_per_call_ = share * parts_.size();
  for_each_part([&](Part& part) {
    std::mt19937_64 random(1 + static_cast<std::uint64_t>(&part - parts_.data()));
    part.values.resize(rows * dim_);
    part.out.resize(share * dim_);
    part.gradient.resize(share * dim_);
    for (std::uint64_t i = 0; i < part.gradient.size(); ++i) part.gradient[i] = gradient_of(i);
    for (int set = 0; set < kSets; ++set) {
      std::unordered_set<std::uint32_t> drawn;
      auto& numbers = part.rows.emplace_back();
      while (numbers.size() < share) {
        const auto row = static_cast<std::uint32_t>(random() % rows);
        if (drawn.insert(row).second) numbers.push_back(row);
      }
      part.ids.emplace_back(numbers.begin(), numbers.end());
    }
  });
}

HostRate HostTable::lookup() {
  const auto call = [this](Part& part, std::size_t set, int ahead) {
    gather(part.values.data(), part.ids[set], dim_, ahead, part.out.data());
  };
  for_each_part([&](Part& part) {
    for (std::uint64_t i = 0; i < part.values.size(); ++i) part.values[i] = value_of(i);
    call(part, 0, kPrefetchDistances[0]);
    for (std::uint64_t i = 0; i < part.out.size(); ++i) {
      const std::uint64_t row = part.rows[0][i / dim_];
      part.correct = part.correct && part.out[i] == value_of(row * dim_ + i % dim_);
    }
  });
  double best = std::numeric_limits<double>::infinity();
  for (const int ahead : kPrefetchDistances) {
    best = std::min(best, seconds_per_call([&](Part& part, std::size_t set) { call(part, set, ahead); }));
  }
  return {static_cast<double>(ids_per_call_) / best, std::ranges::all_of(parts_, &Part::correct)};
}

HostRate HostTable::push(const Optimizer& optimizer) {
  const bool adam = optimizer.kind == OptimizerKind::adam;
  const auto call = [&](Part& part, std::size_t set) {
    ps::Update<float> update;
    update.values = part.values.data();
    update.slot0 = adam ? part.slots[0].data() : nullptr;
    update.slot1 = adam ? part.slots[1].data() : nullptr;
    update.width = dim_;
    update.rows = part.rows[set].data();
    update.count = part.rows[set].size();
    update.gradient = part.gradient.data();
    ps::apply(optimizer, update);
  };
  for_each_part([&](Part& part) {
    for (std::uint64_t i = 0; i < part.values.size(); ++i) part.values[i] = value_of(i);
    for (auto& slot : part.slots) slot.assign(adam ? part.values.size() : 0, 0);
    call(part, 0);
    for (std::uint64_t i = 0; i < part.gradient.size(); ++i) {
      const std::uint64_t at = part.rows[0][i / dim_] * dim_ + i % dim_;
      const auto gradient = static_cast<double>(part.gradient[i]);
      part.correct = part.correct && is_after_first_step(optimizer, gradient, value_of(at), part.values[at]);
    }
  });
  const double seconds = seconds_per_call(call);
  return {static_cast<double>(ids_per_call_) / seconds, std::ranges::all_of(parts_, &Part::correct)};
}

}  // namespace capstan::perf
