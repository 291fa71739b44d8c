// perf_input.cpp -- rate at which the readers convert text to examples, in one thread.
//
// Bound: read(2) of the same file through a buffer, without processing. Both find the file in the page cache,
// so the reader is measured, not the disk. Before a reader is timed, the sum of its examples is compared with
// the sum of the examples written.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "capstan/readers.hpp"
#include "io/data/byte_stream.hpp"
#include "perf/bench/program.hpp"
#include "perf/bench/statistics.hpp"
#include "perf/bench/timing.hpp"

namespace capstan::perf {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{64} << 20;  // fits in any page cache
constexpr std::int64_t kBatch = 1024;
constexpr std::int64_t kFeatures = 1'000'000;

/// Checksum of the examples of a file: equal sums show that every number was read correctly.
struct Sums {
  std::uint64_t examples = 0;
  std::uint64_t ids = 0;  // sum modulo 2^64
  double values = 0;      // sum of numbers with few digits, hence exact
  bool operator==(const Sums&) const = default;
};

struct File {
  explicit File(const char* what)
      : path(std::filesystem::temp_directory_path() /
             fmt::format("capstan-perf-input-{}-{}", ::getpid(), what)) {}
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::filesystem::path path;
  std::uint64_t bytes = 0;
  Sums sums;
};

/// Fills the file with lines that `add(line, random, sums)` appends.
template <class Add>
void fill(File& file, const Options& options, const Add& add) {
  const std::uint64_t target_bytes = std::min(options.max_bytes, kMaxFileBytes);
  std::mt19937_64 random(options.seed);
  std::ofstream out(file.path, std::ios::binary);
  std::string line;
  while (file.bytes < target_bytes) {
    line.clear();
    add(line, random, file.sums);
    ++file.sums.examples;
    file.bytes += line.size();
    out << line;
  }
  out.close();
  if (!out) throw Error(Code::resource_exhausted, "cannot write " + file.path.string());
}

/// About 14 features per line as in a9a, or 39 with values as in click data, with ascending ids.
void add_libsvm(std::string& line, std::mt19937_64& random, Sums& sums, bool with_values) {
  const int features = with_values ? 39 : 14;
  const bool positive = random() % 4 == 0;
  line += positive ? "+1" : "-1";
  sums.values += positive ? 1 : -1;
  std::uint64_t id = 0;
  for (int i = 0; i < features; ++i) {
    id += 1 + random() % (kFeatures / features);
    sums.ids += id - 1;
    // Six digits after the decimal point, but exact in a float: sums do not depend on their order.
    const auto sixtyfourths = static_cast<int>(random() % 64);
    const double value = with_values ? sixtyfourths / 64.0 : 1;
    line += with_values ? fmt::format(" {}:{:.6f}", id, value) : fmt::format(" {}:1", id);
    sums.values += value;
  }
  line += '\n';
}

void add_criteo(std::string& line, std::mt19937_64& random, Sums& sums) {
  const int label = random() % 4 == 0 ? 1 : 0;
  line += std::to_string(label);
  sums.values += label;
  for (std::size_t i = 0; i < CriteoExample::kIntegers; ++i) {
    line += '\t';
    if (random() % 5 == 0) continue;
    const auto integer = static_cast<std::int64_t>(random() % 2000) - 2;
    line += std::to_string(integer);
    sums.values += static_cast<double>(integer);
  }
  for (std::size_t i = 0; i < CriteoExample::kCategories; ++i) {
    line += '\t';
    if (random() % 8 == 0) continue;
    const auto category = static_cast<std::uint32_t>(random());
    line += fmt::format("{:08x}", category);
    sums.ids += category;
  }
  line += '\n';
}

void add_up(const SparseBatch& batch, Sums& sums) {
  sums.examples += static_cast<std::uint64_t>(batch.size());
  for (const float label : batch.labels) sums.values += static_cast<double>(label);
  for (const std::int64_t id : batch.ids) sums.ids += static_cast<std::uint64_t>(id);
  for (const float value : batch.values) sums.values += static_cast<double>(value);
}
void add_up(const SparseExample& example, Sums& sums) {
  ++sums.examples;
  sums.values += static_cast<double>(example.label);
  for (const std::int64_t id : example.ids) sums.ids += static_cast<std::uint64_t>(id);
  for (const float value : example.values) sums.values += static_cast<double>(value);
}
void add_up(const CriteoExample& example, Sums& sums) {
  ++sums.examples;
  sums.values += static_cast<double>(example.label);
  for (const std::int64_t integer : example.integers) sums.values += static_cast<double>(integer);
  for (const std::uint32_t category : example.categories) sums.ids += category;
}

std::uint64_t plain_read(const File& file) {
  static std::vector<char> buffer(256 * 1024);
  io::ByteStream stream(file.path);
  std::uint64_t bytes = 0;
  while (const std::size_t got = stream.read(buffer.data(), buffer.size())) bytes += got;
  return bytes;
}

template <class T>
void measure(const char* name, const File& file, const Dataset<T>& dataset, const Options& options,
             Report& report) {
  if (!options.wants(name)) return;
  Sums found;
  for (const T& element : dataset) add_up(element, found);
  Result result{name, name, file.bytes, "bytes", "MB/s"};
  result.verified = found == file.sums && plain_read(file) == file.bytes;
  Timings timings;
  std::uint64_t elements = 0;
  take_turns(
      options.warmup, options.iters * options.repeat, NoBarrier(), true, [] {},
      [&] {
        auto reading = dataset.make_iterator();
        while (reading.try_next()) ++elements;
      },
      [&] { elements += plain_read(file); }, timings);
  const double megabytes = static_cast<double>(file.bytes) / 1e6;
  result = rate_result(std::move(result), megabytes, timings.measured);
  result.bound = megabytes / median(timings.bound);
  result.bound_name = "read(2) of the same file";
  result.verified = result.verified && elements > 0;
  report.add(std::move(result));
}

void measure_all(const Options& options, Report& report) {
  const LibsvmOptions libsvm_options{.features = kFeatures + 64};
  {
    File file("ones");
    fill(file, options, [](auto& line, auto& random, auto& sums) { add_libsvm(line, random, sums, false); });
    measure("libsvm batches, ones", file, libsvm_batches({file.path}, kBatch, libsvm_options), options,
            report);
  }
  {
    File file("values");
    fill(file, options, [](auto& line, auto& random, auto& sums) { add_libsvm(line, random, sums, true); });
    measure("libsvm batches, values", file, libsvm_batches({file.path}, kBatch, libsvm_options), options,
            report);
    measure("libsvm examples, values", file, libsvm({file.path}, libsvm_options), options, report);
  }
  File file("criteo");
  fill(file, options, [](auto& line, auto& random, auto& sums) { add_criteo(line, random, sums); });
  measure("criteo examples", file, criteo({file.path}), options, report);
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  return capstan::perf::run_here(argc, argv,
                                 "Measures the rate, in megabytes of text per second, at which the readers "
                                 "produce examples in one thread.",
                                 &capstan::perf::measure_all);
}
