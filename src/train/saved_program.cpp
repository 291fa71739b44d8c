// saved_program.cpp -- see saved_program.hpp.
#include "train/saved_program.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/json.hpp"
#include "capstan/error.hpp"

namespace capstan::train {

std::string SavedProgram::property(const std::string& name) const {
  const auto found = identity.find(name);
  if (found != identity.end() && found->is_string()) return found->get<std::string>();
  throw Error(Code::failed_precondition,
              fmt::format("{}: `capstan {}` did not save {}, expected a checkpoint of this version", path,
                          program, name));
}

std::int64_t SavedProgram::number(const std::string& name) const {
  const std::string text = property(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0) return value;
  throw Error(Code::data_loss, fmt::format("{}: {} {}, expected a number", path, name, text));
}

std::string SavedProgram::description() const {
  return program.empty() ? "another program" : fmt::format("`capstan {}`", program);
}

SavedProgram read_saved_program(const SavedRows& saved) {
  SavedProgram found{.path = saved.path()};
  const nlohmann::json state = try_parse_json(saved.user_state());
  if (state.is_object() && state.contains("program") && state["program"].is_string()) {
    found.program = state["program"].get<std::string>();
    found.identity = state.value("identity", nlohmann::json::object());
  }
  return found;
}

SavedProgram read_saved_program(const SavedRows& saved, std::string_view expected) {
  SavedProgram found = read_saved_program(saved);
  if (found.program == expected) return found;
  throw Error(Code::failed_precondition, fmt::format("{} was saved by {}, expected `capstan {}`", found.path,
                                                     found.description(), expected));
}

}  // namespace capstan::train
