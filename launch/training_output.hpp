// training_output.hpp -- what all training programs say alike: the cluster, and the file of results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "capstan/cluster.hpp"

namespace capstan::launch {

/// Throws Error(permission_denied) for a summary that cannot be written: found before training, not after
/// it, and before the other ranks wait, since rank 0 is the coordinator. "" is none.
void check_summary_path(const std::string& path);
/// Throws the same. "" is none.
void write_summary(const std::string& path, const nlohmann::json& summary);

nlohmann::json cluster_json(const Cluster& cluster);
/// One line on standard error.
void announce(const Cluster& cluster);

/// The exit code of a training that has saved and ended before its time, after a line on standard error.
int requeue(const std::string& why, const std::string& checkpoint);

}  // namespace capstan::launch
