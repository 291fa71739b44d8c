// polling.cpp -- a ring reader with many rings, of which none or one has an entry.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/backoff.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/bench/timing.hpp"
#include "perf/scale/scale.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "ps/shard/store.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kWidth = 16;
constexpr std::uint64_t kEntryBytes =
    protocol::entry_bytes(protocol::PushKind::sparse, 1, kWidth * sizeof(float));
constexpr std::uint64_t kRingBytes = 16 * kEntryBytes;  // an entry never wraps
constexpr int kTurns = 2000;                            // per sample
constexpr int kPushes = 10;                             // samples of single pushes, per iteration of --iters
constexpr std::chrono::seconds kPollTimeout{10};        // neither side sleeps before it expires

std::atomic_ref<std::uint64_t> word(std::byte* at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

/// Board, store and ring reader of a ps, with an open ring for each of `ranks`, and the writer's side of each
/// ring. A push of rank r adds 1 to row r of the only shard.
class Rings {
 public:
  explicit Rings(std::uint64_t ranks)
      : fabric_(hub_.open()),
        layout_(ranks),
        board_(fabric_->allocate(layout_.bytes())),
        store_(*fabric_, std::uint64_t{1} << 20, 0),
        reader_(board_->memory().data(), ranks, store_.heap(), store_),
        locations_(ranks),
        tails_(ranks, 0) {
    protocol::CreateShard request;
    request.name = "rows";
    request.shape = {ranks, kWidth};
    request.rows = ranks;
    request.optimizer = optimizers::SGD{1.0};
    request.initializer = initializers::zeros();
    store_.create(request);
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      locations_[rank] = reader_.open(static_cast<int>(rank), kRingBytes);
    }
    // The writer uses a window, which the loop fabric opens on the same memory.
    writer_ = hub_.open();
    writer_->set_rank(1);
    transport::Peer& peer = writer_->connect(0, "ps 0", fabric_->address());
    for (const protocol::RingLocation& location : locations_) {
      if (location.region >= windows_.size()) windows_.resize(location.region + 1);
      auto& window = windows_[location.region];
      if (!window) window = peer.open_window(store_.heap().key(location.region), {});
    }
  }

  std::uint64_t ranks() const { return tails_.size(); }
  ps::RingReader& reader() { return reader_; }
  std::byte* tail_word(std::uint64_t rank) { return board_->memory().data() + layout_.tail(rank); }

  /// Writes one entry and publishes it.
  void push(std::uint64_t rank) {
    const protocol::RingLocation& location = locations_[rank];
    std::byte* at = windows_[location.region]->mapped() + location.offset + tails_[rank] % location.bytes;
    protocol::PushHeader header;
    header.kind = protocol::PushKind::sparse;
    header.rows = 1;
    header.bytes = kEntryBytes;
    std::memcpy(at, &header, sizeof header);
    const auto row = static_cast<std::uint32_t>(rank);
    std::memcpy(at + sizeof header, &row, sizeof row);
    std::memcpy(at + sizeof header + protocol::round_up(sizeof row), gradient_.data(),
                kWidth * sizeof(float));
    tails_[rank] += kEntryBytes;
    word(tail_word(rank)).store(tails_[rank], std::memory_order_release);
  }
  bool applied(std::uint64_t rank) {
    return word(board_->memory().data() + layout_.applied(rank)).load(std::memory_order_acquire) ==
           tails_[rank];
  }
  /// Returns true if every push was applied exactly once, to its own row.
  bool correct() {
    const auto view = store_.view(0, 0);
    for (std::uint64_t rank = 0; rank < ranks(); ++rank) {
      for (std::uint64_t column = 0; column < kWidth; ++column) {
        float value = 0;
        std::memcpy(&value, view.values + (rank * kWidth + column) * sizeof value, sizeof value);
        if (value != static_cast<float>(tails_[rank] / kEntryBytes)) return false;
      }
    }
    return true;
  }

 private:
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_;
  protocol::BoardLayout layout_;
  std::unique_ptr<transport::Region> board_;
  ps::Store store_;
  ps::RingReader reader_;
  std::vector<protocol::RingLocation> locations_;
  std::vector<std::uint64_t> tails_;
  std::vector<float> gradient_ = std::vector<float>(kWidth, -1);
  std::unique_ptr<transport::Fabric> writer_;
  std::vector<std::unique_ptr<transport::Window>> windows_;
};

