// splits_test.cpp -- each example exactly once an epoch: splits, exact evaluation, and the evaluator.
// Tests: src/checkpoint/saved_checkpoint.cpp
// Tests: src/coordinator/scheduling/split_dataset.cpp
// Tests: src/coordinator/scheduling/split_keeper.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "capstan/checkpoint.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/readers.hpp"
#include "capstan/sidecar_evaluator.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/temporary_directory.hpp"
#include "strategy/context.hpp"
#include "support/asleep.hpp"
#include "support/end_worker.hpp"
#include "support/expect_error.hpp"
#include "support/log_text.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Count = std::int64_t;
using Numbers = std::vector<std::int64_t>;

// Workers are threads of this process, so functions and tests share these variables.
std::atomic<int> to_end{0};
std::atomic<int> to_refuse{0};
std::atomic<bool> gate{true};
std::atomic<int> begun{0};

/// Ends the worker that runs it if `to_end` workers remain to be ended.
void perhaps_end() {
  if (to_end.fetch_sub(1) > 0) ending::end_this_worker();
}

void count_each(const DataSplit& split, const Variable<Count>& counts) {
  Numbers examples;
  for (const auto example : examples_of(Dataset<std::int64_t>::range(1000), split))
    examples.push_back(example);
  const auto half = static_cast<std::ptrdiff_t>(examples.size() / 2);
  const auto add = [&](auto begin, auto end) {
    const Numbers ids(begin, end);
    counts.scatter_add(ids, std::vector<Count>(ids.size(), 1));
  };
  add(examples.begin(), examples.begin() + half);
  perhaps_end();
  add(examples.begin() + half, examples.end());
}
void count_at_the_gate(const DataSplit& split, const Variable<Count>& counts) {
  ++begun;
  poll_until([] { return gate.load(); });
  count_each(split, counts);
}
void count_or_refuse(const DataSplit& split, const Variable<Count>& counts) {
  if (to_refuse.fetch_sub(1) > 0) throw Error(Code::data_loss, "this split cannot be read");
  count_each(split, counts);
}
std::vector<std::string> lines_of(const DataSplit& split) {
  std::vector<std::string> lines;
  for (const std::string& line : text_lines(split)) lines.push_back(line);
  return lines;
}

struct Program {
  static constexpr int kWorkers = 3;

  explicit Program(int ps = 2)
      : ranks({.ranks = 1 + ps + kWorkers, .flags = {{"ps", std::to_string(ps)}}, .worker = ending::worker}),
        strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{ps}}),
        scope(std::in_place, &strategy.implementation()),
        counts("counts", Shape{1000}),
        coordinator(strategy) {
    scope.reset();
    to_end = to_refuse = begun = 0;
    gate = true;
  }
  ~Program() { gate = true; }
  /// Returns the number of examples for each count.
  std::map<Count, std::int64_t> examples_with() const {
    std::map<Count, std::int64_t> with;
    for (const Count count : counts.pull()) ++with[count];
    return with;
  }

  RankThreads ranks;
  ParameterServerStrategy strategy;
  std::optional<ParameterServerStrategy::Scope> scope;  // open while `counts` is created
  Variable<Count> counts;
  ClusterCoordinator coordinator;
};
using TimesGiven = std::map<Count, std::int64_t>;

// own: better: each example of a split dataset counts exactly once an epoch, even if workers die.
TEST(Splits, EachExampleCountsOncePerEpoch) {
  Program program;
  auto data = program.coordinator.create_split_dataset(1000, {.examples_per_split = 7, .epochs = 2});
  EXPECT_EQ(data.splits_per_epoch(), 143);
  to_end = 2;
  int rounds = 0;
  while (!data.done()) {
    EXPECT_EQ(data.epoch(), rounds++);
    EXPECT_EQ(data.schedule_each<&count_each>(program.counts).size(), 143U);
    program.coordinator.join();
  }
  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(data.epoch(), 2);
  EXPECT_TRUE(data.schedule_each<&count_each>(program.counts).empty());
  EXPECT_EQ(program.examples_with(), (TimesGiven{{2, 1000}}));
  EXPECT_EQ(program.coordinator.workers(), Program::kWorkers - 2);
}

