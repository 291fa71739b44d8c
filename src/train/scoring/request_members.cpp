// request_members.cpp -- see request_members.hpp.
#include "train/scoring/request_members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/printable.hpp"
#include "capstan/error.hpp"

namespace capstan::train {
namespace {

constexpr std::size_t kDefaultCount = 10;

/// The start of a value's JSON, for an error message.
std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("a list of {} elements", value.size());
  if (value.is_object()) return "an object";
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const nlohmann::json& member(const nlohmann::json& request, const std::string& name,
                             std::string_view expected) {
  const auto found = request.find(name);
  if (found != request.end()) return *found;
  throw Error(Code::invalid_argument, fmt::format("\"{}\": there is none, expected {}", name, expected));
}

[[noreturn]] void reject(const std::string& name, const nlohmann::json& found, std::string_view expected) {
  throw Error(Code::invalid_argument,
              fmt::format("\"{}\": found {}, expected {}", name, shown(found), expected));
}

std::int64_t to_integer(const nlohmann::json& value, const std::string& name) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(number);
    }
  } else if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  reject(name, value, "an integer of 64 bits");
}

}  // namespace

void check_members(const nlohmann::json& request, std::span<const std::string_view> known) {
  if (!request.is_object()) {
    throw Error(Code::invalid_argument,
                fmt::format("the request is {}, expected a JSON object", shown(request)));
  }
  for (const auto& [name, value] : request.items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw Error(Code::invalid_argument, fmt::format("{}: there is no such member, expected one of {}",
                                                    printable(name), fmt::join(known, ", ")));
  }
}

std::string text_member(const nlohmann::json& request, const std::string& name) {
  const nlohmann::json& value = member(request, name, "a text");
  if (!value.is_string()) reject(name, value, "a text");
  return value.get<std::string>();
}

std::int64_t integer_member(const nlohmann::json& request, const std::string& name) {
  return to_integer(member(request, name, "an integer"), name);
}

std::size_t count_member(const nlohmann::json& request, std::size_t maximum) {
  if (!request.contains("count")) return std::min(kDefaultCount, maximum);
  const std::int64_t count = integer_member(request, "count");
  if (count < 1) reject("count", request.at("count"), fmt::format("1 to {}", maximum));
  if (static_cast<std::uint64_t>(count) <= maximum) return static_cast<std::size_t>(count);
  throw Error(Code::resource_exhausted, fmt::format("\"count\": found {}, expected 1 to {}", count, maximum));
}

const nlohmann::json& list_member(const nlohmann::json& request, const std::string& name,
                                  std::size_t maximum) {
  const nlohmann::json& value = member(request, name, "a list");
  if (!value.is_array()) reject(name, value, "a list");
  if (value.size() <= maximum) return value;
  throw Error(Code::resource_exhausted,
              fmt::format("\"{}\": found {} elements, expected at most {}", name, value.size(), maximum));
}

std::vector<std::string> texts_member(const nlohmann::json& request, const std::string& name,
                                      std::size_t maximum) {
  std::vector<std::string> texts;
  for (const nlohmann::json& element : list_member(request, name, maximum)) {
    if (!element.is_string()) reject(name, element, "a list of texts");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::vector<std::int64_t> integers_member(const nlohmann::json& request, const std::string& name,
                                          std::size_t maximum) {
  const nlohmann::json& list = list_member(request, name, maximum);
  std::vector<std::int64_t> integers;
  integers.reserve(list.size());
  for (const nlohmann::json& element : list) integers.push_back(to_integer(element, name));
  return integers;
}

}  // namespace capstan::train
