// error.cpp -- names of the error codes, and the text of a failed C call.
#include "capstan/error.hpp"

#include <array>

namespace capstan {

std::string_view to_string(Code code) noexcept {
  static constexpr std::array<std::string_view, 16> kNames{
      "ok",        "cancelled",      "unknown",           "invalid_argument",   "deadline_exceeded",
      "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
      "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
      "data_loss"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Error call_failed(std::string_view call, std::string_view reason, Where where, Code code) {
  std::string_view file = where.file;
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  std::string text;
  text.append(call).append(": ").append(reason).append(" (").append(file).append(":");
  text.append(std::to_string(where.line)).append(")");
  return Error(code, text, where);
}

}  // namespace capstan
