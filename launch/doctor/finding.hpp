// finding.hpp -- the result of a check: verdict, observation and remedy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan::launch::doctor {

/// In order of severity. `pass`: no action needed. `skip`: not applicable here. `warn`: a run works, but
/// slower or closer to a limit. `fail`: a run would fail, hang or be incorrect.
enum class Verdict : std::uint8_t { pass, skip, warn, fail };
std::string_view to_string(Verdict verdict) noexcept;  ///< "PASS"

/// Serialized and sent to rank 0.
struct Finding {
  std::string check = {};  ///< name of the check; set by run_check()
  Verdict verdict = Verdict::pass;
  std::string observed = {};   ///< one line: the observation; for `skip` the reason
  std::string fix = {};        ///< one line: the remedy; empty for `pass` and `skip`
  std::string group_key = {};  ///< findings with equal keys share a line; "": `observed` is the key
};

Finding pass(std::string observed);
Finding skip(std::string reason);
Finding warn(std::string observed, std::string fix);
Finding fail(std::string observed, std::string fix);

/// The more severe verdict, with the texts of both joined by "; ".
Finding combine(Finding one, const Finding& other);

/// "64 KiB", "7.8 GiB"; "unlimited" for the maximum of uint64_t.
std::string bytes_text(std::uint64_t bytes);

}  // namespace capstan::launch::doctor
