// connections.cpp -- a hub, in the role of a ps, to which ranks connect over UCX one after the other.
//
// All endpoints are in this process and one thread progresses them, so a time includes the work of both
// sides. Connections stay open: a value at N connections is the mean over those added since the previous
// size.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/bench/timing.hpp"
#include "perf/scale/process_memory.hpp"
#include "perf/scale/scale.hpp"
#include "transport/bytes.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint16_t kQuestion = 1;
constexpr std::uint16_t kAnswer = 2;
constexpr int kHubRank = 0;
constexpr int kPolls = 1000;  // per sample
constexpr std::chrono::seconds kTimeout{60};

std::uint64_t answer_to(std::uint64_t question) { return question * 3 + 1; }

std::uint64_t number_in(const transport::Message& message) {
  std::uint64_t number = 0;
  if (message.payload.size() == sizeof number) std::memcpy(&number, message.payload.data(), sizeof number);
  return number;
}

/// A rank that connects to the hub.
struct Spoke {
  std::unique_ptr<transport::UcxFabric> fabric = std::make_unique<transport::UcxFabric>();
  transport::Peer* hub = nullptr;
  std::uint64_t answer = 0;
};

/// Answers each question; connects back to its sender, as a ps does.
class Hub {
 public:
  Hub() {
    fabric_.set_rank(kHubRank);
    fabric_.on_message(
        kQuestion, [this](const transport::Message& m) { questions_.emplace_back(m.from, number_in(m)); });
  }
  ~Hub() {
    // Disconnects without waiting for the other endpoints, which are no longer progressed.
    for (auto& spoke : spokes_) {
      if (spoke->hub != nullptr) spoke->hub->disconnect();
    }
    for (transport::Peer* peer : peers_) {
      if (peer != nullptr) peer->disconnect();
    }
  }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::uint64_t size() const { return spokes_.size(); }
  transport::Fabric& fabric() { return fabric_; }

  /// Adds a rank that has opened UCX and is not connected yet.
  void add() {
    Spoke& spoke = *spokes_.emplace_back(std::make_unique<Spoke>());
    spoke.fabric->set_rank(static_cast<int>(spokes_.size()));
    spoke.fabric->on_message(kAnswer, [&spoke](const transport::Message& m) { spoke.answer = number_in(m); });
    addresses_.push_back(spoke.fabric->address());
    peers_.push_back(nullptr);
  }
  void ask(std::uint64_t number) {
    Spoke& spoke = *spokes_[number];
    if (spoke.hub == nullptr) spoke.hub = &spoke.fabric->connect(kHubRank, "hub", address_);
    spoke.hub->send(kQuestion, {}, transport::as_bytes(number));
  }
  /// Returns true if spokes [first, last) receive the correct answers before the timeout.
  bool answered(std::uint64_t first, std::uint64_t last) {
    const auto deadline = std::chrono::steady_clock::now() + kTimeout;
    while (first < last) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      for (std::uint64_t i = first; i < last; ++i) spokes_[i]->fabric->progress();
      progress();
      for (; first < last && spokes_[first]->answer != 0; ++first) {
        if (spokes_[first]->answer != answer_to(first)) return false;
      }
    }
    return true;
  }
  /// Returns the size of the hub's address.
  std::size_t address_bytes() const { return address_.size(); }

 private:
  void progress() {
    fabric_.progress();
    for (const auto& [rank, number] : std::exchange(questions_, {})) {
      transport::Peer*& peer = peers_.at(static_cast<std::size_t>(rank) - 1);
      if (peer == nullptr) {
        peer = &fabric_.connect(rank, fmt::format("spoke {}", rank),
                                addresses_.at(static_cast<std::size_t>(rank) - 1));
      }
      const std::uint64_t answer = answer_to(number);
      peer->send(kAnswer, {}, transport::as_bytes(answer));
    }
  }

  transport::UcxFabric fabric_;
  std::vector<std::byte> address_ = fabric_.address();
  std::vector<std::unique_ptr<Spoke>> spokes_;
  std::vector<std::vector<std::byte>> addresses_;
  std::vector<transport::Peer*> peers_;  // peers of the hub; null until the first question
  std::vector<std::pair<int, std::uint64_t>> questions_;
};

/// Returns the resident anonymous and shared memory of this process, in bytes.
double resident_bytes() {
  const ProcessMemory memory = memory_of(getpid()).value_or(ProcessMemory{});
  return static_cast<double>(memory.anonymous + memory.shared);
}