// own: better: the order of splits follows from a seed and the epoch.
TEST(Splits, AreShuffledByASeedAndTheEpoch) {
  Program program;
  const auto order = [&](std::optional<std::uint64_t> seed, std::int64_t epoch) {
    auto data = program.coordinator.create_split_dataset(50, {.examples_per_split = 5, .shuffle_seed = seed});
    Numbers begins;
    for (const DataSplit& split : data.splits(epoch)) {
      EXPECT_EQ(split.epoch, epoch);
      EXPECT_EQ(split.begin, 5 * split.index);
      begins.push_back(split.index);
    }
    return begins;
  };
  EXPECT_THAT(order({}, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(order({}, 1), order({}, 0));
  EXPECT_EQ(order(3, 0), order(3, 0));
  EXPECT_NE(order(3, 0), order(3, 1));
  EXPECT_NE(order(3, 0), order(4, 0));
  const Numbers shuffled = order(3, 0);
  EXPECT_EQ(std::set<std::int64_t>(shuffled.begin(), shuffled.end()).size(), 10U);
  EXPECT_THAT(order(1, 0), ElementsAre(1, 9, 0, 7, 6, 3, 2, 4, 8, 5)) << "the same on every machine";
}

// own: better: a failed split is handed out again.
TEST(Splits, FailedSplitIsNotDone) {
  Program program;
  auto data = program.coordinator.create_split_dataset(1000, {.examples_per_split = 100});
  to_refuse = 1;
  expect_error(Code::data_loss, "this split cannot be read", [&] {
    data.schedule_each<&count_or_refuse>(program.counts);
    program.coordinator.join();
  });
  EXPECT_FALSE(data.done());
  EXPECT_EQ(data.epoch(), 0);
  const auto left = 10 - data.splits_done(0);
  EXPECT_GE(left, 1);
  EXPECT_EQ(data.schedule_some<&count_or_refuse>(1, program.counts).size(), 1U);
  EXPECT_EQ(static_cast<std::int64_t>(data.schedule_each<&count_or_refuse>(program.counts).size()), left - 1);
  program.coordinator.join();
  EXPECT_TRUE(data.done());
  EXPECT_EQ(program.examples_with(), (TimesGiven{{1, 1000}}));
}

// own: better: the split that contains the start of a line reads the line.
TEST(Splits, OfFilesAreFilesOrPartsOfFiles) {
  const io::TemporaryDirectory directory;
  std::vector<std::string> all;
  const auto write = [&](const std::string& name, int lines, bool end) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      all.push_back(name + std::string(static_cast<std::size_t>(i * 7 % 11), 'x'));
      text += all.back() + (i + 1 < lines || end ? "\n" : "");
    }
    return directory.write(name, text);
  };
  const data::Paths files{write("a", 40, true), write("b", 1, false), write("c", 23, false),
                          write("d", 0, true)};
  Program program;
  auto& c = program.coordinator;
  for (const std::int64_t bytes : {0, 1, 2, 3, 10, 17, 1000}) {
    SCOPED_TRACE(bytes);
    auto data = c.create_split_dataset(files, {.bytes_per_split = bytes});
    std::vector<std::string> read;
    for (const auto& lines : c.fetch(data.schedule_each<&lines_of>())) {
      read.insert(read.end(), lines.begin(), lines.end());
    }
    EXPECT_EQ(read, all);
    EXPECT_EQ(data.splits_per_epoch() == 3, bytes == 0 || bytes == 1000);
    EXPECT_TRUE(data.done());
  }
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)c.create_split_dataset({directory.path() / "no"}); }),
              HasSubstr("no"));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { (void)text_lines(DataSplit{}); }),
              HasSubstr("text_lines"));
}

