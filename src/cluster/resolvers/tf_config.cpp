// tf_config.cpp -- converts JSON to a TFConfig; TFConfigClusterResolver.
#include "cluster/resolvers/tf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "capstan/resolvers.hpp"

namespace capstan {
namespace cluster {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxShownBytes = 60;

Error bad(const std::string& place, const json& value, std::string_view expected) {
  std::string shown = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > kMaxShownBytes) shown = shown.substr(0, kMaxShownBytes) + "...";
  return Error(Code::invalid_argument, fmt::format("{} is {}; expected {}", place, shown, expected));
}

json parse(const std::string& text) {
  try {
    return parse_json(text, "TF_CONFIG", Code::invalid_argument);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}; expected such as "
                    R"({{"cluster": {{"worker": ["host:port"], "ps": ["host:port"]}}, "task": {{"type": )"
                    R"("worker", "index": 0}}}}, in single quotes where a shell sets it)",
                    error.what()));
  }
}

/// Returns null if there is no such key, or if its value is null.
const json& member(const json& object, const char* key) {
  static const json nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::optional<std::string> text_at(const json& object, const char* key) {
  const json& value = member(object, key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) throw bad(fmt::format("TF_CONFIG: {}", key), value, "text in quotes");
  return value.get<std::string>();
}

std::vector<std::string> addresses_of(const std::string& place, const json& tasks) {
  if (!tasks.is_array()) throw bad(place, tasks, R"(a list of addresses: ["host:port", ...])");
  std::vector<std::string> addresses;
  for (const json& address : tasks) {
    if (!address.is_string() || address.get_ref<const std::string&>().empty()) {
      throw bad(fmt::format("{}[{}]", place, addresses.size()), address, R"(an address: "host:port")");
    }
    addresses.push_back(address.get<std::string>());
  }
  return addresses;
}

/// The coordinator is TensorFlow's chief.
std::string job_named(const std::string& name) { return name == "coordinator" ? "chief" : name; }

ClusterSpec cluster_of(const json& cluster) {
  ClusterSpec spec;
  if (cluster.is_null()) return spec;
  if (!cluster.is_object()) {
    throw bad("TF_CONFIG: cluster", cluster, R"(jobs with their addresses: {"worker": ["host:port"], ...})");
  }
  for (const auto& [job, tasks] : cluster.items()) {
    const auto [at, is_new] =
        spec.jobs.emplace(job_named(job), addresses_of("TF_CONFIG: cluster." + job, tasks));
    if (!is_new)
      throw bad("TF_CONFIG: cluster." + job, tasks, "one of chief and coordinator, which are the same");
  }
  return spec;
}

std::optional<std::string> task_type_of(const json& type) {
  if (type.is_null()) return std::nullopt;
  if (type.is_number_integer()) return type.dump();
  if (!type.is_string()) throw bad("TF_CONFIG: task.type", type, "a job's name in quotes");
  return job_named(type.get<std::string>());
}

std::optional<int> task_id_of(const json& index) {
  if (index.is_null()) return std::nullopt;
  const std::string text = index.is_string()           ? index.get<std::string>()
                           : index.is_number_integer() ? index.dump()
                                                       : "";
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw bad("TF_CONFIG: task.index", index, "a whole number from 0 on");
  }
  return number;
}

}  // namespace

TFConfig parse_tf_config(const std::string& text) {
  const json whole = parse(text);
  if (!whole.is_object()) throw bad("TF_CONFIG", whole, R"(an object: {"cluster": ..., "task": ...})");
  const json& task = member(whole, "task");
  if (!task.is_null() && !task.is_object()) {
    throw bad("TF_CONFIG: task", task, R"(an object: {"type": "worker", "index": 0})");
  }
  TFConfig config;
  config.cluster = cluster_of(member(whole, "cluster"));
  if (task.is_object()) {
    config.task_type = task_type_of(member(task, "type"));
    config.task_id = task_id_of(member(task, "index"));
  }
  config.rpc_layer = text_at(whole, "rpc_layer");
  config.session_master = text_at(whole, "session_master");
  return config;
}

}  // namespace cluster

namespace {

constexpr const char* kVariable = "TF_CONFIG";

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

cluster::TFConfig read(const Environment& process) {
  const std::string text = process.variable(kVariable).value_or("");
  return is_blank(text) ? cluster::TFConfig{} : cluster::parse_tf_config(text);
}

}  // namespace

TFConfigClusterResolver::TFConfigClusterResolver(TFConfigOptions options)
    : environment_(std::move(options.environment)),
      list_devices_(std::move(options.list_devices)),
      visible_gpus_(options.process.visible_gpus()) {
  cluster::TFConfig config = read(options.process);
  spec_ = std::move(config.cluster);
  session_master_ = std::move(config.session_master);
  set_own({options.task_type ? options.task_type : config.task_type,
           options.task_id ? options.task_id : config.task_id,
           options.rpc_layer ? options.rpc_layer : config.rpc_layer});
}

std::string TFConfigClusterResolver::find_master(const TaskOptions& asked) const {
  if (session_master_) return *session_master_;
  std::size_t tasks = 0;
  for (const auto& [job, addresses] : spec_.jobs) tasks += addresses.size();
  return tasks <= 1 ? "" : address_of(or_own(asked));
}

std::map<std::string, int> TFConfigClusterResolver::count_accelerators(const TaskOptions& asked) const {
  return count_devices(list_devices_, visible_gpus_, asked);
}

std::unique_ptr<ClusterResolver> default_cluster_resolver(const Environment& process) {
  if (is_blank(process.variable(kVariable).value_or(""))) return nullptr;
  TFConfigOptions options;
  options.process = process;
  return std::make_unique<TFConfigClusterResolver>(std::move(options));
}

}  // namespace capstan
