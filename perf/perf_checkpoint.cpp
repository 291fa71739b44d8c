// perf_checkpoint.cpp -- bandwidth of saving and restoring a table, and the cost of a save for training.
//
// Bound: `dd` of the same bytes on the same disk in the same run, with conv=fsync for saving, and reading
// with a cold cache for restoring (requires root). For training: the same pushes without a save.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kIds = 1024;  // per push
constexpr int kSaves = 3;
constexpr std::chrono::seconds kUndisturbed{5};

std::string directory = ".";
std::uint64_t table_bytes = std::uint64_t{2} << 30;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Returns a number that is comparable between processes of a host.
std::int64_t nanoseconds(Clock::time_point time) { return time.time_since_epoch().count(); }

/// Adds 1 to each element of random rows until the file `until` exists; returns the times at which the pushes
/// were applied.
std::vector<std::int64_t> push_until(Variable<float> table, std::string until) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> applied;
  IndexedSlices<float> push{std::vector<std::int64_t>(kIds), std::vector<float>(kIds * kWidth, 1)};
  for (std::uint64_t turn = 0; turn % 64 != 0 || !std::filesystem::exists(until); ++turn) {
    for (std::int64_t& id : push.ids)
      id = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(table.shape()[0]));
    table.push(push);
    table.flush();
    applied.push_back(nanoseconds(Clock::now()));
  }
  return applied;
}

/// Returns the sum of all elements, read in blocks that fit in memory.
double sum_of(const Variable<float>& table) {
  double sum = 0;
  const std::int64_t rows = table.shape()[0];
  for (std::int64_t first = 0; first < rows; first += 1 << 18) {
    std::vector<std::int64_t> ids;
    for (std::int64_t row = first; row < std::min(rows, first + (1 << 18)); ++row) ids.push_back(row);
    for (const float value : table.lookup(ids).values) sum += value;
  }
  return sum;
}

double sum_of(const SavedCheckpoint& saved) {
  double sum = 0;
  const std::int64_t rows = saved.shape("table").at(0);
  for (std::int64_t first = 0; first < rows; first += 1 << 18) {
    const std::int64_t count = std::min<std::int64_t>(1 << 18, rows - first);
    for (const float value : saved.read_rows<float>("table", first, count).values) sum += value;
  }
  return sum;
}

/// Push rate from `begin` to `end`, and the longest time between two pushes.
struct PushRate {
  double rows_per_second;
  double longest_gap;
};
PushRate push_rate_of(const std::vector<std::int64_t>& applied, std::int64_t begin, std::int64_t end) {
  std::size_t pushes = 0;
  std::int64_t gap = 0;
  for (std::size_t i = 1; i < applied.size(); ++i) {
    if (applied[i] < begin || applied[i - 1] > end) continue;
    ++pushes;
    gap = std::max(gap, applied[i] - applied[i - 1]);
  }
  return {static_cast<double>(pushes * kIds) / (static_cast<double>(end - begin) / 1e9),
          static_cast<double>(gap) / 1e9};
}

/// Returns the seconds that a command took; nullopt if it failed.
std::optional<double> seconds_of_command(const std::string& command) {
  const auto begin = Clock::now();
  if (std::system((command + " 2>/dev/null").c_str()) != 0) return std::nullopt;
  return seconds_since(begin);
}

bool drop_caches() { return std::system("sync && echo 3 2>/dev/null >/proc/sys/vm/drop_caches") == 0; }

std::filesystem::path largest_part(const std::filesystem::path& checkpoint) {
  std::filesystem::path largest;
  std::uintmax_t largest_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.file_size() <= largest_bytes) continue;
    largest_bytes = entry.file_size();
    largest = entry.path();
  }
  return largest;
}

void add(const Session& session, const char* name, double work, const std::vector<double>& seconds,
         bool verified, const std::vector<double>& bound) {
  Result result{name, name, table_bytes, "bytes", "GB/s"};
  result.verified = verified;
  result = rate_result(result, work / 1e9, seconds);
  if (!bound.empty()) {
    result.bound = work / 1e9 / median(bound);
    result.bound_name = "dd";
  }
  session.report.add(result);
}

