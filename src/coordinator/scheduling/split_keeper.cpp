// split_keeper.cpp -- schedules splits, collects ended ones, and writes a position as JSON.
#include "coordinator/scheduling/split_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/json.hpp"

namespace capstan::coordinator {
namespace {

using Json = nlohmann::json;

Error bad_position(const std::string& why) {
  return Error(Code::invalid_argument, "not the position of a dataset of splits: " + why);
}

}  // namespace

SplitKeeper::SplitKeeper(std::shared_ptr<Coordinator> coordinator, std::vector<DataSplit> cuts,
                         std::string data, const SplitOptions& options)
    : coordinator_(std::move(coordinator)),
      cuts_(std::move(cuts)),
      data_(std::move(data)),
      options_(options) {
  if (options_.epochs < -1) {
    throw Error(Code::invalid_argument,
                fmt::format("create_split_dataset: epochs is {}; it must be -1 (without an end) or more",
                            options_.epochs));
  }
  if (options_.epochs == -1) options_.epochs = std::numeric_limits<std::int64_t>::max();
  if (cuts_.empty()) options_.epochs = 0;  // every epoch is empty
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    cuts_[i].index = static_cast<std::int64_t>(i);
    cuts_[i].count = count();
  }
}

/// Fisher-Yates shuffle with random numbers that are equal on all machines.
std::vector<std::size_t> SplitKeeper::order_of(std::int64_t epoch) const {
  std::vector<std::size_t> order(cuts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!options_.shuffle_seed) return order;
  const std::uint64_t key =
      data::mixed(*options_.shuffle_seed ^ data::mixed(static_cast<std::uint64_t>(epoch)));
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[data::random_below(i, key, i)]);
  return order;
}

SplitKeeper::Epoch& SplitKeeper::opened(std::int64_t number) {
  const auto [found, fresh] = epochs_.try_emplace(number);
  Epoch& epoch = found->second;
  if (fresh) {
    epoch.order = order_of(number);
    epoch.location_of.resize(epoch.order.size());
    for (std::size_t location = 0; location < epoch.order.size(); ++location)
      epoch.location_of[epoch.order[location]] = location;
    epoch.states.assign(epoch.order.size(), State::to_do);
    epoch.to_do = count();
  }
  return epoch;
}

/// Collects splits whose closures have ended.
void SplitKeeper::collect_finished() const {
  std::erase_if(in_flight_, [this](const InFlight& split) {
    if (split.result->pending()) return false;
    Epoch& epoch = epochs_.at(split.epoch);
    if (split.result->state == Result::State::ready) {
      epoch.states[split.location] = State::done;
      ++epoch.done;
    } else {
      epoch.states[split.location] = State::to_do;
      ++epoch.to_do;
      epoch.first_to_do = std::min(epoch.first_to_do, split.location);
    }
    return true;
  });
  close_epochs();
}

void SplitKeeper::close_epochs() const {
  while (!epochs_.empty() && epochs_.begin()->first == first_epoch_ &&
         epochs_.begin()->second.done == count()) {
    epochs_.erase(epochs_.begin());
    ++first_epoch_;
  }
}

bool SplitKeeper::done() {
  collect_finished();
  return first_epoch_ >= options_.epochs;
}

std::int64_t SplitKeeper::epoch() {
  collect_finished();
  std::int64_t number = first_epoch_;
  for (const auto& [opened, epoch] : epochs_) {
    if (opened == number && epoch.to_do == 0) ++number;
  }
  return std::min(number, options_.epochs);
}

std::int64_t SplitKeeper::splits_done(std::int64_t number) {
  collect_finished();
  if (number < first_epoch_) return count();
  const auto found = epochs_.find(number);
  return found == epochs_.end() ? 0 : found->second.done;
}

std::vector<DataSplit> SplitKeeper::in_order(std::int64_t epoch) const {
  std::vector<DataSplit> all;
  for (const std::size_t cut : order_of(epoch)) {
    all.push_back(cuts_[cut]);
    all.back().epoch = epoch;
  }
  return all;
}

std::vector<DataSplit> SplitKeeper::next(std::int64_t most) {
  std::vector<DataSplit> found;
  const std::int64_t number = epoch();
  if (number >= options_.epochs || most <= 0) return found;
  Epoch& epoch = opened(number);
  for (std::size_t location = epoch.first_to_do; location < epoch.states.size(); ++location) {
    if (epoch.states[location] != State::to_do) continue;
    if (found.empty()) epoch.first_to_do = location;
    found.push_back(cuts_[epoch.order[location]]);
    found.back().epoch = number;
    if (static_cast<std::int64_t>(found.size()) == most) break;
  }
  return found;
}

