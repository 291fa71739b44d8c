// top_table.hpp -- a job's figures as a table for a terminal.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace capstan::launch {

struct Screen {
  std::size_t width = 0;  // in characters; 0: any
  std::size_t lines = 0;
};

/// `figures`: a record of docs/metrics.md with `each_worker`. Lines that do not fit are left out, and said to
/// be.
std::string top_table(const nlohmann::json& figures, const Screen& screen);

/// They are of a period of a few seconds, and not of all the time since the job's start.
bool has_fresh_rates(const nlohmann::json& figures);

}  // namespace capstan::launch