/// Measures the push rate and the longest gap between pushes while the table is saved. `before`: number of
/// earlier pushes; returns their number including those made here. `which` names the save in the report.
std::size_t measure_training(const Session& session, const Variable<float>& table,
                             CheckpointManager& checkpoints, const std::string& which, std::int64_t step,
                             std::size_t before) {
  const std::string until = directory + "/perf_checkpoint.end";
  std::filesystem::remove(until);
  const auto pushing = session.coordinator.schedule<&push_until>(table, until);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto alone = Clock::now();
  std::this_thread::sleep_for(kUndisturbed);
  const auto begin = Clock::now();
  const auto saved = checkpoints.save(step);
  const auto end = Clock::now();
  std::this_thread::sleep_for(kUndisturbed);
  const auto past = Clock::now();
  std::ofstream(until).close();
  const std::vector<std::int64_t> applied = pushing.fetch();
  std::filesystem::remove(until);
  // Before and after the save: the speed of a shared machine may change while it runs.
  const PushRate rate_before = push_rate_of(applied, nanoseconds(alone), nanoseconds(begin));
  const PushRate rate_after = push_rate_of(applied, nanoseconds(end), nanoseconds(past));
  const PushRate undisturbed{(rate_before.rows_per_second + rate_after.rows_per_second) / 2,
                             std::max(rate_before.longest_gap, rate_after.longest_gap)};
  const PushRate disturbed = push_rate_of(applied, nanoseconds(begin), nanoseconds(end));
  const auto count_before = [&](Clock::time_point time) {
    return std::lower_bound(applied.begin(), applied.end(), nanoseconds(time)) - applied.begin();
  };
  const double pushed = sum_of(table);
  const double in_checkpoint = sum_of(SavedCheckpoint(saved));
  const double all = static_cast<double>(kIds * kWidth);
  const double earlier = all * static_cast<double>(before);
  const bool verified = pushed == earlier + all * static_cast<double>(applied.size()) &&
                        in_checkpoint >= earlier + all * static_cast<double>(count_before(begin)) &&
                        in_checkpoint <= earlier + all * static_cast<double>(count_before(end) + 1);
  const std::string name_of_rate = "pushes during " + which;
  Result rate{name_of_rate, name_of_rate, table_bytes, "bytes", "Mrows/s"};
  rate.verified = verified;
  rate.median = rate.p99 = disturbed.rows_per_second / 1e6;
  rate.bound = undisturbed.rows_per_second / 1e6;
  rate.bound_name = "no save";
  session.report.add(rate);
  const double seconds = std::chrono::duration<double>(end - begin).count();
  for (const auto& [name, value] :
       {std::pair(which + " takes", seconds),
        std::pair("time that pushes lose during " + which,
                  seconds * std::max(0.0, 1 - disturbed.rows_per_second / undisturbed.rows_per_second))}) {
    Result took{name, name, table_bytes, "bytes", "s"};
    took.less_is_better = true;
    took.verified = verified;
    took.median = took.p99 = value;
    session.report.add(took);
  }
  for (const auto& [name, push_rate] : {std::pair("longest gap during " + which, disturbed),
                                        std::pair("longest gap before and after " + which, undisturbed)}) {
    Result gap{name, name, table_bytes, "bytes", "ms"};
    gap.less_is_better = true;
    gap.verified = verified;
    gap.median = gap.p99 = 1e3 * push_rate.longest_gap;
    session.report.add(gap);
  }
  return before + applied.size();
}

/// Adds 1 to each element of `rows` different rows.
void push_some(Variable<float> table, std::int64_t rows) {
  const std::int64_t stride = table.shape()[0] / rows;
  IndexedSlices<float> push{{}, std::vector<float>(kIds * kWidth, 1)};
  for (std::int64_t row = 0; row < rows; ++row) {
    push.ids.push_back(row * stride);
    if (static_cast<std::int64_t>(push.ids.size()) < kIds) continue;
    table.push(push);
    push.ids.clear();
  }
  table.flush();
}

