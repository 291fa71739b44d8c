// top_table.hpp -- formats the metrics of a job as a table for a terminal.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace capstan::launch {

struct Screen {
  std::size_t width = 0;  // in characters; 0: unlimited
  std::size_t lines = 0;  // 0: unlimited
};

/// `metrics`: a record of docs/metrics.md with `each_worker`. Lines that do not fit on `screen` are replaced
/// by a line with their number.
std::string top_table(const nlohmann::json& metrics, const Screen& screen);

/// Returns true if the rates cover the last few seconds rather than the time since the start of the job.
bool has_fresh_rates(const nlohmann::json& metrics);

}  // namespace capstan::launch
