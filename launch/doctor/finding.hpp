// finding.hpp -- what a check says: a verdict, what was seen, how to mend it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capstan::launch::doctor {

/// In the order of their weight. `pass`: nothing to do. `skip`: cannot be told here. `warn`: a run works,
/// slower or with less reserve than it could. `fail`: a run would fail, hang or be wrong.
enum class Verdict : std::uint8_t { pass, skip, warn, fail };
std::string_view to_string(Verdict verdict) noexcept;  ///< "PASS"

/// Travels from the rank to rank 0.
struct Finding {
  std::string check = {};  ///< its name; filled in by whoever runs the check
  Verdict verdict = Verdict::pass;
  std::string seen = {};   ///< one line; of `skip` the reason
  std::string mend = {};   ///< one line; empty for `pass` and `skip`
  std::string alike = {};  ///< findings with the same are told as one; empty: those with the same `seen`
};

Finding pass(std::string seen);
Finding skip(std::string reason);
Finding warn(std::string seen, std::string mend);
Finding fail(std::string seen, std::string mend);

/// The heavier of two, the texts put together.
Finding both(Finding one, const Finding& other);

/// "64 KiB", "7.8 GiB"; "unlimited" for the largest number there is.
std::string bytes_text(std::uint64_t bytes);

}  // namespace capstan::launch::doctor
