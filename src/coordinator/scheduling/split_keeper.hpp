// split_keeper.hpp -- tracks which splits of each epoch are pending, in flight and done.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capstan/detail/split_dataset.hpp"
#include "coordinator/coordinator.hpp"
#include "strategy/checkpointed_state.hpp"

namespace capstan::coordinator {

/// Used by the thread that created the strategy. A position identifies splits by their location in the
/// epoch's order. The splits that are done are then mostly the first ones, and their list is short.
class SplitKeeper final : public strategy::CheckpointedState {
 public:
  /// `cuts` are the splits of an epoch, in the order of the data. `data` describes the data that they divide;
  /// positions of other data are rejected. Throws Error(invalid_argument).
  SplitKeeper(std::shared_ptr<Coordinator> coordinator, std::vector<DataSplit> cuts, std::string data,
              const SplitOptions& options);

  bool done();
  std::int64_t epoch();
  std::int64_t splits_done(std::int64_t epoch);
  std::int64_t count() const noexcept { return static_cast<std::int64_t>(cuts_.size()); }
  std::vector<DataSplit> in_order(std::int64_t epoch) const;
  /// Returns up to `count` pending splits of one epoch.
  std::vector<DataSplit> next(std::int64_t count);
  std::shared_ptr<const Result> add(const DataSplit& split, std::uint32_t function,
                                    detail::PackedArguments arguments);

  void hold() override;
  void release() noexcept override;
  std::string position() const override;
  void check(const std::string& position) const override { (void)parsed(position); }
  void restore(const std::string& position) override;

 private:
  enum class State : std::uint8_t { to_do, in_flight, done };
  struct Epoch {
    std::vector<std::size_t> order;        // cuts, by location
    std::vector<std::size_t> location_of;  // by cut
    std::vector<State> states;             // by location
    std::int64_t to_do = 0;
    std::int64_t done = 0;
    std::size_t first_to_do = 0;  // no earlier location is pending
  };
  struct InFlight {
    std::int64_t epoch;
    std::size_t location;
    std::shared_ptr<const Result> result;
  };
  struct Position {
    std::int64_t first_epoch = 0;                           // all earlier epochs are done
    std::map<std::int64_t, std::vector<std::size_t>> done;  // locations that are done, by epoch
  };

  std::vector<std::size_t> order_of(std::int64_t epoch) const;
  Epoch& opened(std::int64_t epoch);
  void collect_finished() const;
  void close_epochs() const;
  Position parsed(const std::string& position) const;

  std::shared_ptr<Coordinator> coordinator_;
  std::vector<DataSplit> cuts_;
  std::string data_;
  SplitOptions options_;
  // Mutable, because const functions call collect_finished(), which updates them without a change that a
  // caller can see.
  mutable std::map<std::int64_t, Epoch> epochs_;  // epochs that have begun and are not done
  mutable std::int64_t first_epoch_ = 0;          // all earlier epochs are done
  mutable std::vector<InFlight> in_flight_;
  bool holds_ = false;
};

}  // namespace capstan::coordinator
