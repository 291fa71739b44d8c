// program.cpp -- schedules the counting of words and the blocks of each epoch, and collects the results.
#include "train/word2vec/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>

#include "capstan/capstan.hpp"
#include "train/after_recovery.hpp"
#include "train/saved_names.hpp"
#include "train/training_run.hpp"
#include "train/word2vec/closures.hpp"
#include "train/word2vec/saved_words.hpp"

namespace capstan::train::word2vec {
namespace {

using Clock = std::chrono::steady_clock;

/// Text that one closure counts: bounds its result, and the work that is repeated if its worker dies.
constexpr std::int64_t kMostCountedBytes = 64 << 20;

/// The learning rate does not fall below this fraction of its first value, as in the reference program.
constexpr double kLowestRate = 1e-4;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Word2vecRun {
 public:
  Word2vecRun(const Cluster& cluster, const ProgramOptions& options, const RunHooks& hooks)
      : options_(options),
        run_(cluster, {"train word2vec", "words", {"loss", false}}, options, hooks),
        coordinator_(run_.coordinator()) {
    if (!options_.output.empty()) check_writable(options_.output);
    if (!options_.similarity.empty()) scored_pairs_ = read_pairs(options_.similarity);
    workers_ = coordinator_.workers();
    count();

    const auto rows = static_cast<std::int64_t>(vocabulary_.words.size());
    const double limit = 0.5 / options_.dim;
    const VariableOptions sum_of_differences{optimizers::SGD{1.0}};
    words_.emplace(kWordRows, Shape{rows, options_.dim}, initializers::uniform(-limit, limit, options_.seed),
                   sum_of_differences);
    contexts_.emplace("contexts", Shape{rows, options_.dim}, initializers::zeros(), sum_of_differences);
    names_.emplace(kWordNames, vocabulary_.words);
    trainer_.emplace(coordinator_.create_per_worker_resource<&make_trainer>(
        TrainerOptions{vocabulary_, options_.plan, options_.dim}));
  }

  Report run() {
    const nlohmann::json from = run_.resume(identity());
    RunReport& report = run_.report();
    if (!report.resumed_from.empty()) names_->check_restored(vocabulary_.words, report.resumed_from);
    const int first = run_.is_complete() ? options_.epochs + 1 : report.first_epoch;
    // A resumed epoch begins with a block, so this number of words is a multiple of the batch.
    const std::size_t begun = std::min(
        static_cast<std::size_t>(from.value("begun", std::int64_t{0}) / options_.batch), blocks_.size());
    resumed_words_ = vocabulary_.total * (report.first_epoch - 1) +
                     vocabulary_.total * static_cast<std::int64_t>(begun) / block_count();
    progress(report.first_epoch, std::numeric_limits<double>::quiet_NaN());
    training_since_ = Clock::now();
    for (int epoch = first; epoch <= options_.epochs; ++epoch) {
      const std::size_t up_to = schedule_epoch(epoch, epoch == first ? begun : 0);
      const bool stopped = !report.stopped.empty();
      if (!stopped && epoch < options_.epochs && !run_.checkpoint_is_due(epoch)) continue;
      wait_for_blocks();
      if (stopped) {
        const bool complete = up_to == blocks_.size();
        nlohmann::json state{{"epoch", complete ? epoch : epoch - 1}};
        if (!complete) state["begun"] = static_cast<std::int64_t>(up_to) * options_.batch;
        run_.save_checkpoint(epoch, state, false);
        return finished();
      }
      const bool last = run_.ends_after(epoch);
      if (run_.checkpoint_is_due(epoch)) run_.save_checkpoint(epoch, {{"epoch", epoch}}, !last);
      training_since_ = Clock::now();
    }
    check_trained();
    evaluate();
    write_output();
    report.workers_lost = std::max(0, workers_ - coordinator_.workers());  // some may have joined late
    return finished();
  }

 private:
  struct Running {
    int epoch;
    RemoteValue<BlockResult> value;
  };

  /// Counts the words on the workers, and divides the corpus into blocks.
  void count() {
    const auto begin = Clock::now();
    const std::vector<CorpusFile> files = list_corpus(options_.data);
    std::int64_t bytes = 0;
    for (const CorpusFile& file : files) bytes += file.bytes;
    const std::int64_t share = bytes / (2 * std::max(1, coordinator_.workers())) + 1;
    VocabularyBuilder builder;
    std::deque<RemoteValue<WordCounts>> counting;
    const auto collect_counts = [&](std::size_t left) {
      for (; counting.size() > left; counting.pop_front()) builder.add(fetch(counting.front()));
    };
    for (const Piece& piece : divide(files, std::min(share, kMostCountedBytes))) {
      counting.push_back(coordinator_.schedule<&count_words>(piece));
      collect_counts(window());
    }
    collect_counts(0);
    vocabulary_ = builder.build(options_.min_count);
    const double block_bytes = static_cast<double>(bytes) / static_cast<double>(builder.corpus_words()) *
                               static_cast<double>(options_.batch);
    blocks_ = divide(files, static_cast<std::int64_t>(block_bytes) + 1);
    report_.files = static_cast<std::int64_t>(files.size());
    report_.corpus_words = builder.corpus_words();
    report_.trained_words = vocabulary_.total;
    report_.vocabulary = static_cast<std::int64_t>(vocabulary_.words.size());
    report_.vocabulary_seconds = seconds_since(begin);
    run_.hooks().log(fmt::format("{} words in {} files, {} different ones that occur {} times or more",
                                 report_.corpus_words, report_.files, report_.vocabulary,
                                 options_.min_count));
  }

  Identity identity() const {
    return {{"--dim", std::to_string(options_.dim)},
            {"--batch", std::to_string(options_.batch)},
            {"a number of words of", std::to_string(report_.vocabulary)}};
  }

  std::int64_t block_count() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// Enough closures that no worker runs idle.
  std::size_t window() const { return static_cast<std::size_t>(4 * std::max(1, coordinator_.workers())); }

  /// Falls linearly over all blocks of the training.
  float rate_of(std::uint64_t number) const {
    const double all = static_cast<double>(options_.epochs) * static_cast<double>(blocks_.size());
    const double left = std::max(1 - static_cast<double>(number) / all, kLowestRate);
    return static_cast<float>(options_.learning_rate * left);
  }

  /// Schedules the blocks of an epoch from `first` on, or until the training has to stop
  /// (RunReport::stopped). Returns the end of the scheduled blocks.
  std::size_t schedule_epoch(int epoch, std::size_t first) {
    for (std::size_t block = first; block < blocks_.size(); ++block) {
      const std::uint64_t number = static_cast<std::uint64_t>(epoch - 1) * blocks_.size() + block;
      Block task{blocks_[block], options_.seed, number, rate_of(number), coordinator_.workers()};
      running_.push_back(
          {epoch, coordinator_.schedule<&train_block>(*trainer_, std::move(task), *words_, *contexts_)});
      collect(window());
      run_.report().stopped = run_.stop_reason(std::chrono::milliseconds(0));
      if (!run_.report().stopped.empty()) return block + 1;
    }
    return blocks_.size();
  }

  void wait_for_blocks() {
    collect(0);
    coordinator_.join();
    run_.report().seconds += seconds_since(training_since_);
  }

  /// Fetches a result. If the closure was cancelled because another one failed, join() rethrows that error,
  /// which determines the message and the exit code.
  template <class T>
  T fetch(const RemoteValue<T>& value) {
    try {
      return value.fetch();
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) coordinator_.join();
      throw;
    }
  }

