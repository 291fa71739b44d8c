// log.hpp -- what a rank says: spdlog with the rank, its role and its host in front of every line.
//
// The coordinator logs from `info` up, everybody else from `warn` up; CAPSTAN_LOG_LEVEL changes it for all.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace capstan::log {

/// "coordinator", "ps 1", ... for the calling thread and those that it starts through `inherit()`. Ranks that
/// are threads of one process each have their own.
void set_rank_tag(std::string tag);
const std::string& rank_tag();

/// `level` is one of trace, debug, info, warn, error, off. Throws Error on any other word.
void set_level(const std::string& level);

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace capstan::log