struct Score {
  std::int64_t right = 0;
  std::int64_t examples = 0;
};
/// The model is right about multiples of 3.
Score evaluate(const DataSplit& split, std::int64_t examples) {
  perhaps_end();
  Score score;
  for (const auto x : examples_of(Dataset<std::int64_t>::range(examples), split)) {
    score.right += x % 3 == 0 ? 1 : 0;
    ++score.examples;
  }
  return score;
}

// A6.3: better: in any program, by one function for each split; endless data are rejected.
TEST(Splits, EvaluationIsExactForAnUnevenNumberOfExamples) {
  Program program;
  auto& c = program.coordinator;
  const auto test = Dataset<std::int64_t>::range(1003);
  auto data = c.create_split_dataset(test, {.examples_per_split = 16});
  to_end = 2;
  Score all;
  for (const Score& score : c.fetch(data.schedule_each<&evaluate>(1003))) {
    all.right += score.right;
    all.examples += score.examples;
  }
  EXPECT_EQ(all.examples, 1003);
  EXPECT_EQ(all.right, 335);
  EXPECT_DOUBLE_EQ(static_cast<double>(all.right) / static_cast<double>(all.examples), 335.0 / 1003.0);
  EXPECT_EQ(c.workers(), Program::kWorkers - 2);
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { (void)c.create_split_dataset(test.repeat()); }),
              HasSubstr("repeat()"));
  EXPECT_THAT(
      error_of(Code::invalid_argument,
               [&] { (void)c.create_split_dataset(zip(test.repeat().batch(2), test.repeat().skip(1))); }),
      HasSubstr("repeat()"));
  EXPECT_EQ(c.create_split_dataset(zip(test.repeat(), test)).splits_per_epoch(), 2);
  EXPECT_EQ(c.create_split_dataset(test.repeat().take(5000)).splits_per_epoch(), 5);
  EXPECT_EQ(c.create_split_dataset(test.repeat().repeat(0)).splits_per_epoch(), 0);
}

// own: better: invalid options are named.
TEST(Splits, RejectsInvalidOptions) {
  Program program;
  auto& c = program.coordinator;
  const auto refuse = [&](std::int64_t examples, const SplitOptions& options, const std::string& text) {
    expect_error(Code::invalid_argument, text, [&] { (void)c.create_split_dataset(examples, options); });
  };
  refuse(-1, {}, "create_split_dataset: the number of examples is -1; it must be 0 or more");
  refuse(5, {.examples_per_split = 0}, "create_split_dataset: examples_per_split is 0; it must be 1 or more");
  refuse(5, {.epochs = -2}, "create_split_dataset: epochs is -2; it must be -1 (without an end) or more");
  auto first = c.create_split_dataset(5, {.name = "mine"});
  expect_error_naming(Code::already_exists, {"\"mine\""},
                      [&] { (void)c.create_split_dataset(5, {.name = "mine"}); });
  auto none = c.create_split_dataset(0, {.epochs = -1});
  EXPECT_TRUE(none.done());
  EXPECT_TRUE(none.schedule_each<&count_each>(program.counts).empty());
}

/// Saves a checkpoint in the second of two epochs, while some splits are done and others are in flight.
void save_during_second_epoch(const std::filesystem::path& directory) {
  Program program;
  CheckpointManager checkpoints(program.strategy, {.directory = directory});
  auto data = program.coordinator.create_split_dataset(
      1000, {.examples_per_split = 10, .epochs = 2, .shuffle_seed = 5});
  data.schedule_each<&count_each>(program.counts);
  program.coordinator.join();
  data.schedule_some<&count_each>(20, program.counts);
  program.coordinator.join();
  to_end = 1;  // its splits run again, and must end before the save
  gate = false;
  data.schedule_each<&count_at_the_gate>(program.counts);
  // Otherwise, an early save would hold back all splits.
  ASSERT_TRUE(poll([] { return begun >= 2 ? std::optional(true) : std::nullopt; }).has_value());
  // Opens the gate once the save holds back unstarted splits and waits for the others.
  std::jthread opens([saving = gettid()] {
    EXPECT_TRUE(wait_until_asleep(saving));
    gate = true;
  });
  checkpoints.save(7);
  program.coordinator.join();
  EXPECT_TRUE(data.done());
  EXPECT_EQ(program.examples_with(), (TimesGiven{{2, 1000}}));
}

