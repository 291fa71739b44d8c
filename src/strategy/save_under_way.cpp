// save_under_way.cpp -- collecting what the ps say.
#include "strategy/save_under_way.hpp"

#include <cstring>

#include "capstan/serialize.hpp"
#include "shard/protocol.hpp"

namespace capstan::strategy {

std::uint64_t SaveUnderWay::begin(int ps_count) {
  const std::lock_guard lock(mutex_);
  ps_count_ = ps_count;
  written_.clear();
  error_.reset();
  under_way_ = true;
  return ++number_;
}

bool SaveUnderWay::under_way() const {
  const std::lock_guard lock(mutex_);
  return under_way_;
}

void SaveUnderWay::take(const transport::Message& message) {
  shard::PartSaved saved;
  if (message.header.size() != sizeof saved) return;
  std::memcpy(&saved, message.header.data(), sizeof saved);
  const std::lock_guard lock(mutex_);
  if (saved.save != number_ || error_) return;
  if (saved.code != 0) {
    const auto* text = reinterpret_cast<const char*>(message.payload.data());
    error_.emplace(static_cast<Code>(saved.code), std::string(text, message.payload.size()));
    return;
  }
  try {
    written_[saved.ps] = from_bytes<std::vector<io::PartReport>>(message.payload);
  } catch (const Error& error) {
    error_ = error;
  }
}

void SaveUnderWay::lose(int ps, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (error_ || written_.contains(ps)) return;
  error_.emplace(Code::unavailable, name + " is gone; it was writing its part of a checkpoint");
}

void SaveUnderWay::give_up() {
  const std::lock_guard lock(mutex_);
  under_way_ = false;
  if (!error_) error_.emplace(Code::cancelled, "the save was given up");
}

bool SaveUnderWay::settled() const {
  const std::lock_guard lock(mutex_);
  return error_ || written_.size() == static_cast<std::size_t>(ps_count_);
}

std::vector<int> SaveUnderWay::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> missing;
  for (int ps = 0; ps < ps_count_; ++ps) {
    if (!written_.contains(ps)) missing.push_back(ps);
  }
  return missing;
}

std::vector<io::PartReport> SaveUnderWay::take_parts() {
  const std::lock_guard lock(mutex_);
  under_way_ = false;
  if (error_) throw *error_;
  std::vector<io::PartReport> parts;
  for (const auto& [ps, reports] : written_) parts.insert(parts.end(), reports.begin(), reports.end());
  return parts;
}

}  // namespace capstan::strategy