/// Measurements of the connections added between two sizes.
struct Step {
  std::uint64_t size = 0;
  bool verified = true;
  std::vector<double> open;     // seconds
  std::vector<double> connect;  // seconds
  std::vector<double> polls;    // seconds of kPolls
  double fabric_bytes = 0;      // per fabric
  double connection_bytes = 0;
  double connection_files = 0;
};

Step grow(Hub& hub, std::uint64_t size, const Options& o) {
  Step step;
  step.size = size;
  const std::uint64_t before = hub.size();
  const auto added = static_cast<double>(size - before);
  const double empty = resident_bytes();
  while (hub.size() < size) step.open.push_back(seconds_of([&] { hub.add(); }));
  const double opened = resident_bytes();
  const auto files = static_cast<double>(open_files(getpid()));
  for (std::uint64_t number = before; number < size; ++number) {
    step.connect.push_back(seconds_of([&] {
      hub.ask(number);
      step.verified = step.verified && hub.answered(number, number + 1);
    }));
  }
  step.fabric_bytes = (opened - empty) / added;
  step.connection_bytes = (resident_bytes() - opened) / added;
  step.connection_files = (static_cast<double>(open_files(getpid())) - files) / added;
  for (int sample = -o.warmup; sample < o.iters * o.repeat; ++sample) {
    const double seconds = seconds_of([&] {
      for (int poll = 0; poll < kPolls; ++poll) hub.fabric().progress();
    });
    if (sample >= 0) step.polls.push_back(seconds);
  }
  return step;
}

/// Measures the seconds from the first connection request to the last answer, if all ranks connect at once.
Timings measure_storm(std::uint64_t ranks, const Options& o) {
  Timings timings;
  timings.verified = true;
  for (int repeat = 0; repeat < o.repeat; ++repeat) {
    Hub hub;
    while (hub.size() < ranks) hub.add();
    timings.measured.push_back(seconds_of([&] {
      for (std::uint64_t number = 0; number < ranks; ++number) hub.ask(number);
      timings.verified = hub.answered(0, ranks) && timings.verified;
    }));
  }
  return timings;
}

class Reporter {
 public:
  explicit Reporter(Report& report) : report_(report) {}

  void times(const std::string& group, const Step& step, const char* unit, double scale,
             const std::vector<double>& seconds) {
    report_.add(time_result(result(group, step, unit), scale, seconds));
  }
  void amount(const std::string& group, const Step& step, const char* unit, double value) {
    Result made = result(group, step, unit);
    made.less_is_better = true;
    made.median = made.p99 = value;
    report_.add(made);
  }

 private:
  static Result result(const std::string& group, const Step& step, const char* unit) {
    Result made{fmt::format("{} n={}", group, step.size), group, step.size, "connections", unit};
    made.verified = step.verified;
    return made;
  }
  Report& report_;
};

}  // namespace

void measure_connections(const ScaleOptions& scale, const Options& options, Report& report) {
  std::vector<Step> steps;
  double address_bytes = 0;
  {
    Hub hub;
    address_bytes = static_cast<double>(hub.address_bytes());
    for (const std::uint64_t size : scale.connections) {
      if (size > hub.size()) steps.push_back(grow(hub, size, options));
    }
  }
  Reporter reporter(report);
  for (const Step& s : steps) reporter.times("open UCX", s, "ms", 1e3, s.open);
  for (const Step& s : steps) reporter.times("connect and be answered", s, "us", 1e6, s.connect);
  for (const Step& s : steps) {
    Timings storm = measure_storm(s.size, options);
    Step all = s;
    all.verified = s.verified && storm.verified;
    reporter.times("all connect at once and are answered", all, "ms", 1e3, storm.measured);
  }
  for (const Step& s : steps) reporter.times("a poll of the hub", s, "ns", 1e9 / kPolls, s.polls);
  for (const Step& s : steps) reporter.amount("memory of a rank's UCX", s, "KiB", s.fabric_bytes / 1024);
  for (const Step& s : steps) {
    reporter.amount("memory of a rank's first connection, both ends", s, "KiB", s.connection_bytes / 1024);
  }
  for (const Step& s : steps) {
    reporter.amount("files of a rank's first connection, both ends", s, "files", s.connection_files);
  }
  reporter.amount("address of a rank's UCX", steps.back(), "bytes", address_bytes);
}

}  // namespace capstan::perf
