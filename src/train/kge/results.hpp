// results.hpp -- the report of `capstan train kge` as text and JSON.
#pragma once

#include <string>

#include "train/evaluation.hpp"
#include "train/kge/program.hpp"

namespace capstan::kge {

/// MRR, Hits@1, Hits@3 and Hits@10 of all queries.
train::Evaluation evaluation_of(const Metrics& metrics);

/// Returns a line such as "whale.n.02 -- hypernym --> baleen_whale.n.01   right".
std::string to_string(const Prediction& prediction);
/// Describes how the triples of the report's predictions were selected.
std::string predictions_header(const Report& report);

train::Results results_of(const ProgramOptions& options, const Report& report);

}  // namespace capstan::kge