/// Measures an increment after 1% of the rows has changed. Bound: writing its bytes at the rate of the full
/// save, which took `full_seconds`.
void measure_increment(const Session& session, const Variable<float>& table, CheckpointManager& checkpoints,
                       double full_seconds) {
  checkpoints.save(200, "null", {.incremental = true});
  const std::int64_t rows = std::max<std::int64_t>(1, table.shape()[0] / 100 / kIds) * kIds;
  const double before = sum_of(table);
  session.coordinator.schedule<&push_some>(table, rows);
  session.coordinator.join();
  const auto begin = Clock::now();
  const auto saved = checkpoints.save(201, "null", {.incremental = true});
  const double seconds = seconds_since(begin);
  const double pushed = static_cast<double>(rows * kWidth);
  const double bytes = static_cast<double>(std::filesystem::file_size(largest_part(saved)));
  Result result{"save of 1 % of the rows", "save of 1 % of the rows", table_bytes, "bytes", "ms"};
  result.less_is_better = true;
  result.verified = sum_of(SavedCheckpoint(saved)) == before + pushed &&
                    checkpoints.restore_latest() == 201 && sum_of(table) == before + pushed;
  result.median = result.p99 = 1e3 * seconds;
  result.bound = 1e3 * full_seconds * bytes / static_cast<double>(table_bytes);
  result.bound_name = "its bytes at the rate of a full save";
  session.report.add(result);
}

void measure_all(const Session& session) {
  const auto rows = static_cast<std::int64_t>(table_bytes / (kWidth * sizeof(float)));
  const Variable<float> table("table", Shape{rows, kWidth}, {}, {optimizers::SGD{-1}});
  const std::filesystem::path checkpoint_directory = directory + "/perf_checkpoint";
  std::filesystem::remove_all(checkpoint_directory);
  std::vector<double> saving, restoring, dd_writing, dd_reading;
  bool verified = true;
  {
    CheckpointManager checkpoints(session.strategy, {.directory = checkpoint_directory, .max_to_keep = 1});
    // The first save allocates memory for rows that change meanwhile; later ones reuse it.
    const std::size_t pushes = measure_training(session, table, checkpoints, "the first save", 100, 0);
    measure_training(session, table, checkpoints, "a later save", 101, pushes);
    const double sum = sum_of(table);
    for (int save = 1; save <= kSaves; ++save) {
      const auto begin = Clock::now();
      const std::filesystem::path saved = checkpoints.save(101 + save);
      saving.push_back(seconds_since(begin));
      const std::string part = largest_part(saved).string();
      const std::string copy = directory + "/perf_checkpoint.dd";
      if (const auto seconds = seconds_of_command(fmt::format("dd if={} of={} bs=1M conv=fsync", part, copy)))
        dd_writing.push_back(*seconds);
      if (drop_caches()) {
        if (const auto seconds = seconds_of_command(fmt::format("dd if={} of=/dev/null bs=1M", copy)))
          dd_reading.push_back(*seconds);
        drop_caches();
        const auto read = Clock::now();
        verified = verified && checkpoints.restore_latest() == 101 + save;
        restoring.push_back(seconds_since(read));
        verified = verified && sum_of(table) == sum;
      }
      std::filesystem::remove(copy);
    }
  }
  {
    CheckpointManager checkpoints(session.strategy, {.directory = checkpoint_directory, .max_to_keep = 2});
    measure_increment(session, table, checkpoints, median(saving));
  }
  std::filesystem::remove_all(checkpoint_directory);
  const auto bytes = static_cast<double>(table_bytes);
  add(session, "save", bytes, saving, verified, dd_writing);
  if (restoring.empty()) {
    std::fprintf(stderr, "restore is not measured: dropping the page cache requires root\n");
  } else {
    add(session, "restore", bytes, restoring, verified, dd_reading);
  }
}

void more_flags(CLI::App& app) {
  app.add_option("--directory", directory, "directory for the checkpoints, on the disk to measure")
      ->capture_default_str();
  app.add_option("--table-bytes", table_bytes, "size of the table")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  using namespace capstan::perf;
  return run(
      argc, argv,
      {.question =
           "Measures saving and restoring a table, compared with dd, and the cost of a save for training.",
       .measure = &measure_all,
       .more_flags = &more_flags,
       .one_closure_per_worker = false});
}
