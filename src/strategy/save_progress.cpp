// save_progress.cpp -- collects the reports of the ps.
#include "strategy/save_progress.hpp"

#include <algorithm>

#include "capstan/serialize.hpp"
#include "protocol/ps_messages.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::strategy {
namespace {

std::vector<io::PartReport> flatten(const std::map<int, std::vector<io::PartReport>>& of_ps) {
  std::vector<io::PartReport> parts;
  for (const auto& [ps, reports] : of_ps) parts.insert(parts.end(), reports.begin(), reports.end());
  return parts;
}

}  // namespace

SaveProgress::SaveProgress(transport::Fabric& control, std::uint64_t last)
    : number_(last), subscriptions_(control) {
  subscriptions_.on_message(transport::kShardsSaved,
                            [this](const transport::Message& message) { receive(message); });
}

std::uint64_t SaveProgress::begin(int ps_count) {
  const std::lock_guard lock(mutex_);
  ps_count_ = ps_count;
  written_.clear();
  fast_.clear();
  ended_.clear();
  error_.reset();
  in_progress_ = true;
  return ++number_;
}

bool SaveProgress::in_progress() const {
  const std::lock_guard lock(mutex_);
  return in_progress_;
}

void SaveProgress::receive(const transport::Message& message) {
  const auto header = transport::read_header<protocol::ShardsSaved>(message);
  if (!header) return;
  const protocol::ShardsSaved& saved = *header;
  const std::lock_guard lock(mutex_);
  if (saved.save != number_) return;
  if (saved.fast == 0) ended_.insert(saved.ps);
  if (error_ && saved.fast == 0) return;
  if (saved.code != 0) {
    const auto* text = reinterpret_cast<const char*>(message.payload.data());
    error_.emplace(static_cast<Code>(saved.code), std::string(text, message.payload.size()));
    return;
  }
  try {
    (saved.fast != 0 ? fast_ : written_)[saved.ps] = from_bytes<std::vector<io::PartReport>>(message.payload);
  } catch (const Error& error) {
    error_ = error;
  }
}

void SaveProgress::note_death(int ps, const std::string& name) {
  const std::lock_guard lock(mutex_);
  ended_.insert(ps);
  if (error_ || written_.contains(ps)) return;
  error_.emplace(Code::unavailable, name + " died while it wrote its part of a checkpoint");
}

void SaveProgress::give_up() {
  const std::lock_guard lock(mutex_);
  in_progress_ = false;
  if (!error_) error_.emplace(Code::cancelled, "the save was cancelled");
}

bool SaveProgress::settled() const {
  const std::lock_guard lock(mutex_);
  return error_ || written_.size() == static_cast<std::size_t>(ps_count_);
}

bool SaveProgress::fast_settled() const {
  const std::lock_guard lock(mutex_);
  return fast_.size() == static_cast<std::size_t>(ps_count_) ||
         std::any_of(ended_.begin(), ended_.end(), [this](int ps) { return !fast_.contains(ps); });
}

std::optional<std::vector<io::PartReport>> SaveProgress::fast_parts() const {
  const std::lock_guard lock(mutex_);
  const auto all = static_cast<std::size_t>(ps_count_);
  if (fast_.size() < all || written_.size() == all) return std::nullopt;
  return flatten(fast_);
}

std::vector<int> SaveProgress::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> missing;
  for (int ps = 0; ps < ps_count_; ++ps) {
    if (!written_.contains(ps)) missing.push_back(ps);
  }
  return missing;
}

std::vector<io::PartReport> SaveProgress::take_parts() {
  const std::lock_guard lock(mutex_);
  in_progress_ = false;
  if (error_) throw *error_;
  return flatten(written_);
}

}  // namespace capstan::strategy
