// command_line.cpp -- options and help texts of the commands that use a trained knowledge graph.
#include "launch/kge/command_line.hpp"

#include <string>

namespace capstan::launch::kge_model {
namespace {

constexpr std::int64_t kMaxCount = 1'000'000;

CLI::App& add(CLI::App& parent, const std::string& name, const std::string& what, Verb verb,
              Request& request) {
  CLI::App& command = *parent.add_subcommand(name, what);
  command.add_flag("--json", request.json, "print JSON");
  command
      .add_option(
          "--checkpoint", request.checkpoint,
          "a checkpoint of `capstan train`, or a directory of checkpoints, of which the newest is used")
      ->required()
      ->type_name("DIR");
  command.parse_complete_callback([&request, verb] { request.verb = verb; });
  return command;
}

void add_count(CLI::App& command, Request& request) {
  command.add_option("--count", request.count, "number of names to print")
      ->default_str("10")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount))
      ->type_name("N");
}

}  // namespace

std::vector<CLI::App*> add_commands(CLI::App& app, Request& request) {
  CLI::App& evaluate = *app.add_subcommand("evaluate", "evaluate a checkpoint; needs no cluster");
  CLI::App& evaluate_kge =
      add(evaluate, "kge", "rank the test triples of a knowledge graph", Verb::evaluate, request);
  evaluate_kge
      .add_option("--data", request.data,
                  "\"wordnet\", or a directory with train.txt, valid.txt and test.txt")
      ->required()
      ->type_name("DIR");

  CLI::App& predict = *app.add_subcommand("predict", "predict by a checkpoint; needs no cluster");
  CLI::App& predict_kge =
      add(predict, "kge", "print the best tails of a head and a relation", Verb::predict, request);
  predict_kge.add_option("HEAD", request.entity, "name of the head")->required();
  predict_kge.add_option("RELATION", request.relation, "name of the relation")->required();
  add_count(predict_kge, request);

  CLI::App& similar =
      add(app, "similar",
          "print the entities or words of a checkpoint that are most similar to one; needs no cluster",
          Verb::similar, request);
  similar.add_option("NAME", request.entity, "name of the entity or word")->required();
  add_count(similar, request);
  return {&evaluate, &evaluate_kge, &predict, &predict_kge, &similar};
}

}  // namespace capstan::launch::kge_model
