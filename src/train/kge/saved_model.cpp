// saved_model.cpp -- see saved_model.hpp.
#include "train/kge/saved_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/json.hpp"
#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "train/kge/kernels.hpp"
#include "train/kge/known_graph.hpp"
#include "train/kge/names.hpp"
#include "train/kge/ranking.hpp"

namespace capstan::kge {
namespace {

constexpr std::string_view kEntityRows = "entities";
constexpr std::string_view kRelationRows = "relations";
constexpr std::int64_t kRowsPerRead = 8192;
constexpr std::size_t kSuggestions = 5;
constexpr std::size_t kRankedTriples = 128;  // ranked together, in one pass over the rows of the entities

std::vector<std::string> read_names(const io::CheckpointReader& reader, std::string_view variable) {
  const auto& variables = reader.variables();
  if (std::ranges::find(variables, variable, &io::VariableInfo::name) == variables.end()) {
    throw Error(Code::failed_precondition,
                fmt::format("{} has no variable {}; it was saved by a version of `capstan train kge` that "
                            "does not save names",
                            reader.directory().string(), variable));
  }
  std::vector<std::int64_t> packed(reader.variable(variable).shape.at(0));
  reader.read_rows(variable, io::kValue, 0, packed.size(), packed.data());
  return unpack_names(packed);
}

template <class T>
void read_widened(const io::CheckpointReader& reader, std::string_view table, std::uint64_t first,
                  std::uint64_t count, std::vector<float>& out) {
  std::vector<T> narrow(out.size());
  reader.read_rows(table, io::kValue, first, count, narrow.data());
  std::ranges::transform(narrow, out.begin(), [](T value) { return static_cast<float>(value); });
}

std::int64_t index_of(std::string_view name, const std::vector<std::string>& names, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return found - names.begin();
  const std::vector<std::string> near = near_names(name, names, kSuggestions);
  throw Error(Code::not_found,
              fmt::format("{} \"{}\": there is none in the checkpoint, expected one of {} names{}", what,
                          name, names.size(),
                          near.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(near, ", "))));
}

/// The ids of a model for the indexes of a graph.
std::vector<std::int32_t> ids_of(const std::vector<std::string>& graph, const std::vector<std::string>& model,
                                 const char* what) {
  std::unordered_map<std::string_view, std::int32_t> id_of;
  for (std::size_t i = 0; i < model.size(); ++i) id_of.emplace(model[i], static_cast<std::int32_t>(i));
  std::vector<std::int32_t> ids;
  for (const std::string& name : graph) {
    const auto found = id_of.find(name);
    if (found == id_of.end()) {
      throw Error(Code::invalid_argument, fmt::format("--data: {} \"{}\" is not in the checkpoint, expected "
                                                      "the data that the model was trained on",
                                                      what, name));
    }
    ids.push_back(found->second);
  }
  return ids;
}

std::vector<float> gather(std::span<const float> rows, std::span<const std::int64_t> ids, std::size_t width) {
  std::vector<float> out;
  out.reserve(ids.size() * width);
  for (const std::int64_t id : ids) {
    const auto row = rows.subspan(static_cast<std::size_t>(id) * width, width);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

/// Calls work(i) for i below `count` on several threads; rethrows the first exception.
void for_each_on_threads(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(std::max(1, threads)));
  {
    std::vector<std::jthread> running;
    for (std::exception_ptr& error : errors) {
      running.emplace_back([&] {
        try {
          for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
          error = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

SavedModel::SavedModel(const std::filesystem::path& checkpoint) : reader_(checkpoint) {
  try {
    const auto state = try_parse_json(reader_.user_state());
    has_graph_ = state.at("program") == "train kge";
    if (!has_graph_ && state.at("program") != "train word2vec") throw Error(Code::failed_precondition, "");
    const auto& identity = state.at("identity");
    if (has_graph_) model_ = parse_model(identity.at("--model").get<std::string>());
    dim_ = std::stoi(identity.at("--dim").get<std::string>());
  } catch (const std::exception&) {
    throw Error(Code::failed_precondition,
                fmt::format("{} was not saved by `capstan train kge` or `capstan train word2vec`",
                            reader_.directory().string()));
  }
  entity_rows_ = has_graph_ ? kEntityRows : kWordRows;
  entities_ = read_names(reader_, has_graph_ ? kEntityNames : kWordNames);
  if (has_graph_) relations_ = read_names(reader_, kRelationNames);
  const auto check = [&](std::string_view table, std::uint64_t expected_rows, std::int64_t width) {
    const auto& shape = reader_.variable(table).shape;
    if (shape.size() == 2 && shape[0] == expected_rows && shape[1] == static_cast<std::uint64_t>(width))
      return;
    throw Error(Code::data_loss, fmt::format("{}: variable {} has the shape ({}), expected ({}, {})",
                                             reader_.directory().string(), table, fmt::join(shape, ", "),
                                             expected_rows, width));
  };
  check(entity_rows_, entities_.size(), dim_);
  if (has_graph_) check(kRelationRows, 2 * relations_.size(), relation_width(model_, dim_));
}

void SavedModel::require_graph() const {
  if (has_graph_) return;
  throw Error(Code::failed_precondition,
              fmt::format("{} has words and no relations, expected a checkpoint of `capstan train kge`",
                          reader_.directory().string()));
}

std::int64_t SavedModel::entity(std::string_view name) const { return index_of(name, entities_, "entity"); }

std::int64_t SavedModel::relation(std::string_view name) const {
  return index_of(name, relations_, "relation");
}

std::vector<float> SavedModel::rows(std::string_view table, std::int64_t first, std::int64_t count) const {
  const io::VariableInfo& variable = reader_.variable(table);
  std::vector<float> out(static_cast<std::size_t>(count) * variable.shape.at(1));
  const auto from = static_cast<std::uint64_t>(first), rows = static_cast<std::uint64_t>(count);
  if (variable.dtype == DType::float16) {
    read_widened<float16>(reader_, table, from, rows, out);
  } else if (variable.dtype == DType::bfloat16) {
    read_widened<bfloat16>(reader_, table, from, rows, out);
  } else {
    reader_.read_rows(table, io::kValue, from, rows, out.data());
  }
  return out;
}

std::vector<ScoredEntity> SavedModel::best_entities(
    std::size_t count, std::int64_t excluded, const std::function<double(const float* row)>& score) const {
  const auto total = static_cast<std::int64_t>(entities_.size());
  std::vector<std::pair<double, std::int64_t>> best;  // minus the score, so that ties keep the order of ids
  for (std::int64_t first = 0; first < total; first += kRowsPerRead) {
    const std::int64_t size = std::min(kRowsPerRead, total - first);
    const std::vector<float> block = rows(entity_rows_, first, size);
    for (std::int64_t i = 0; i < size; ++i) {
      if (first + i == excluded) continue;
      const double s = score(block.data() + i * dim_);
      best.emplace_back(std::isnan(s) ? std::numeric_limits<double>::infinity() : -s, first + i);
    }
    const std::size_t kept = std::min(count, best.size());
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept));
    best.resize(kept);
  }
  std::vector<ScoredEntity> out;
  for (const auto& [negated, id] : best) out.push_back({entities_[static_cast<std::size_t>(id)], -negated});
  return out;
}

std::vector<ScoredEntity> SavedModel::predict_tails(std::string_view head, std::string_view relation_name,
                                                    std::size_t count) const {
  require_graph();
  const std::vector<float> from = rows(kEntityRows, entity(head), 1);
  const std::vector<float> by = rows(kRelationRows, relation(relation_name), 1);
  const auto dim = static_cast<std::size_t>(dim_);
  std::vector<float> query(dim);
  make_query(model_, from.data(), by.data(), query.data(), dim);
  return best_entities(count, -1, [&](const float* row) {
    return static_cast<double>(score(model_, query.data(), row, dim));
  });
}

std::vector<ScoredEntity> SavedModel::similar(std::string_view name, std::size_t count) const {
  const std::int64_t id = entity(name);
  const std::vector<float> row = rows(entity_rows_, id, 1);
  const auto dim = static_cast<std::size_t>(dim_);
  const double norm = std::sqrt(static_cast<double>(dot(row.data(), row.data(), dim)));
  return best_entities(count, id, [&](const float* other) {
    const double other_norm = std::sqrt(static_cast<double>(dot(other, other, dim)));
    const double product = norm * other_norm;
    return product > 0 ? static_cast<double>(dot(row.data(), other, dim)) / product : 0;
  });
}

Metrics SavedModel::evaluate(const io::Graph& graph, int threads) const {
  require_graph();
  const auto entity_ids = ids_of(graph.entities, entities_, "entity");
  const auto relation_ids = ids_of(graph.relations, relations_, "relation");
  const auto to_model = [&](const std::vector<io::GraphTriple>& triples) {
    std::vector<Triple> out;
    for (const io::GraphTriple& t : triples) {
      out.push_back({entity_ids[static_cast<std::size_t>(t.head)],
                     relation_ids[static_cast<std::size_t>(t.relation)],
                     entity_ids[static_cast<std::size_t>(t.tail)]});
    }
    return out;
  };
  const std::vector<Triple> test = to_model(graph.test);
  std::vector<Triple> all = to_model(graph.train);
  for (const auto* part : {&graph.valid, &graph.test}) {
    const std::vector<Triple> more = to_model(*part);
    all.insert(all.end(), more.begin(), more.end());
  }
  const auto total = static_cast<std::int64_t>(entities_.size());
  const auto relation_count = static_cast<std::int64_t>(relations_.size());
  const TrueAnswers answers(all, relation_count);
  const std::vector<float> entity_rows = rows(kEntityRows, 0, total);
  const std::vector<float> relation_rows = rows(kRelationRows, 0, 2 * relation_count);
  const auto dim = static_cast<std::size_t>(dim_);
  const auto width = static_cast<std::size_t>(relation_width(model_, dim_));

  std::vector<Metrics> parts((test.size() + kRankedTriples - 1) / kRankedTriples);
  for_each_on_threads(parts.size(), threads, [&](std::size_t i) {
    Ranker ranker({model_, dim_, total, relation_count}, answers);
    const std::size_t first = i * kRankedTriples;
    ranker.plan(std::span(test).subspan(first, std::min(kRankedTriples, test.size() - first)));
    ranker.begin(gather(entity_rows, ranker.entity_ids(), dim),
                 gather(relation_rows, ranker.relation_ids(), width));
    ranker.add_block(0, entity_rows);
    parts[i] = ranker.finish();
  });
  Metrics metrics;
  for (const Metrics& part : parts) metrics.merge(part);  // in the order of the triples
  return metrics;
}

}  // namespace capstan::kge
