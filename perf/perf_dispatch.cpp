// perf_dispatch.cpp -- the coordinator's time for a closure, by the number of workers.
//
// The workers are peers that record their closures; no message is sent. Cases:
//   1 result     each round of the coordinator serves the result of one worker, and closures are queued
//   64 results   the same with the results of 64 workers
//   one closure  all workers are idle; a closure is scheduled and sent, and its result is served
// Bound: the same with 64 workers.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "capstan/serialize.hpp"
#include "cluster/membership/membership.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "protocol/closure_messages.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::perf {
namespace {

constexpr int kFewWorkers = 64;
constexpr int kWorkers[] = {kFewWorkers, 512, 2048, 8192};
constexpr int kOneClosure = 0;  // in place of the number of results of a round
constexpr int kCallsPerSample = 200;
constexpr std::uint64_t kNanoseconds = 10'000'000;  // of a closure: a worker holds two of them

/// Records the closures that are sent to it.
class RecordingPeer final : public transport::Peer {
 public:
  RecordingPeer(int rank, int& last_receiver)
      : Peer(rank, fmt::format("worker {}", rank - 1)), last_receiver_(last_receiver) {}

  void send(std::uint16_t type, transport::Bytes header, transport::Bytes payload) override {
    if (type != transport::kRunClosures) return;
    Reader head(header);
    const auto batch = read<protocol::BatchHeader>(head);
    Reader in(payload);
    for (std::uint64_t i = 0; i < batch.closures; ++i) {
      const auto closure = read<protocol::RunHeader>(in);
      (void)in.view(closure.argument_bytes);
      waiting_.push_back(closure.id);
    }
    last_receiver_ = rank_;
  }
  void send_in_place(std::uint16_t type, transport::Bytes header, transport::Bytes payload,
                     std::uint32_t&) override {
    send(type, header, payload);
  }
  void disconnect() noexcept override { failed_ = true; }
  std::unique_ptr<transport::Window> open_window(const transport::RegionKey&,
                                                 transport::WindowPath) override {
    return nullptr;
  }
  std::string transports() const override { return "none"; }
  bool has_hardware_rma() const override { return false; }

  /// Returns the oldest closure. REQUIRES: it has one.
  std::uint64_t take() {
    const std::uint64_t id = waiting_.front();
    waiting_.pop_front();
    return id;
  }
  std::size_t closures() const { return waiting_.size(); }