/// Returns true if one call of apply_some() applies a push of every rank, and the next call finds nothing.
bool verify(Rings& rings) {
  for (std::uint64_t rank = 0; rank < rings.ranks(); ++rank) rings.push(rank);
  const bool some = rings.reader().apply_some();
  const bool more = rings.reader().apply_some();
  return some && !more && rings.correct();
}

/// measured: polls of all rings by the reader; bound: loads of each ring's tail.
void measure_turns(Rings& rings, const Options& o, Timings& timings) {
  bool found = false;
  std::uint64_t sum = 0;
  take_turns(
      o.warmup, o.iters, NoBarrier(), true, [] {},
      [&] {
        for (int turn = 0; turn < kTurns; ++turn) found |= rings.reader().apply_some();
      },
      [&] {
        for (int turn = 0; turn < kTurns; ++turn) {
          for (std::uint64_t rank = 0; rank < rings.ranks(); ++rank) {
            sum += word(rings.tail_word(rank)).load(std::memory_order_acquire);
          }
        }
      },
      timings);
  timings.verified = timings.verified && !found && sum != 0;
}

/// Measures the seconds from before the write of an entry until the reader, polling on another thread, has
/// applied it.
void measure_pushes(Rings& rings, const Options& o, Timings& timings) {
  std::jthread reader([&](const std::stop_token& stop) {
    Backoff backoff(kPollTimeout, kPollTimeout);
    while (!stop.stop_requested()) {
      if (rings.reader().apply_some()) {
        backoff.reset();
      } else {
        backoff.pause();
      }
    }
  });
  std::uint64_t rank = rings.ranks() - 1;
  for (int sample = -o.warmup; sample < o.iters * kPushes; ++sample) {
    Backoff backoff(kPollTimeout, kPollTimeout);
    const double seconds = seconds_of([&] {
      rings.push(rank);
      while (!rings.applied(rank) && backoff.pause()) {
      }
    });
    if (!rings.applied(rank)) {
      timings.verified = false;
      return;
    }
    if (sample >= 0) timings.measured.push_back(seconds);
    rank = (rank + 7) % rings.ranks();  // another position in the order, another cache line
  }
}

}  // namespace

void measure_polling(const ScaleOptions& scale, const Options& options, Report& report) {
  struct Case {
    std::unique_ptr<Rings> rings;
    Timings turns;
    Timings pushes;
  };
  std::vector<Case> cases;
  for (const std::uint64_t ranks : scale.rings) {
    auto& c = cases.emplace_back();
    c.rings = std::make_unique<Rings>(ranks);
    c.turns.verified = c.pushes.verified = verify(*c.rings);
  }
  for (int repeat = 0; repeat < options.repeat; ++repeat) {
    for (Case& c : cases) {
      measure_turns(*c.rings, options, c.turns);
      measure_pushes(*c.rings, options, c.pushes);
    }
  }
  for (Case& c : cases) {
    const std::string group = "a poll of all rings, which are idle";
    Result result{fmt::format("{} rings={}", group, c.rings->ranks()), group, c.rings->ranks(), "rings",
                  "ns"};
    result.verified = c.turns.verified && c.rings->correct();
    result = time_result(std::move(result), 1e9 / kTurns, c.turns.measured);
    result.bound = 1e9 / kTurns * median(c.turns.bound);
    result.bound_name = "a load of each ring's tail";
    report.add(std::move(result));
  }
  for (Case& c : cases) {
    const std::string group = "a push into one of many rings until it is applied";
    Result result{fmt::format("{} rings={}", group, c.rings->ranks()), group, c.rings->ranks(), "rings",
                  "us"};
    result.verified = c.pushes.verified && c.rings->correct();
    report.add(time_result(std::move(result), 1e6, c.pushes.measured));
  }
}

}  // namespace capstan::perf
