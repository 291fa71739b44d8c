// doctor_section.cpp -- the list "hosts" has the hosts of all ranks.
#include "launch/report/doctor_section.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace capstan::launch::report {

std::string doctor_section(Anonymizer& anonymizer, const std::optional<CommandOutput>& output) {
  if (!output) return "left out: no result within the time limit\n";
  if (output->text.empty()) return fmt::format("left out: no output, exit code {}\n", output->exit_code);
  const nlohmann::json json = try_parse_json(output->text);
  if (!json.is_object() || !json.contains("hosts") || !json["hosts"].is_array()) {
    return fmt::format("left out: found {} bytes and exit code {}, expected a JSON object with \"hosts\"\n",
                       output->text.size(), output->exit_code);
  }
  for (const nlohmann::json& host : json["hosts"]) {
    if (host.is_string()) anonymizer.add(Kind::host, host.get<std::string>());
  }
  return output->text;
}

}  // namespace capstan::launch::report