 private:
  int& last_receiver_;  // rank
  std::deque<std::uint64_t> waiting_;
};

/// Nothing waits in this benchmark.
class NoWaiter final : public coordinator::Waiter {
 public:
  bool wait(const std::function<bool()>& done, std::optional<Deadline>) override { return done(); }
  void nudge() override {}
};

cluster::Table table_of(int workers) {
  cluster::Table table;
  table.members.push_back({0, Role::coordinator, 0, "host", 100, {}, {}});
  for (int i = 0; i < workers; ++i)
    table.members.push_back({i + 1, Role::worker, i, "host", 101 + i, {}, {}});
  return table;
}

Cluster embedded_cluster() {
  Settings settings;
  settings.set_from_flag("heap-slab-bytes", "1MiB");
  return Cluster(cluster::Runtime::embedded_cluster(settings));
}

/// A dispatcher with `workers` workers, which are idle or have two closures of a known duration each.
class Coordinator {
 public:
  Coordinator(int workers, bool idle, std::uint64_t seed)
      : idle_(idle), members_(table_of(workers)), random_(seed) {
    dispatcher_.reserve(workers);
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<RecordingPeer>(i + 1, last_receiver_));
      dispatcher_.add(*workers_.back());
    }
    schedule(2 * workers);
    dispatcher_.dispatch();
    for (int round = 0; round < 2; ++round) {
      if (!idle) schedule(workers);
      for (const auto& worker : workers_) report(*worker);
      dispatcher_.dispatch();
    }
  }

  void schedule(int closures) {
    for (int i = 0; i < closures; ++i) queue_.put(0, {});
    scheduled_ += closures;
  }
  /// Serves `results` results of distinct workers at random.
  void run(int results) {
    std::uniform_int_distribution<std::size_t> any(0, workers_.size() - 1);
    const std::size_t first = any(random_), step = workers_.size() / static_cast<std::size_t>(results);
    for (std::size_t i = 0; i < static_cast<std::size_t>(results); ++i)
      report(*workers_[(first + i * step) % workers_.size()]);
    dispatcher_.dispatch();
  }
  /// Serves a closure. REQUIRES: all workers are idle.
  void run_one() {
    schedule(1);
    dispatcher_.dispatch();
    report(*workers_[static_cast<std::size_t>(last_receiver_ - 1)]);
    dispatcher_.dispatch();
  }
  /// Returns true if all closures that were scheduled have ended or are at the workers, and each of these has
  /// as many as expected.
  bool correct() const {
    const std::size_t each = idle_ ? 0 : 2;
    const bool as_expected =
        std::all_of(workers_.begin(), workers_.end(), [&](auto& w) { return w->closures() == each; });
    return as_expected && queue_.empty() &&
           reported_ + static_cast<std::int64_t>(each * workers_.size()) == scheduled_;
  }

 private:
  void report(RecordingPeer& worker) {
    const protocol::DoneHeader done{worker.take(), 0, kNanoseconds, 0};
    dispatcher_.take_results({.type = transport::kClosuresDone,
                              .from = worker.rank(),
                              .header = {},
                              .payload = transport::as_bytes(done)});
    ++reported_;
  }

  ParameterServerStrategy strategy_{embedded_cluster()};
  bool idle_;
  int last_receiver_ = 0;  // rank
  std::vector<std::unique_ptr<RecordingPeer>> workers_;
  cluster::Membership members_;
  std::shared_ptr<NoWaiter> waiter_ = std::make_shared<NoWaiter>();
  coordinator::ClosureQueue queue_{0, waiter_, members_};
  coordinator::Dispatcher dispatcher_{strategy_.implementation(), members_, queue_, 0};
  std::mt19937_64 random_;
  std::int64_t scheduled_ = 0, reported_ = 0;
};

void measure_one(int results, int workers, const Options& options, std::optional<double>& few,
                 Report& report) {
  const bool one = results == kOneClosure;
  const std::string group =
      one ? "one closure" : fmt::format("{} result{}", results, results == 1 ? "" : "s");
  const std::string name = fmt::format("{}, {} workers", group, workers);
  if (!options.wants(name)) return;
  const int closures = kCallsPerSample * (one ? 1 : results);
  Coordinator coordinator(workers, one, options.seed);
  std::vector<double> seconds;
  for (int i = -options.warmup; i < options.iters * options.repeat; ++i) {
    if (!one) coordinator.schedule(closures);
    const double time = seconds_of([&] {
      for (int call = 0; call < kCallsPerSample; ++call) {
        if (one) {
          coordinator.run_one();
        } else {
          coordinator.run(results);
        }
      }
    });
    if (i >= 0) seconds.push_back(time);
  }
  Result result{name, group, static_cast<std::uint64_t>(workers), "workers", "us a closure"};
  result.verified = coordinator.correct();
  result = time_result(result, 1e6 / closures, seconds);
  if (workers == kFewWorkers) few = result.median;
  result.bound = few;
  result.bound_name = fmt::format("{} workers", kFewWorkers);
  report.add(result);
}

void measure_all(const Options& options, Report& report) {
  for (const int results : {1, 64, kOneClosure}) {
    std::optional<double> few;
    for (const int workers : kWorkers) measure_one(results, workers, options, few, report);
  }
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  return capstan::perf::run_here(argc, argv,
                                 "Measures the coordinator's time for a closure, by the number of workers.",
                                 &capstan::perf::measure_all);
}