std::shared_ptr<const Result> SplitKeeper::add(const DataSplit& split, std::uint32_t function,
                                               detail::PackedArguments arguments) {
  auto extras = std::make_unique<ClosureExtras>();
  extras->uncancellable = true;  // if cancelled, its pushes so far would be applied again in the rerun
  auto result = coordinator_->schedule(function, std::move(arguments), std::move(extras));
  Epoch& epoch = epochs_.at(split.epoch);
  const std::size_t location = epoch.location_of[static_cast<std::size_t>(split.index)];
  epoch.states[location] = State::in_flight;
  --epoch.to_do;
  in_flight_.push_back({split.epoch, location, result});
  return result;
}

void SplitKeeper::hold() {
  collect_finished();
  if (in_flight_.empty()) return;
  coordinator_->queue().hold();
  holds_ = true;
}

void SplitKeeper::release() noexcept {
  if (std::exchange(holds_, false)) coordinator_->queue().release();
}

std::string SplitKeeper::position() const {
  collect_finished();
  Json done = Json::object();
  for (const auto& [number, epoch] : epochs_) {
    Json ranges = Json::array();
    for (std::size_t location = 0; location < epoch.states.size();) {
      if (epoch.states[location] != State::done) {
        ++location;
        continue;
      }
      std::size_t end = location;
      while (end < epoch.states.size() && epoch.states[end] == State::done) ++end;
      ranges.push_back({location, end});
      location = end;
    }
    if (!ranges.empty()) done[std::to_string(number)] = std::move(ranges);
  }
  const Json seed = options_.shuffle_seed ? Json(*options_.shuffle_seed) : Json();
  return Json{
      {"data", data_}, {"splits", count()}, {"shuffle_seed", seed}, {"epoch", first_epoch_}, {"done", done}}
      .dump();
}

SplitKeeper::Position SplitKeeper::parsed(const std::string& text) const try {
  const Json json =
      parse_json(text, fmt::format("the position of \"{}\"", options_.name), Code::invalid_argument);
  const Json seed = options_.shuffle_seed ? Json(*options_.shuffle_seed) : Json();
  const auto differs = [&](const char* what, const std::string& there, const std::string& here) {
    return Error(Code::failed_precondition,
                 fmt::format("the position of \"{}\" does not fit this program: its {} is {} there, {} here",
                             options_.name, what, there, here));
  };
  const auto data = json.at("data").get<std::string>();
  if (data != data_ || json.at("splits") != count()) throw differs("data", data, data_);
  if (json.at("shuffle_seed") != seed)
    throw differs("shuffle_seed", json.at("shuffle_seed").dump(), seed.dump());
  Position position;
  position.first_epoch = json.at("epoch").get<std::int64_t>();
  if (position.first_epoch < 0) throw bad_position("its epoch is below 0");
  for (const auto& [number, ranges] : json.at("done").items()) {
    const std::int64_t epoch = std::stoll(number);
    if (epoch < position.first_epoch) throw bad_position("epoch " + number + " precedes its first epoch");
    std::vector<std::size_t>& locations = position.done[epoch];
    for (const Json& range : ranges) {
      const auto begin = range.at(0).get<std::uint64_t>();
      const auto end = range.at(1).get<std::uint64_t>();
      const std::uint64_t least = locations.empty() ? 0 : locations.back() + 1;
      if (begin < least || end < begin || end > cuts_.size()) throw bad_position("a range is invalid");
      for (std::size_t location = begin; location < end; ++location) locations.push_back(location);
    }
  }
  return position;
} catch (const Json::exception& error) {
  throw bad_position(error.what());
} catch (const std::logic_error& error) {  // thrown by stoll
  throw bad_position(error.what());
}

void SplitKeeper::restore(const std::string& text) {
  collect_finished();
  if (!in_flight_.empty()) {
    throw Error(Code::failed_precondition,
                fmt::format("{} splits of \"{}\" are in flight: join() before restoring", in_flight_.size(),
                            options_.name));
  }
  const Position position = parsed(text);
  epochs_.clear();
  first_epoch_ = position.first_epoch;
  for (const auto& [number, locations] : position.done) {
    Epoch& epoch = opened(number);
    for (const std::size_t location : locations) epoch.states[location] = State::done;
    epoch.done = static_cast<std::int64_t>(locations.size());
    epoch.to_do = count() - epoch.done;
  }
  close_epochs();
}

}  // namespace capstan::coordinator