/// Returns the number of splits of the second epoch that are done in the newest checkpoint.
std::int64_t splits_done_in(const std::filesystem::path& directory) {
  Program program;
  const auto data = program.coordinator.create_split_dataset(
      1000, {.examples_per_split = 10, .epochs = 2, .shuffle_seed = 5});
  CheckpointManager(program.strategy, {.directory = directory}).restore_latest();
  return data.splits_done(1);
}

// A5.16: better: the program continues with the remaining splits, and each example still counts once.
TEST(Splits, AnotherProgramContinuesFromACheckpointSavedWhileSplitsRan) {
  const io::TemporaryDirectory tries;
  std::filesystem::path directory;
  // On a busy machine, all splits may have run before the save begins.
  for (int i = 0; i < 20 && (directory.empty() || splits_done_in(directory) == 100); ++i) {
    directory = tries.path() / std::to_string(i);
    save_during_second_epoch(directory);
  }
  for (const int ps : {1, 3}) {
    Program program(ps);
    auto data = program.coordinator.create_split_dataset(
        1000, {.examples_per_split = 10, .epochs = 3, .shuffle_seed = 5});
    CheckpointManager checkpoints(program.strategy, {.directory = directory});
    EXPECT_EQ(checkpoints.restore_latest(), std::optional<std::int64_t>(7));
    EXPECT_EQ(data.epoch(), 1);
    const std::int64_t done = data.splits_done(1);
    EXPECT_TRUE(20 < done && done < 100) << done << ": unstarted splits were held back";
    const std::vector<Count> counts = program.counts.pull();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), Count{0}), 1000 + 10 * done);
    EXPECT_EQ(static_cast<std::int64_t>(data.schedule_each<&count_each>(program.counts).size()), 100 - done);
    program.coordinator.join();
    EXPECT_EQ(program.examples_with(), (TimesGiven{{2, 1000}}));
    gate = false;
    data.schedule_each<&count_at_the_gate>(program.counts);
    expect_error_naming(Code::failed_precondition, {"100", "\"splits\"", "join()"},
                        [&] { data.restore(data.position()); });
    gate = true;
    program.coordinator.join();
    EXPECT_EQ(program.examples_with(), (TimesGiven{{3, 1000}}));
    EXPECT_TRUE(data.done());
  }
}

// own: better: a position of other data is rejected before anything changes.
TEST(Splits, RejectsAPositionOfOtherData) {
  const io::TemporaryDirectory directory;
  Program program;
  CheckpointManager checkpoints(program.strategy, {.directory = directory.path()});
  std::string position;
  {
    auto data = program.coordinator.create_split_dataset(
        1000, {.examples_per_split = 10, .shuffle_seed = 5, .name = "train"});
    data.schedule_some<&count_each>(3, program.counts);
    program.coordinator.join();
    checkpoints.save(1);
    position = data.position();
    EXPECT_EQ(position,
              "{\"data\":\"1000 examples, 10 a split\",\"done\":{\"0\":[[0,3]]},\"epoch\":0,"
              "\"shuffle_seed\":5,\"splits\":100}");
  }
  const std::vector<Count> before = program.counts.pull();
  const auto refuse = [&](std::int64_t examples, const SplitOptions& options, const std::string& text) {
    auto data = program.coordinator.create_split_dataset(examples, options);
    program.counts.scatter_add(Numbers{0}, std::vector<Count>{1});
    const std::vector<Count> changed = program.counts.pull();
    expect_error(Code::failed_precondition, text, [&] { checkpoints.restore_latest(); });
    EXPECT_EQ(program.counts.pull(), changed);
    expect_error(Code::failed_precondition, text, [&] { data.restore(position); });
    EXPECT_EQ(data.splits_done(0), 0);
  };
  refuse(1001, {.examples_per_split = 10, .shuffle_seed = 5, .name = "train"},
         "the position of \"train\" does not fit this program: its data is 1000 examples, 10 a split there, "
         "1001 examples, 10 a split here");
  refuse(1000, {.examples_per_split = 10, .name = "train"},
         "the position of \"train\" does not fit this program: its shuffle_seed is 5 there, null here");
  auto data = program.coordinator.create_split_dataset(
      1000, {.examples_per_split = 10, .shuffle_seed = 5, .name = "train"});
  for (const char* wrong : {"", "[]", "{}", "{\"data\":1}"}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { data.restore(wrong); }), NamesAll({"position"}));
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = position;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  for (const auto& [from, to] : std::map<std::string, std::string>{{"[[0,3]]", "[[0,101]]"},
                                                                   {"[[0,3]]", "[[4,3]]"},
                                                                   {"[[0,3]]", "[[0,3],[2,5]]"},
                                                                   {"\"0\"", "\"x\""},
                                                                   {"\"epoch\":0", "\"epoch\":1"},
                                                                   {"\"epoch\":0", "\"epoch\":-1"}}) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&, from = from, to = to] { data.restore(with(from, to)); }),
                NamesAll({"position"}))
        << to;
  }
  data.restore(position);
  EXPECT_EQ(data.splits_done(0), 3);
  EXPECT_EQ(checkpoints.restore_latest(), std::optional<std::int64_t>(1));
  EXPECT_EQ(program.counts.pull(), before);
}

