// log.hpp -- a rank's log: spdlog with the rank, its role and its host at the start of each line.
//
// Standard error gets lines from `info` up on the coordinator and from `warn` up on other ranks;
// CAPSTAN_LOG_LEVEL changes the level on all ranks. With --run-dir each rank also has a file
// (docs/metrics.md).
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <string>

namespace capstan::log {

/// Sets the tag of the calling thread, for example "coordinator" or "ps 1". Ranks that are threads of one
/// process have different tags.
void set_rank_tag(std::string tag);
const std::string& rank_tag();

/// Sets the level of standard error: trace, debug, info, warn, error or off. Throws Error on any other word.
void set_level(const std::string& level);

/// Also appends lines to `file`, from `info` up or from the level of standard error if that is lower. The
/// lines carry `rank`. One file at a time. Logs a warning if the file cannot be written.
void also_to(const std::filesystem::path& file, int rank);

enum class Level { debug, info, warn, error };

/// Logs one line. Does nothing below the log level, or when memory runs out. Thread-safe. Not a template:
/// spdlog's own templates would compile all of fmt in every source that logs.
void write(Level level, fmt::string_view format, fmt::format_args values) noexcept;

template <class... T>
void debug(fmt::format_string<T...> format, const T&... values) {
  write(Level::debug, format, fmt::make_format_args(values...));
}
template <class... T>
void info(fmt::format_string<T...> format, const T&... values) {
  write(Level::info, format, fmt::make_format_args(values...));
}
template <class... T>
void warn(fmt::format_string<T...> format, const T&... values) {
  write(Level::warn, format, fmt::make_format_args(values...));
}
template <class... T>
void error(fmt::format_string<T...> format, const T&... values) {
  write(Level::error, format, fmt::make_format_args(values...));
}

}  // namespace capstan::log
