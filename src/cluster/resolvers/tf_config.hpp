// tf_config.hpp -- the text of TF_CONFIG.
#pragma once

#include <optional>
#include <string>

#include "capstan/resolvers.hpp"

namespace capstan::cluster {

struct TFConfig {
  ClusterSpec cluster;
  std::optional<std::string> task_type;
  std::optional<int> task_id;
  std::optional<std::string> rpc_layer;
  std::optional<std::string> session_master;
};

/// Keys that are not known are left alone, and null is the same as no value. A number is good as task.type,
/// and its digits in quotes as task.index, as in TensorFlow. Throws Error(invalid_argument) that names the
/// place in TF_CONFIG and what was expected there.
TFConfig parse_tf_config(const std::string& text);

}  // namespace capstan::cluster
