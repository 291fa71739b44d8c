// pair_measure.cpp -- measures latency and bandwidth, and probes for emulated RMA.
#include <algorithm>
#include <cstring>
#include <vector>

#include "capstan/error.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/pair_messages.hpp"
#include "launch/doctor/pair_tester.hpp"

namespace capstan::launch::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using transport::deadline_in;

constexpr int kPings = 500;
constexpr int kWarmUp = 50;
constexpr std::chrono::milliseconds kMaxDuration{200};  // maximum duration of each measurement
constexpr std::chrono::milliseconds kProbeTimeout{200};
constexpr std::uint32_t kMaxInFlight = 32;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Runs `copy`, which moves kMeasuredBytes, until the time limit. Returns the best rate in bytes per second,
/// since disturbances only slow a run down.
template <class Copy>
double best_rate(Copy&& copy) {
  const auto start = Clock::now();
  double best = 0;
  do {
    const auto before = Clock::now();
    copy();
    best = std::max(best, static_cast<double>(kMeasuredBytes) / std::max(seconds_since(before), 1e-9));
  } while (Clock::now() - start < kMaxDuration);
  return best;
}

/// Sends pieces, at most kMaxInFlight at a time. The destructor waits until none is in flight, so the buffers
/// may be freed afterwards.
class PieceSender {
 public:
  PieceSender(transport::Fabric& fabric, transport::Peer& to) : fabric_(fabric), to_(to) {}
  ~PieceSender() {
    wait_for_fewer_than(1);
    if (in_flight_ == 0) return;
    to_.disconnect();
    wait_for_fewer_than(1);
  }
  PieceSender(const PieceSender&) = delete;
  PieceSender& operator=(const PieceSender&) = delete;

  void send(transport::Bytes piece) {
    wait_for_fewer_than(kMaxInFlight);
    to_.send_in_place(kPiece, {}, piece, in_flight_);
  }

 private:
  void wait_for_fewer_than(std::uint32_t most) {
    transport::progress_until(fabric_, deadline_in(kPairTimeout), [&] { return in_flight_ < most; });
  }

  transport::Fabric& fabric_;
  transport::Peer& to_;
  std::uint32_t in_flight_ = 0;
};

/// The first device of a connection: "eth0" for "tcp/eth0+tcp/lo".
std::string device_of(const std::string& transports) {
  const std::string first = transports.substr(0, transports.find('+'));
  return first.substr(first.find('/') + 1);
}

}  // namespace

void PairTester::ping(transport::Peer& to) {
  const int& answers = answers_[to.rank()];
  const int before = answers;
  to.send(kPing, {});
  transport::progress_until(*fabric_, deadline_in(kPairTimeout),
                            [&] { return answers != before || to.failed(); });
  if (answers == before) throw Error(Code::unavailable, to.name() + " no longer answers");
}

double PairTester::latency_to(transport::Peer& to) {
  for (int i = 0; i < kWarmUp; ++i) ping(to);
  std::vector<double> halves;
  const auto start = Clock::now();
  while (halves.size() < kPings && (halves.empty() || Clock::now() - start < kMaxDuration)) {
    const auto before = Clock::now();
    ping(to);
    halves.push_back(seconds_since(before) / 2);
  }
  const auto middle = halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2);
  std::nth_element(halves.begin(), middle, halves.end());
  return *middle;
}

double PairTester::bandwidth_to(transport::Peer& to, transport::Window& window, bool hardware_rma) {
  std::vector<std::byte> buffer(kMeasuredBytes);
  if (window.mapped() != nullptr) {
    std::memcpy(buffer.data(), window.mapped(), kMeasuredBytes);  // faults the pages in
    return best_rate([&] { std::memcpy(buffer.data(), window.mapped(), kMeasuredBytes); });
  }
  if (hardware_rma) return best_rate([&] { window.get(0, buffer, deadline_in(kPairTimeout)); });
  PieceSender sending(*fabric_, to);
  return best_rate([&] {
    for (std::size_t at = 0; at < kMeasuredBytes; at += transport::kPieceBytes)
      sending.send({buffer.data() + at, std::min(transport::kPieceBytes, kMeasuredBytes - at)});
    ping(to);  // completes after all pieces
  });
}

Speed PairTester::measure(int rank) {
  Speed speed{try_link(rank)};
  if (!speed.link.failure.empty()) return speed;
  try {
    transport::Peer& there = peer(rank);
    const auto window = window_onto(rank, transport::WindowPath::automatic);
    speed.latency = latency_to(there);
    speed.bandwidth = bandwidth_to(there, *window, speed.link.hardware_rma);
    const std::vector<std::byte> from(kMeasuredBytes, std::byte{1});
    std::vector<std::byte> to(kMeasuredBytes);
    speed.memcpy_rate = best_rate([&] { std::memcpy(to.data(), from.data(), kMeasuredBytes); });
    speed.link_gigabits = link_rate("/sys", device_of(speed.link.transports)).value_or(0);
  } catch (const Error& error) {
    speed.link.failure = error.what();
  }
  return speed;
}

void PairTester::run_rma_probe(int rank, RmaProbe& probe) {
  const auto start = Clock::now();
  try {
    const auto window = window_onto(rank, transport::WindowPath::rma);
    const std::uint64_t word = 1;
    window->put(2048, {reinterpret_cast<const std::byte*>(&word), sizeof word});
    window->flush(deadline_in(kProbeTimeout));
    probe.completed = true;
  } catch (const Error& error) {
    if (error.code() != Code::deadline_exceeded) probe.link.failure = error.what();
  }
  probe.milliseconds = seconds_since(start) * 1e3;
}

}  // namespace capstan::launch::doctor
