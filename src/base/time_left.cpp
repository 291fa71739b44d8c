// time_left.cpp -- asks squeue, and falls back to Slurm's environment variables.
#include "base/time_left.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/command_output.hpp"

namespace capstan {
namespace {

using std::chrono::seconds;

constexpr seconds kSqueueTimeout{10};

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool complete = error == std::errc() && end == text.data() + text.size();
  return complete && value >= 0 && value < 100'000'000'000 ? std::optional(value) : std::nullopt;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TimeLeft parse_time_left(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text == "UNLIMITED") return {.known = true};
  std::int64_t days = 0;
  int min_parts = 2;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto read = number(text.substr(0, dash));
    if (!read) return {};
    days = *read;
    min_parts = 3;
    text.remove_prefix(dash + 1);
  }
  std::int64_t total = 0;
  int parts = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++parts) {
    const auto end = std::min(text.find(':', begin), text.size());
    const auto read = number(text.substr(begin, end - begin));
    if (!read || parts == 3) return {};
    total = 60 * total + *read;
    begin = end + 1;
  }
  if (parts < min_parts) return {};
  return {.known = true, .left = seconds(days * 86400 + total)};
}

TimeLeft slurm_time_left() {
  const std::string job = variable("SLURM_JOB_ID");
  if (job.empty()) return {.known = true};
  if (const auto answer = command_output({"squeue", "-h", "-j", job, "-o", "%L"}, kSqueueTimeout);
      answer && answer->exit_code == 0) {
    // squeue prints a line for each component of a heterogeneous job.
    const TimeLeft left = parse_time_left(answer->text.substr(0, answer->text.find('\n')));
    if (left.known) return left;
  }
  const auto end = number(variable("SLURM_JOB_END_TIME"));
  if (!end || *end == 0) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto left = seconds(*end) - std::chrono::floor<seconds>(now);
  return {.known = true, .left = std::max(left, seconds(0)), .source = "SLURM_JOB_END_TIME"};
}

}  // namespace capstan
