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

/// Ignores unknown keys; null means no value. task.type may be a number and task.index a string of digits, as
/// in TensorFlow. Throws Error(invalid_argument), whose message names the key in TF_CONFIG and the expected
/// value.
TFConfig parse_tf_config(const std::string& text);

}  // namespace capstan::cluster