/// Observations of an evaluator.
struct Seen {
  std::vector<std::int64_t> steps;
  std::vector<Count> sums;
  SidecarEvaluator::Evaluate evaluate = [this](const SavedCheckpoint& checkpoint) {
    steps.push_back(checkpoint.step());
    const auto values = checkpoint.read<Count>("counts").values;
    sums.push_back(std::accumulate(values.begin(), values.end(), Count{0}));
  };
};

// A6.4: better: every checkpoint is evaluated in order, a damaged one is named and skipped, and the evaluator
// ends by itself.
TEST(Evaluator, EvaluatesEachCheckpointOnce) {
  const io::TemporaryDirectory directory;
  {
    Program program;
    CheckpointManager checkpoints(program.strategy, {.directory = directory.path()});
    for (const std::int64_t step : {1, 2, 3, 4}) {
      program.counts.scatter_add(Numbers{5}, std::vector<Count>{10});
      checkpoints.save(step, "{\"loss\":0.5}");
    }
  }
  const milliseconds soon(1);
  const auto checkpoint = directory.path() / "checkpoint-00000002";
  const auto part = checkpoint / io::read_manifest(checkpoint).parts.at(0).file;
  std::fstream(part, std::ios::binary | std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  const SidecarEvaluatorOptions options{
      .checkpoint_dir = directory.path(), .poll_interval = soon, .timeout = soon};
  const LogText log;
  {
    Seen seen;
    SidecarEvaluator evaluator(options);
    EXPECT_EQ(evaluator.start(seen.evaluate), 0);
    EXPECT_THAT(seen.steps, ElementsAre(1, 3, 4));
    EXPECT_THAT(seen.sums, ElementsAre(10, 30, 40));
    EXPECT_EQ(evaluator.evaluations(), 3);
    EXPECT_THAT(log.text(), HasSubstr("checkpoint-00000002: "));
    EXPECT_EQ(evaluator.start(seen.evaluate), 0) << "there is no new checkpoint";
    EXPECT_EQ(seen.steps.size(), 3U);
  }
  const auto steps_with = [&](auto change) {
    Seen seen;
    SidecarEvaluatorOptions changed = options;
    change(changed);
    SidecarEvaluator(changed).start(seen.evaluate);
    return seen.steps;
  };
  EXPECT_THAT(steps_with([](auto& o) { o.max_evaluations = 2; }), ElementsAre(1, 3));
  EXPECT_THAT(steps_with([](auto& o) { o.last_step = 3; }), ElementsAre(1, 3));
  EXPECT_THAT(steps_with([](auto& o) { o.after_step = 3; }), ElementsAre(4));
  EXPECT_THAT(steps_with([](auto& o) { o.newest_only = true; }), ElementsAre(4));
  const SavedCheckpoint last(directory.path() / "checkpoint-00000004");
  EXPECT_EQ(last.user_state(), "{\"loss\":0.5}");
  EXPECT_THAT(last.variables(), ElementsAre("counts"));
  EXPECT_THAT(last.shape("counts"), ElementsAre(1000));
  EXPECT_THAT(last.read_rows<Count>("counts", 4, 3).values, ElementsAre(0, 40, 0));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { (void)last.read<float>("counts"); }),
              NamesAll({"\"counts\"", "int64", "float32"}));
  EXPECT_THAT(error_of(Code::not_found, [&] { (void)last.shape("weights"); }),
              NamesAll({"\"weights\"", "\"counts\""}));
  EXPECT_THAT(error_of(Code::out_of_range, [&] { (void)last.read_rows<Count>("counts", 999, 2); }),
              NamesAll({"\"counts\"", "1000"}));
}