  /// Collects results until at most `left` blocks are outstanding.
  void collect(std::size_t left) {
    for (; running_.size() > left; running_.pop_front()) {
      const int epoch = running_.front().epoch;
      const BlockResult result = fetch(running_.front().value);
      RunReport& report = run_.report();
      report.items += result.words;
      if (report.epochs.empty() || report.epochs.back().epoch != epoch) {
        report.epochs.push_back({epoch});
        epoch_ = {};
      }
      epoch_.loss_sum += result.loss_sum;
      epoch_.loss_pairs += result.loss_pairs;
      pairs_found_ = pairs_found_ || result.loss_pairs > 0;
      EpochReport& now = report.epochs.back();
      if (!std::isfinite(epoch_.loss_sum)) throw diverged(epoch);
      now.loss = epoch_.loss_sum / static_cast<double>(std::max<std::int64_t>(epoch_.loss_pairs, 1));
      now.seconds = report.seconds + seconds_since(training_since_);
      coordinator_.scalar("epoch", epoch, resumed_words_ + report.items);
      coordinator_.scalar("loss", now.loss, resumed_words_ + report.items);
      progress(epoch, now.loss);
    }
  }

  Error diverged(int epoch) const {
    return Error(
        Code::invalid_argument,
        fmt::format("--learning-rate {}: found a loss that is not finite in epoch {}, expected one that "
                    "falls; set a lower rate",
                    options_.learning_rate, epoch));
  }

