// split_keeper.hpp -- the splits of each epoch that are pending, in flight and done.
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

/// Used by the thread that created the strategy. A position names splits by their location in the epoch's
/// order: the done ones are then mostly the first ones, and their list is short.
class SplitKeeper final : public strategy::CheckpointedState {
 public:
  /// `cuts` are the splits of an epoch, in the order of the data; `data` is what they were cut from, for
  /// comparing positions. Throws Error(invalid_argument).
  SplitKeeper(std::shared_ptr<Coordinator> coordinator, std::vector<DataSplit> cuts, std::string data,
              const SplitOptions& options);

  bool done();
  std::int64_t epoch();
  std::int64_t splits_done(std::int64_t epoch);
  std::int64_t count() const noexcept { return static_cast<std::int64_t>(cuts_.size()); }
  std::vector<DataSplit> in_order(std::int64_t epoch) const;
  /// The next ones to do, of one epoch.
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
    std::size_t first_to_do = 0;  // none is before it
  };
  struct InFlight {
    std::int64_t epoch;
    std::size_t location;
    std::shared_ptr<const Result> result;
  };
  struct Position {
    std::int64_t first_epoch = 0;                           // all before are done
    std::map<std::int64_t, std::vector<std::size_t>> done;  // places
  };

  std::vector<std::size_t> order_of(std::int64_t epoch) const;
  Epoch& opened(std::int64_t epoch);
  void look() const;
  void close_epochs() const;
  Position parsed(const std::string& position) const;

  std::shared_ptr<Coordinator> coordinator_;
  std::vector<DataSplit> cuts_;
  std::string data_;
  SplitOptions options_;
  // What look() finds out is no change that a caller could see.
  mutable std::map<std::int64_t, Epoch> epochs_;  // those that have begun and are not done
  mutable std::int64_t first_epoch_ = 0;          // all before are done
  mutable std::vector<InFlight> in_flight_;
  bool holds_ = false;
};

}  // namespace capstan::coordinator
