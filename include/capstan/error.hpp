// error.hpp -- Error, the exception class of Capstan, and its codes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "capstan/detail/export.hpp"

namespace capstan {

/// The canonical codes of gRPC and TensorFlow, with their numbers.
/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
/// docs/errors.md describes, for each, the caller's state and the next step.
enum class Code : std::uint8_t {
  ok = 0,
  cancelled = 1,            // cancelled by an earlier error or on request; schedule it again
  unknown = 2,              // user code threw an exception other than Error
  invalid_argument = 3,     // the value is wrong whatever the state of the system
  deadline_exceeded = 4,    // the call did not complete in time; the message names the ranks waited for
  not_found = 5,            // no such file, variable or setting
  already_exists = 6,       // the name is taken
  permission_denied = 7,    // the file system denied access
  resource_exhausted = 8,   // out of memory, disk or ring space
  failed_precondition = 9,  // valid call in the wrong state or role
  aborted = 10,             // the work was lost with its worker and did not run again
  out_of_range = 11,        // end of a dataset, or an index past the end
  unimplemented = 12,       // not supported by this build
  internal = 13,            // a library call failed, or an invariant of Capstan is violated
  unavailable = 14,         // a rank is dead or unreachable; the message names it and its host
  data_loss = 15,           // a file is damaged or not of the expected type
};

/// "invalid_argument", "unavailable", ...
CAPSTAN_API std::string_view to_string(Code code) noexcept;

/// Source location of a check. As a default argument, it records the caller's line.
struct Where {
  const char* file = "";
  int line = 0;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// The only exception that Capstan throws. `what()` states what was found, what was expected and what to do;
/// `where()` is the line of Capstan that detected the error.
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

/// The error of a failed C library call: "ucp_init: No such device (context.cpp:41)".
CAPSTAN_API Error call_failed(std::string_view call, std::string_view reason, Where where = Where::here(),
                              Code code = Code::internal);

}  // namespace capstan
