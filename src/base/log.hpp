// log.hpp -- what a rank says: spdlog with the rank, its role and its host in front of every line.
//
// On standard error the coordinator logs from `info` up, everybody else from `warn` up; CAPSTAN_LOG_LEVEL
// changes it for all. With --run-dir each rank has a file as well (docs/metrics.md).
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <string>

namespace capstan::log {

/// "coordinator", "ps 1", ... for the calling thread and those that it starts through `inherit()`. Ranks that
/// are threads of one process each have their own.
void set_rank_tag(std::string tag);
const std::string& rank_tag();

/// Of standard error. `level` is one of trace, debug, info, warn, error, off. Throws Error on any other word.
void set_level(const std::string& level);

/// Lines from `info` up, or from where standard error begins if that is lower, are appended to this file as
/// well; it says of all that they are `rank`'s. One file at a time. One that cannot be written is a warning.
void also_to(const std::filesystem::path& file, int rank);

enum class Level { debug, info, warn, error };

/// Logs one line. Does nothing below the log level, or when memory runs out. Thread-safe. Calls of spdlog's
/// own templates would compile all of fmt in every source that logs.
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
