// api.cpp -- see api.hpp.
#include "launch/serve/api.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "launch/serve/lookup.hpp"

namespace capstan::launch::serve {
namespace {

using nlohmann::json;

constexpr std::size_t kScoreDepth = 16;  // of the JSON of a request

int status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::out_of_range:
    case Code::failed_precondition:
      return 400;
    case Code::not_found:
      return 404;
    case Code::resource_exhausted:
      return 413;
    default:
      return 500;
  }
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

Answer error_answer(int status, const std::string& message) {
  return {.status = status, .body = dump({{"error", message}})};
}

Answer answer_of(const std::function<Answer()>& work) {
  try {
    return work();
  } catch (const Error& error) {
    return error_answer(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return error_answer(503, "out of memory, expected a smaller request");
  } catch (const std::exception& error) {
    return error_answer(500, error.what());
  }
}

Answer describe_model(const ServedModel& served) {
  json variables = json::object();
  for (const std::string& name : served.model->variables()) {
    variables[name] = {{"shape", served.model->shape(name)},
                       {"dtype", std::string(to_string(served.model->dtype(name)))},
                       {"table", served.model->is_table(name)}};
  }
  return {.body = dump({{"source", served.source},
                        {"step", served.model->step()},
                        {"variables", std::move(variables)},
                        {"scores", served.scorer ? served.scorer->describe() : json()}})};
}

Answer look_up(const ServedModel& served, const Limits& limits, const std::string& body, bool binary_request,
               bool binary_answer, const std::string& variable) {
  Lookup lookup = binary_request ? parse_binary_lookup(variable, body, limits.elements)
                                 : parse_lookup(body, limits.elements);
  if (!lookup.names.empty()) {
    if (!served.scorer) {
      throw Error(
          Code::invalid_argument,
          fmt::format("\"names\": the rows have no names, expected \"ids\": {}", served.why_no_scorer));
    }
    lookup.ids = served.scorer->rows_of(lookup.variable, lookup.names);
  }
  FoundRows found = find_rows(*served.model, lookup.variable, lookup.ids);
  Answer answer{.headers = {{"X-Capstan-Step", std::to_string(served.model->step())}}};
  if (!binary_answer) {
    answer.body = to_json(lookup.variable, found);
    return answer;
  }
  answer.type = "application/octet-stream";
  answer.headers.emplace_back("X-Capstan-Shape", fmt::format("{}", fmt::join(found.shape, ",")));
  answer.headers.emplace_back("X-Capstan-Dtype", to_string(found.dtype));
  answer.body = std::move(found.bytes);
  return answer;
}

Answer score(const ServedModel& served, const Limits& limits, const std::string& body) {
  if (!served.scorer) {
    throw Error(Code::failed_precondition, fmt::format("this model has no scores: {}", served.why_no_scorer));
  }
  const json request = parse_json(body, "the body", Code::invalid_argument, kScoreDepth);
  json scores = served.scorer->score(request, limits.elements);
  scores["step"] = served.model->step();
  return {.body = dump(scores)};
}

}  // namespace capstan::launch::serve
