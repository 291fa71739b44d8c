// training_output.hpp -- output that all training programs share: the cluster line and the summary file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "capstan/cluster.hpp"

namespace capstan::launch {

/// Throws Error(permission_denied) if `path` cannot be written; "" means no summary. Checks only on rank 0,
/// the coordinator. Call it before the cluster forms, so that a bad path is found before the training.
void check_summary_path(const std::string& path);
/// Throws Error(permission_denied). "" means no summary.
void write_summary(const std::string& path, const nlohmann::json& summary);

nlohmann::json cluster_json(const Cluster& cluster);
/// Prints on standard error how to watch the job and how to stop it with a checkpoint.
void announce(const Cluster& cluster, const Settings& settings);

/// Prints how long the training took, and its rate without evaluations and checkpoints, on standard output.
void print_rate(std::string_view unit, double count, double seconds, double evaluation_seconds,
                double checkpoint_seconds);

/// Reports on standard error that the training saved `checkpoint` and stopped early. Returns Exit::requeue.
int requeue(const std::string& why, const std::string& checkpoint);

}  // namespace capstan::launch
