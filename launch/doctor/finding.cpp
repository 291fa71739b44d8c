// finding.cpp -- creates, combines and formats findings.
#include "launch/doctor/finding.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace capstan::launch::doctor {

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::pass:
      return "PASS";
    case Verdict::skip:
      return "SKIP";
    case Verdict::warn:
      return "WARN";
    case Verdict::fail:
      return "FAIL";
  }
  return "FAIL";
}

Finding pass(std::string observed) { return {.verdict = Verdict::pass, .observed = std::move(observed)}; }
Finding skip(std::string reason) { return {.verdict = Verdict::skip, .observed = std::move(reason)}; }
Finding warn(std::string observed, std::string fix) {
  return {.verdict = Verdict::warn, .observed = std::move(observed), .fix = std::move(fix)};
}
Finding fail(std::string observed, std::string fix) {
  return {.verdict = Verdict::fail, .observed = std::move(observed), .fix = std::move(fix)};
}

Finding combine(Finding one, const Finding& other) {
  const auto append = [](std::string& to, const std::string& more) {
    if (more.empty() || to == more) return;
    to.append(to.empty() ? "" : "; ").append(more);
  };
  if (other.verdict > one.verdict) one.verdict = other.verdict;
  append(one.observed, other.observed);
  append(one.fix, other.fix);
  append(one.group_key, other.group_key);
  return one;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return "unlimited";
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  const bool integral = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return integral ? fmt::format("{:.0f} {}", value, kUnits[unit])
                  : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace capstan::launch::doctor
