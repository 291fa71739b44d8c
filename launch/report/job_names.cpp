// job_names.cpp -- finds names by the texts around them; cluster.json is JSON.
#include "launch/report/job_names.hpp"

#include <cctype>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/json.hpp"

namespace capstan::launch::report {
namespace {

/// A record of metrics.jsonl has some hundred bytes for each rank.
constexpr std::size_t kMaxMetricsBytes = 64 << 20;
constexpr std::size_t kLeftOutLogBytes = 4 << 10;  // some lines, each with the host of the rank

bool is_digit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

/// Adds the name between `mark` and `end` wherever a digit precedes `mark`.
void add_hosts_between(Anonymizer& anonymizer, std::string_view text, std::string_view mark, char end) {
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
    if (at == 0 || !is_digit(text[at - 1])) continue;
    const std::string_view rest = text.substr(at + mark.size());
    const std::size_t length = rest.find_first_not_of(kNameCharacters);
    if (length != rest.npos && rest[length] == end) anonymizer.add(Kind::host, rest.substr(0, length));
  }
}

}  // namespace

void add_names_of_job(Anonymizer& anonymizer, const std::filesystem::path& run_dir, const JobFiles& files) {
  std::ifstream file(run_dir / "cluster.json");
  const nlohmann::json json = try_parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  if (json.is_object()) {
    for (const auto& [name, kind] : {std::pair("token", Kind::secret), std::pair("host", Kind::host)}) {
      if (json.contains(name) && json[name].is_string()) anonymizer.add(kind, json[name].get<std::string>());
    }
  }
  for (const char* name : {"metrics.jsonl", "metrics.prom"})
    add_hosts_in_metrics(anonymizer, read_end(run_dir / name, kMaxMetricsBytes).text);
  for (const JobFile& one : files.files) add_hosts_in_log(anonymizer, one.end.text);
  for (const std::filesystem::path& log : files.left_out_logs)
    add_hosts_in_log(anonymizer, read_end(log, kLeftOutLogBytes).text);
}

void add_hosts_in_metrics(Anonymizer& anonymizer, std::string_view metrics) {
  for (std::size_t at = metrics.find("host"); at != metrics.npos; at = metrics.find("host", at + 1)) {
    const std::string_view rest = metrics.substr(at + 4);
    const std::size_t begin = rest.find_first_not_of("\": =");
    if (begin == 0 || begin == rest.npos || rest[begin - 1] != '"') continue;
    anonymizer.add(Kind::host, rest.substr(begin, rest.find('"', begin) - begin));
  }
}

void add_hosts_in_log(Anonymizer& anonymizer, std::string_view log) {
  add_hosts_between(anonymizer, log, "@", ']');
  add_hosts_between(anonymizer, log, " on ", ')');
}

}  // namespace capstan::launch::report
