// time_left.cpp -- SLURM_JOB_END_TIME, else squeue.
#include "launch/doctor/time_left.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "launch/doctor/time_limit.hpp"

namespace capstan::launch::doctor {
namespace {

using std::chrono::seconds;

constexpr seconds kPatience{10};
/// Below it a run hardly starts, saves and ends.
constexpr seconds kLittle{600};

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<seconds> parse_time_left(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' ')) rest.remove_suffix(1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest == "UNLIMITED") return seconds::max();
  std::int64_t total = 0;
  const std::size_t dash = rest.find('-');
  if (dash != std::string_view::npos) {
    const auto days = whole_number(rest.substr(0, dash));
    if (!days) return std::nullopt;
    total = *days * 24;
    rest = rest.substr(dash + 1);
  }
  int fields = 0;
  for (bool last = false; !last; ++fields) {
    const std::size_t colon = rest.find(':');
    last = colon == std::string_view::npos;
    const auto number = whole_number(rest.substr(0, colon));
    if (!number) return std::nullopt;
    // The days count as hours so far, which the first of three fields are.
    total = fields == 0 ? total + *number : total * 60 + *number;
    if (!last) rest = rest.substr(colon + 1);
  }
  const bool has_days = dash != std::string_view::npos;
  if (fields < 2 || fields > 3 || (has_days && fields != 3)) return std::nullopt;
  return seconds(total);
}

Finding judge_time_left(const std::string& job, std::optional<seconds> left, const std::string& source) {
  if (!left) return skip(fmt::format("job {}: {} does not say how much time is left", job, source));
  if (*left == seconds::max()) return pass(fmt::format("job {} has no time limit ({})", job, source));
  const auto minutes = left->count() / 60;
  const std::string seen =
      fmt::format("job {} has {} h {:02} min left ({})", job, minutes / 60, minutes % 60, source);
  if (*left >= kLittle) return pass(seen);
  return warn(seen, "ask for more (--time), and save on a signal before the end: #SBATCH --signal=USR1@120");
}

Finding check_time_left(const Request&) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr || *job == '\0') return skip("not a job of Slurm (no SLURM_JOB_ID)");
  if (const char* end = std::getenv("SLURM_JOB_END_TIME"); end != nullptr && whole_number(end)) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto left = seconds(*whole_number(end)) - std::chrono::duration_cast<seconds>(now);
    return judge_time_left(job, std::max(left, seconds(0)), "SLURM_JOB_END_TIME");
  }
  const ProgramEnd end = run_program({"squeue", "-h", "-j", job, "-o", "%L"}, {}, kPatience);
  if (end.timed_out) return skip(fmt::format("squeue has not answered within {} s", kPatience.count()));
  if (end.exit_code != 0) return skip(fmt::format("squeue ended with exit code {}", end.exit_code));
  return judge_time_left(job, parse_time_left(end.output), "squeue");
}

}  // namespace capstan::launch::doctor
