// plain_kge.cpp -- training without a parameter server: one core, one address space, no copies.
//
// Runs the steps of `capstan train kge` on its own arrays, with Adagrad in place. It is the bound for local
// mode.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "capstan/error.hpp"
#include "train/kge/ranking.hpp"
#include "train/kge/step.hpp"

namespace capstan::kge {
namespace {

struct Options {
  std::string data;
  std::string model = "complex";
  std::optional<int> dim, negatives, batch, epochs;
  std::optional<float> learning_rate, n3, margin, initial_stddev;
  std::uint64_t seed = 1;
  int eval_every = 0;
  int delay = 0;
};

struct Graph {
  std::vector<Triple> train, valid, test;
  std::unordered_map<std::string, std::int32_t> entities, relations;
};

std::vector<Triple> read_triples(const std::string& path, Graph& graph) {
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, fmt::format("cannot open {}", path));
  const auto id = [](auto& ids, const std::string& name) {
    return ids.try_emplace(name, static_cast<std::int32_t>(ids.size())).first->second;
  };
  std::vector<Triple> triples;
  std::string line, head, relation, tail;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    if (!std::getline(fields, head, '\t') || !std::getline(fields, relation, '\t') ||
        !std::getline(fields, tail)) {
      throw Error(Code::data_loss,
                  fmt::format("{}:{}: expected three tab-separated fields", path, triples.size() + 1));
    }
    triples.push_back({id(graph.entities, head), id(graph.relations, relation), id(graph.entities, tail)});
  }
  return triples;
}

Graph read_graph(const std::string& directory) {
  Graph graph;
  graph.train = read_triples(directory + "/train.txt", graph);
  graph.valid = read_triples(directory + "/valid.txt", graph);
  graph.test = read_triples(directory + "/test.txt", graph);
  return graph;
}

/// A parameter table and the sums of squares of Adagrad.
class Table {
 public:
  Table(std::int64_t rows, int dim, float stddev, std::uint64_t seed) : dim_(static_cast<std::size_t>(dim)) {
    values_.resize(static_cast<std::size_t>(rows) * dim_);
    sums_.resize(values_.size());
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, stddev);
    std::ranges::generate(values_.span(), [&] { return normal(random); });
    std::ranges::fill(sums_.span(), 0.0F);
  }

  std::span<const float> rows() const { return values_.span(); }

  void lookup(std::span<const std::int64_t> ids, AlignedFloats& rows) const {
    rows.resize(ids.size() * dim_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::copy_n(values_.data() + static_cast<std::size_t>(ids[i]) * dim_, dim_, rows.data() + i * dim_);
    }
  }

  void apply(std::span<const std::int64_t> ids, std::span<const float> gradients, float learning_rate) {
    const auto offset = [&](std::size_t i) { return static_cast<std::size_t>(ids[i]) * dim_; };
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i + 1 < ids.size()) prefetch(offset(i + 1));
      adagrad(gradients.data() + i * dim_, values_.data() + offset(i), sums_.data() + offset(i), dim_,
              learning_rate);
    }
  }

 private:
  void prefetch(std::size_t offset) const {
    constexpr std::size_t kCacheLine = 64 / sizeof(float);
    for (std::size_t i = 0; i < dim_; i += kCacheLine) {
      __builtin_prefetch(values_.data() + offset + i, 1);
      __builtin_prefetch(sums_.data() + offset + i, 1);
    }
  }

  // One version per instruction set, selected at load time, like the kernels of the ps.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default"),
                 optimize("O3,no-math-errno")))
#endif
  static void
  adagrad(const float* __restrict gradient, float* __restrict value, float* __restrict sum, std::size_t size,
          float learning_rate) {
    for (std::size_t i = 0; i < size; ++i) {
      const float g = gradient[i];
      sum[i] += g * g;
      value[i] -= learning_rate * g / (std::sqrt(sum[i]) + 1e-10F);
    }
  }

  std::size_t dim_;
  AlignedFloats values_;
  AlignedFloats sums_;
};