// A6.4: better: a directory that is missing after a timeout is an error that names it.
TEST(Evaluator, NamesAMissingDirectory) {
  const io::TemporaryDirectory directory;
  const auto missing = directory.path() / "later";
  SidecarEvaluator evaluator(
      {.checkpoint_dir = missing, .poll_interval = milliseconds(1), .directory_timeout = milliseconds(20)});
  EXPECT_THAT(error_of(Code::not_found, [&] { evaluator.start([](const SavedCheckpoint&) {}); }),
              NamesAll({missing.string(), "20 ms"}));
  expect_error_naming(Code::invalid_argument, {"SidecarEvaluator", "checkpoint_dir"},
                      [] { SidecarEvaluator nowhere({}); });
  expect_error_naming(Code::invalid_argument, {"SidecarEvaluator", "max_evaluations", "-1"},
                      [&] { SidecarEvaluator wrong({.checkpoint_dir = missing, .max_evaluations = -1}); });
}

// A6.4: better: a timeout beyond the range of the clock never passes.
TEST(Evaluator, WaitsForTheNextCheckpointWithTheLongestTimeout) {
  const io::TemporaryDirectory directory;
  Program program;
  CheckpointManager checkpoints(program.strategy, {.directory = directory.path()});
  checkpoints.save(1);
  std::vector<std::int64_t> evaluated;
  SidecarEvaluator evaluator({.checkpoint_dir = directory.path(),
                              .last_step = 2,
                              .poll_interval = milliseconds(1),
                              .timeout = milliseconds::max()});
  EXPECT_EQ(evaluator.start([&](const SavedCheckpoint& checkpoint) {
    evaluated.push_back(checkpoint.step());
    if (checkpoint.step() == 1) checkpoints.save(2);  // found by the evaluator's next poll
  }),
            0);
  EXPECT_THAT(evaluated, ElementsAre(1, 2));
}

