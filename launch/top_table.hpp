// top_table.hpp -- formats the metrics of a job as a table for a terminal of 80 columns.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace capstan::launch {

struct Screen {
  std::size_t width = 80;  // in characters; the table needs no more than 80
  std::size_t lines = 0;   // 0: unlimited
};

/// Progress of a training, from its number of epochs and the scalar "epoch" of the metrics.
class EpochProgress {
 public:
  /// `epochs`: 0 if unknown. `resumed`: the job began with an unknown epoch, so that the time left is known
  /// only after two observed epochs.
  explicit EpochProgress(int epochs = 0, bool resumed = false) : epochs_(epochs), resumed_(resumed) {}

  /// "42 % done, 1:43 min left"; "" if the number of epochs or the epoch is unknown.
  std::string text(const nlohmann::json& metrics);

 private:
  struct Sample {
    double epoch;
    double elapsed;
  };
  int epochs_;
  bool resumed_;
  std::optional<Sample> first_;  // the base of the time left
};

/// `metrics`: a record of docs/metrics.md with `each_worker`. `progress`: the text of an EpochProgress. Lines
/// that do not fit on `screen` are replaced by a line with their number.
std::string top_table(const nlohmann::json& metrics, const Screen& screen, const std::string& progress = "");

/// Returns true if the rates cover the last few seconds rather than the time since the start of the job.
bool has_fresh_rates(const nlohmann::json& metrics);

}  // namespace capstan::launch