class Trainer {
 public:
  Trainer(const Options& options, Graph graph)
      : graph_(std::move(graph)),
        model_(parse_model(options.model)),
        defaults_(defaults_of(model_)),
        batch_(options.batch.value_or(defaults_.batch)),
        epochs_(options.epochs.value_or(defaults_.epochs)),
        learning_rate_(options.learning_rate.value_or(defaults_.learning_rate)),
        seed_(options.seed),
        eval_every_(options.eval_every),
        step_options_{.model = model_,
                      .dim = options.dim.value_or(defaults_.dim),
                      .negatives = options.negatives.value_or(defaults_.negatives),
                      .n3 = options.n3.value_or(defaults_.n3),
                      .entities = static_cast<std::int64_t>(graph_.entities.size()),
                      .relations = static_cast<std::int64_t>(graph_.relations.size()),
                      .margin = options.margin.value_or(defaults_.margin)},
        stddev_(options.initial_stddev.value_or(defaults_.initial_stddev)),
        entities_(step_options_.entities, step_options_.dim, stddev_, options.seed),
        relations_(2 * step_options_.relations, static_cast<int>(relation_width(model_, step_options_.dim)),
                   defaults_.initial_relation_stddev, options.seed + 1) {
    for (int i = 0; i <= options.delay; ++i) steps_.emplace_back(step_options_);
    std::vector<Triple> all = graph_.train;
    all.insert(all.end(), graph_.valid.begin(), graph_.valid.end());
    all.insert(all.end(), graph_.test.begin(), graph_.test.end());
    true_answers_ = TrueAnswers(all, step_options_.relations);
  }

  void run() {
    fmt::print(
        "{}: dim {}, negatives {}, batch {}, epochs {}, learning rate {}, n3 {}, initial stddev {}, seed "
        "{}\n",
        to_string(model_), step_options_.dim, step_options_.negatives, batch_, epochs_, learning_rate_,
        step_options_.n3, stddev_, seed_);
    std::mt19937_64 random(seed_ + 2);
    double seconds = 0, cpu_seconds = 0;
    for (int epoch = 1; epoch <= epochs_; ++epoch) {
      const auto start = std::chrono::steady_clock::now();
      const std::clock_t cpu_start = std::clock();
      std::ranges::shuffle(graph_.train, random);
      const double loss = train_epoch();
      const double took = seconds_since(start);
      seconds += took;
      cpu_seconds += static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
      fmt::print("epoch {:3}  loss {:.4f}  {:7.0f} triples/s  {:.1f} s\n", epoch, loss, rate(1, took),
                 seconds);
      if (epoch == epochs_ || (eval_every_ > 0 && epoch % eval_every_ == 0)) evaluate();
      std::fflush(stdout);
    }
    // On a shared machine, compare the rate per CPU second.
    fmt::print("training {:.1f} s, {:.0f} triples/s, {:.0f} triples per CPU second\n", seconds,
               rate(epochs_, seconds), rate(epochs_, cpu_seconds));
  }

 private:
  static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  double rate(int epochs, double seconds) const {
    return epochs * static_cast<double>(graph_.train.size()) / seconds;
  }

  double train_epoch() {
    Loss loss;
    const auto batch = static_cast<std::size_t>(batch_);
    for (std::size_t first = 0; first < graph_.train.size(); first += batch) {
      const std::size_t count = std::min(batch, graph_.train.size() - first);
      // With --delay N, a gradient is applied N batches after the lookup of its rows, as if N other workers
      // pushed meanwhile.
      Step& step = steps_[batch_number_ % steps_.size()];
      if (steps_.size() > 1 && batch_number_ >= steps_.size()) apply(step);
      step.plan(std::span(graph_.train).subspan(first, count), seed_, batch_number_);
      entities_.lookup(step.entity_ids(), entity_rows_);
      relations_.lookup(step.relation_ids(), relation_rows_);
      const Loss part = step.compute(entity_rows_.span(), relation_rows_.span());
      if (steps_.size() == 1) apply(step);
      loss.sum += part.sum;
      loss.count += part.count;
      ++batch_number_;
    }
    return loss.sum / static_cast<double>(loss.count);
  }

