// request_members.hpp -- members of a JSON request, with errors that name them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::train {

// All throw Error(invalid_argument), which has the name of the member, what was found and what was expected.

/// Rejects a request that is no object, or has a member that is not in `known`.
void check_members(const nlohmann::json& request, std::span<const std::string_view> known);
std::string text_member(const nlohmann::json& request, const std::string& name);
std::int64_t integer_member(const nlohmann::json& request, const std::string& name);
/// The member "count": from 1 to `maximum`, or 10 if it is missing. Throws Error(resource_exhausted) if it is
/// larger.
std::size_t count_member(const nlohmann::json& request, std::size_t maximum);

/// Lists also throw Error(resource_exhausted) if they have more than `maximum` elements.
std::vector<std::string> texts_member(const nlohmann::json& request, const std::string& name,
                                      std::size_t maximum);
std::vector<std::int64_t> integers_member(const nlohmann::json& request, const std::string& name,
                                          std::size_t maximum);
/// A list of any elements.
const nlohmann::json& list_member(const nlohmann::json& request, const std::string& name,
                                  std::size_t maximum);

}  // namespace capstan::train
