// polling.cpp -- a ring reader with many rings, of which none or one has something in it.
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
constexpr int kTurns = 2000;                            // a sample of turns
constexpr int kNotices = 10;                            // samples of single pushes, for each of --iters
constexpr std::chrono::seconds kPollTimeout{10};        // in which neither end sleeps

std::atomic_ref<std::uint64_t> word(std::byte* at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

/// A ps's board, store and ring reader, with an open ring for each of `ranks`, and the pushers' ends of them.
/// A push of rank r adds 1 to row r of the only shard.
class Rings {
 public:
  explicit Rings(std::uint64_t ranks)
      : fabric_(hub_.open()),
        layout_(ranks),
        board_(fabric_->allocate(layout_.bytes())),
        store_(*fabric_, std::uint64_t{1} << 20, 0),
        reader_(board_->memory().data(), ranks, store_.heap(), store_),
        places_(ranks),
        tails_(ranks, 0) {
    protocol::CreateShard request;
    request.name = "rows";
    request.shape = {ranks, kWidth};
    request.rows = ranks;
    request.optimizer = optimizers::SGD{1.0};
    request.initializer = initializers::zeros();
    store_.create(request);
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      places_[rank] = reader_.open(static_cast<int>(rank), kRingBytes);
    }
    // A pusher writes through a window, which the loop fabric opens onto the same memory.
    pusher_ = hub_.open();
    pusher_->set_rank(1);
    transport::Peer& peer = pusher_->connect(0, "ps 0", fabric_->address());
    for (const protocol::RingLocation& place : places_) {
      if (place.region >= windows_.size()) windows_.resize(place.region + 1);
      auto& window = windows_[place.region];
      if (!window) window = peer.open_window(store_.heap().key(place.region), {});
    }
  }

  std::uint64_t ranks() const { return tails_.size(); }
  ps::RingReader& reader() { return reader_; }
  std::byte* tail_word(std::uint64_t rank) { return board_->memory().data() + layout_.tail(rank); }

  /// Writes one entry and publishes it.
  void push(std::uint64_t rank) {
    const protocol::RingLocation& place = places_[rank];
    std::byte* at = windows_[place.region]->mapped() + place.offset + tails_[rank] % place.bytes;
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
  /// Every push so far has been applied, to its own row, once.
  bool right() {
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
  std::vector<protocol::RingLocation> places_;
  std::vector<std::uint64_t> tails_;
  std::vector<float> gradient_ = std::vector<float>(kWidth, -1);
  std::unique_ptr<transport::Fabric> pusher_;
  std::vector<std::unique_ptr<transport::Window>> windows_;
};

/// One push by every rank is applied, to the last ring as to the first, and then there is nothing more.
bool verify(Rings& rings) {
  for (std::uint64_t rank = 0; rank < rings.ranks(); ++rank) rings.push(rank);
  const bool some = rings.reader().apply_some();
  const bool more = rings.reader().apply_some();
  return some && !more && rings.right();
}

/// figure: turns of the reader; bound: loads of the same words.
void measure_turns(Rings& rings, const Options& o, Timings& timings) {
  bool found = false;
  std::uint64_t sum = 0;
  take_turns(
      o.warmup, o.iters, Alone(), true, [] {},
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

/// Seconds from before an entry is written until the reader, polling on another thread, has applied it.
void measure_notices(Rings& rings, const Options& o, Timings& timings) {
  std::jthread reader([&](const std::stop_token& over) {
    Backoff backoff(kPollTimeout, kPollTimeout);
    while (!over.stop_requested()) {
      if (rings.reader().apply_some()) {
        backoff.reset();
      } else {
        backoff.pause();
      }
    }
  });
  std::uint64_t rank = rings.ranks() - 1;
  for (int sample = -o.warmup; sample < o.iters * kNotices; ++sample) {
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
    if (sample >= 0) timings.figure.push_back(seconds);
    rank = (rank + 7) % rings.ranks();  // another place in the order, another cache line
  }
}

}  // namespace

void measure_polling(const ScaleOptions& scale, const Options& options, Report& report) {
  struct Case {
    std::unique_ptr<Rings> rings;
    Timings turns;
    Timings notices;
  };
  std::vector<Case> cases;
  for (const std::uint64_t ranks : scale.rings) {
    auto& c = cases.emplace_back();
    c.rings = std::make_unique<Rings>(ranks);
    c.turns.verified = c.notices.verified = verify(*c.rings);
  }
  for (int repeat = 0; repeat < options.repeat; ++repeat) {
    for (Case& c : cases) {
      measure_turns(*c.rings, options, c.turns);
      measure_notices(*c.rings, options, c.notices);
    }
  }
  for (Case& c : cases) {
    const std::string group = "a turn over idle rings";
    Result result{fmt::format("{} rings={}", group, c.rings->ranks()), group, c.rings->ranks(), "rings",
                  "ns"};
    result.verified = c.turns.verified && c.rings->right();
    result = time_result(std::move(result), 1e9 / kTurns, c.turns.figure);
    result.bound = 1e9 / kTurns * median(c.turns.bound);
    result.bound_name = "a load of each ring's tail";
    report.add(std::move(result));
  }
  for (Case& c : cases) {
    const std::string group = "a push into one of many rings until it is applied";
    Result result{fmt::format("{} rings={}", group, c.rings->ranks()), group, c.rings->ranks(), "rings",
                  "us"};
    result.verified = c.notices.verified && c.rings->right();
    report.add(time_result(std::move(result), 1e6, c.notices.figure));
  }
}

}  // namespace capstan::perf