  void apply(const Step& step) {
    entities_.apply(step.entity_ids(), step.entity_gradients(), learning_rate_);
    relations_.apply(step.relation_ids(), step.relation_gradients(), learning_rate_);
  }

  void evaluate() {
    const auto start = std::chrono::steady_clock::now();
    constexpr std::size_t kSlice = 512;
    Ranker ranker({.model = model_,
                   .dim = step_options_.dim,
                   .entities = step_options_.entities,
                   .relations = step_options_.relations},
                  true_answers_);
    Metrics metrics;
    for (std::size_t first = 0; first < graph_.test.size(); first += kSlice) {
      ranker.plan(std::span(graph_.test).subspan(first, std::min(kSlice, graph_.test.size() - first)));
      entities_.lookup(ranker.entity_ids(), entity_rows_);
      relations_.lookup(ranker.relation_ids(), relation_rows_);
      ranker.begin(entity_rows_.span(), relation_rows_.span());
      ranker.add_block(0, entities_.rows());
      metrics.merge(ranker.finish());
    }
    fmt::print("test  MRR {:.4f}  Hits@1 {:.4f}  Hits@3 {:.4f}  Hits@10 {:.4f}  of {} queries in {:.1f} s\n",
               metrics.mrr(), metrics.hits1(), metrics.hits3(), metrics.hits10(), metrics.count,
               seconds_since(start));
  }

  Graph graph_;
  ModelKind model_;
  ModelDefaults defaults_;
  int batch_;
  int epochs_;
  float learning_rate_;
  std::uint64_t seed_;
  int eval_every_;
  StepOptions step_options_;
  float stddev_;
  Table entities_;
  Table relations_;
  std::vector<Step> steps_;
  TrueAnswers true_answers_;
  AlignedFloats entity_rows_;
  AlignedFloats relation_rows_;
  std::uint64_t batch_number_ = 0;
};

int run(int argc, char** argv) {
  CLI::App app("Trains knowledge-graph embeddings on one core without a parameter server");
  Options options;
  app.add_option("--data", options.data, "Directory with train.txt, valid.txt and test.txt")->required();
  app.add_option("--model", options.model, "transe, distmult, complex, rescal or rotate");
  app.add_option("--dim", options.dim, "Floats per row");
  app.add_option("--negatives", options.negatives, "Negatives per batch, shared by its queries");
  app.add_option("--batch", options.batch, "Triples per batch")->check(CLI::PositiveNumber);
  app.add_option("--epochs", options.epochs, "Passes over the training triples")->check(CLI::PositiveNumber);
  app.add_option("--learning-rate", options.learning_rate, "Learning rate of Adagrad");
  app.add_option("--n3", options.n3, "Weight of the N3 penalty");
  app.add_option("--initial-stddev", options.initial_stddev,
                 "Standard deviation of the initial values of entities");
  app.add_option("--margin", options.margin, "Margin of the self-adversarial loss of RotatE");
  app.add_option("--seed", options.seed,
                 "Seed of the initial values, the order of the triples and the negatives");
  app.add_option("--eval", options.eval_every, "Interval of evaluations, in epochs; 0: only at the end");
  app.add_option("--delay", options.delay, "Delay of each gradient, in batches")->check(CLI::Range(0, 64));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Trainer(options, read_graph(options.data)).run();
  return 0;
}

}  // namespace
}  // namespace capstan::kge

int main(int argc, char** argv) {
  try {
    return capstan::kge::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "plain_kge: {}\n", error.what());
    return 1;
  }
}
