// finding.hpp -- the result of a check: verdict, observation and remedy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan::launch::doctor {

/// In order of severity. `pass`: no action needed. `skip`: not applicable here. `warn`: a run works, but
/// slower or with less reserve. `fail`: a run would fail, hang or be incorrect.
enum class Verdict : std::uint8_t { pass, skip, warn, fail };
std::string_view to_string(Verdict verdict) noexcept;  ///< "PASS"

/// Serialized and sent to rank 0.
struct Finding {
  std::string check = {};  ///< name of the check; set by run_check()
  Verdict verdict = Verdict::pass;
  std::string seen = {};       ///< one line: the observation; for `skip` the reason
  std::string mend = {};       ///< one line: the remedy; empty for `pass` and `skip`
  std::string group_key = {};  ///< findings with equal keys share a line; "": `seen` is the key
};

Finding pass(std::string seen);
Finding skip(std::string reason);
Finding warn(std::string seen, std::string mend);
Finding fail(std::string seen, std::string mend);

/// The more severe verdict, with the texts of both joined by "; ".
Finding combine(Finding one, const Finding& other);

/// "64 KiB", "7.8 GiB"; "unlimited" for the maximum of uint64_t.
std::string bytes_text(std::uint64_t bytes);

}  // namespace capstan::launch::doctor
