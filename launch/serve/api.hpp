// api.hpp -- answers of `capstan serve`, independent of HTTP connections: docs/serving.md.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch/serve/request.hpp"
#include "launch/serve/served_model.hpp"

namespace capstan::launch::serve {

struct Answer {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The status of an error, and {"error": message}.
Answer error_answer(int status, const std::string& message);
/// Runs `work`. An Error becomes the status of its code.
Answer answer_of(const std::function<Answer()>& work);

// The endpoints. All throw Error.

Answer describe_model(const ServedModel& served);
/// `variable`: of a binary request; `binary_request` and `binary_answer`: int64 ids and rows as bytes.
Answer look_up(const ServedModel& served, const Limits& limits, const std::string& body, bool binary_request,
               bool binary_answer, const std::string& variable);
Answer score(const ServedModel& served, const Limits& limits, const std::string& body);

}  // namespace capstan::launch::serve