  /// Otherwise, the vectors would be the initial random ones.
  void check_trained() {
    if (run_.report().items == 0 || pairs_found_) return;
    throw Error(
        Code::invalid_argument,
        fmt::format("--subsample {}: found no pair of words in {} words, expected some; set --subsample 0 "
                    "for a short text, or a larger --batch",
                    options_.plan.subsample, vocabulary_.total));
  }

  void progress(int epoch, double loss) {
    run_.hooks().progress({epoch, options_.epochs, resumed_words_ + run_.report().items,
                           vocabulary_.total * options_.epochs, loss});
  }

  void evaluate() {
    if (options_.similarity.empty()) return;
    const auto begin = Clock::now();
    report_.similarity = similarity(scored_pairs_, vocabulary_, [&](std::span<const std::int64_t> rows) {
      std::vector<float> values(rows.size() * static_cast<std::size_t>(options_.dim));
      words_->exact().lookup(rows, values);
      return values;
    });
    run_.report().evaluation_seconds += seconds_since(begin);
    const Similarity& found = *report_.similarity;
    coordinator_.scalar("similarity/spearman", found.spearman, resumed_words_ + run_.report().items);
    run_.hooks().log(fmt::format("similarity: Spearman {:.4f}  ({} of {} pairs)", found.spearman, found.pairs,
                                 found.total));
  }

  void write_output() {
    if (options_.output.empty()) return;
    const Variable<float> rows = words_->exact();
    write_vectors(options_.output, options_.output_format, vocabulary_.words,
                  static_cast<std::size_t>(options_.dim),
                  [&](std::uint64_t first, std::span<float> out) { rows.pull(first, out); });
  }

  Report finished() {
    report_.run = run_.report();
    return std::move(report_);
  }

  ProgramOptions options_;
  TrainingRun run_;
  ClusterCoordinator& coordinator_;
  std::vector<ScoredPair> scored_pairs_;
  Vocabulary vocabulary_;
  std::vector<Piece> blocks_;
  std::optional<Variable<float>> words_;
  std::optional<Variable<float>> contexts_;
  std::optional<SavedNames> names_;
  std::optional<PerWorker<std::unique_ptr<Trainer>>> trainer_;
  std::deque<Running> running_;
  Clock::time_point training_since_;
  std::int64_t resumed_words_ = 0;  // words trained by an earlier run, about
  BlockResult epoch_;               // sums over the epoch of the last result
  bool pairs_found_ = false;
  int workers_ = 0;
  Report report_;
};

}  // namespace

Report run_program(const Cluster& cluster, const ProgramOptions& options, const RunHooks& hooks) {
  return Word2vecRun(cluster, after_recovery(cluster, options), hooks).run();
}

}  // namespace capstan::train::word2vec