// A6.4: better: the wait for the directory may be of any length.
TEST(Evaluator, WaitsForTheDirectoryWithTheLongestTimeout) {
  const io::TemporaryDirectory parent;
  const auto aside = parent.path() / "aside", directory = parent.path() / "run";
  {
    Program program;
    CheckpointManager(program.strategy, {.directory = aside}).save(1);
  }
  std::promise<std::vector<std::int64_t>> evaluated;
  RankThreadsOptions options{.ranks = 4, .flags = {{"ps", "1"}, {"evaluator", "true"}}};
  options.worker = [&, others = options.ps](const std::shared_ptr<cluster::Runtime>& runtime) {
    const Cluster cluster(runtime);
    if (cluster.role() != Role::evaluator) return others(runtime);
    // The first message arrives before the evaluator looks for the directory, the second one after that.
    constexpr std::uint16_t kToItself = 99;
    transport::Peer& self = runtime->control_peer(runtime->self());
    int messages = 0;
    runtime->control().on_message(kToItself, [&](const transport::Message&) {
      if (++messages == 1) return self.send(kToItself, {});
      std::filesystem::rename(aside, directory);
    });
    SidecarEvaluator evaluator(cluster, {.checkpoint_dir = directory,
                                         .last_step = 1,
                                         .poll_interval = milliseconds(1),
                                         .directory_timeout = milliseconds::max()});
    self.send(kToItself, {});
    std::vector<std::int64_t> steps;
    try {
      evaluator.start([&](const SavedCheckpoint& checkpoint) { steps.push_back(checkpoint.step()); });
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    evaluated.set_value(steps);
    return 0;
  };
  const RankThreads ranks(options);
  const ParameterServerStrategy strategy(ranks.cluster());
  EXPECT_THAT(evaluated.get_future().get(), ElementsAre(1));
}

// A6.4: better: a checkpoint that is deleted while it is evaluated is named, and the next one is evaluated.
TEST(Evaluator, SurvivesTheDeletionOfTheCheckpointThatItReads) {
  const io::TemporaryDirectory directory;
  Program program;
  CheckpointManager checkpoints(program.strategy, {.directory = directory.path(), .max_to_keep = 1});
  checkpoints.save(1);
  // A directory of a save in progress or interrupted, which must be ignored.
  const auto half = directory.path() / "checkpoint-00000009.tmp";
  std::filesystem::copy(directory.path() / "checkpoint-00000001", half);
  std::filesystem::remove(half / "manifest.json");
  const LogText log;
  Seen seen;
  std::vector<std::int64_t> offered;
  SidecarEvaluator evaluator(
      {.checkpoint_dir = directory.path(), .poll_interval = milliseconds(1), .timeout = milliseconds(1)});
  EXPECT_EQ(evaluator.start([&](const SavedCheckpoint& checkpoint) {
    offered.push_back(checkpoint.step());
    if (checkpoint.step() == 1) {
      checkpoints.save(2);  // deletes the first checkpoint, and the interrupted one
      std::filesystem::create_directory(half);
    }
    seen.evaluate(checkpoint);
  }),
            0);
  EXPECT_THAT(offered, ElementsAre(1, 2));
  EXPECT_THAT(seen.sums, ElementsAre(0));
  EXPECT_EQ(evaluator.evaluations(), 1);
  EXPECT_THAT(log.text(), NamesAll({"checkpoint-00000001", "deleted"}));
}

// A6.4: better: it ends with its job, and after the job's last checkpoint.
TEST(Evaluator, EndsWithItsJob) {
  const io::TemporaryDirectory directory;
  Seen seen;
  RankThreadsOptions options{.ranks = 4, .flags = {{"ps", "1"}, {"evaluator", "true"}}};
  options.worker = [&, others = options.ps](const std::shared_ptr<cluster::Runtime>& runtime) {
    const Cluster cluster(runtime);
    if (cluster.role() != Role::evaluator) return others(runtime);
    return SidecarEvaluator(cluster, {.checkpoint_dir = directory.path(), .poll_interval = milliseconds(2)})
        .start(seen.evaluate);
  };
  {
    const RankThreads ranks(options);
    ParameterServerStrategy strategy(ranks.cluster());
    const auto scope = strategy.scope();
    const Variable<Count> counts("counts", Shape{1000}, {});
    ClusterCoordinator coordinator(strategy);
    auto data = coordinator.create_split_dataset(1000, {.examples_per_split = 100});
    CheckpointManager checkpoints(strategy, {.directory = directory.path(), .max_to_keep = 0});
    for (std::int64_t step = 1; !data.done(); ++step) {
      data.schedule_some<&count_each>(4, counts);
      coordinator.join();
      checkpoints.save(step);
    }
    expect_error(Code::failed_precondition,
                 ranks.cluster().name() + " is not an evaluator: start the job with --evaluator",
                 [&] { SidecarEvaluator here(ranks.cluster(), {.checkpoint_dir = directory.path()}); });
  }
  EXPECT_THAT(seen.steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(seen.sums, ElementsAre(400, 800, 1000));
}

}  // namespace
}  // namespace capstan
