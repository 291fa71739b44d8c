// error.hpp -- what goes wrong, in one class with a code that a caller can switch on.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "capstan/detail/export.hpp"

namespace capstan {

/// The canonical codes of the field (gRPC, TensorFlow), with their numbers.
/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
/// docs/errors.md says for each what state the caller is in and what to do next.
enum class Code : std::uint8_t {
  ok = 0,
  cancelled = 1,            // somebody, or an earlier error, called it off; schedule it again
  unknown = 2,              // user code threw something that is not an Error
  invalid_argument = 3,     // the value is wrong whatever the state of the system
  deadline_exceeded = 4,    // nothing moved before the deadline; the message says for whom it waited
  not_found = 5,            // no such file, variable or setting
  already_exists = 6,       // a second one of the same name
  permission_denied = 7,    // the file system said no
  resource_exhausted = 8,   // out of memory, disk or ring space
  failed_precondition = 9,  // right call, wrong moment or wrong role
  aborted = 10,             // lost with the worker that held it
  out_of_range = 11,        // end of a dataset, or an index past the end
  unimplemented = 12,       // this build cannot do it
  internal = 13,            // a library call failed, or a promise of ours is broken
  unavailable = 14,         // a rank is gone; the message names it and its host
  data_loss = 15,           // a file is damaged or is not what it says it is
};

/// "invalid_argument", "unavailable", ...
CAPSTAN_API std::string_view to_string(Code code) noexcept;

/// Where a check failed. Used as a default argument, so the caller's line is recorded.
struct Where {
  const char* file = "";
  int line = 0;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// The one exception of Capstan. `what()` is a sentence for the user: what was found, what was expected, what
/// to do. `where()` is the line of Capstan that noticed.
class CAPSTAN_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, Where where = Where::here())
      : std::runtime_error(message), code_(code), where_(where) {}

  Code code() const noexcept { return code_; }
  Where where() const noexcept { return where_; }

 private:
  Code code_;
  Where where_;
};

/// A C library refused: "ucp_init: No such device (context.cpp:41)". Code::internal unless said otherwise.
CAPSTAN_API Error call_failed(std::string_view call, std::string_view reason, Where where = Where::here(),
                              Code code = Code::internal);

}  // namespace capstan
