// request.hpp -- options of `capstan evaluate kge`, `capstan predict kge` and `capstan similar`.
#pragma once

#include <cstdint>
#include <string>

namespace capstan::launch::kge_model {

enum class Verb { none, evaluate, predict, similar };

struct Request {
  Verb verb = Verb::none;
  std::string checkpoint = {};  // a checkpoint, or a directory of checkpoints
  std::string data = {};        // evaluate
  std::string entity = {};      // predict: the head; similar: the entity
  std::string relation = {};    // predict
  std::int64_t count = 10;      // predict, similar
  bool json = false;
};

}  // namespace capstan::launch::kge_model
