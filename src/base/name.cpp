// name.cpp -- the rule for names of objects.
#include "base/name.hpp"

#include <fmt/format.h>

#include <string>

#include "base/printable.hpp"
#include "capstan/error.hpp"

namespace capstan {
namespace {

/// Describes the first violation in `name`; empty if the name is valid.
std::string fault_of(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) return fmt::format("has {} bytes", name.size());
  for (std::size_t at = 0; at < name.size();) {
    const auto byte = static_cast<unsigned char>(name[at]);
    const std::size_t length = utf8_length(name.substr(at));
    if (length == 0) return fmt::format("has a byte that is not UTF-8 at position {}", at);
    if (byte < 0x20 || byte == 0x7f) return fmt::format("has a control character at position {}", at);
    at += length;
  }
  for (std::size_t from = 0; from <= name.size();) {
    const std::string_view component = name.substr(from, name.find('/', from) - from);
    if (component.empty()) return "has an empty component";
    if (component == "." || component == "..") return fmt::format("has the component \"{}\"", component);
    from += component.size() + 1;
  }
  return {};
}

}  // namespace

void check_name(std::string_view kind, std::string_view name) {
  const std::string fault = fault_of(name);
  if (fault.empty()) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("{} {}: the name {}, expected 1 to {} bytes of UTF-8 without control characters, "
                  "in components between '/' that are not empty, \".\" or \"..\"; choose another name",
                  kind, printable(name), fault, kMaxNameBytes));
}

}  // namespace capstan
