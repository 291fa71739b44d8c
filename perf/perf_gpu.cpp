// perf_gpu.cpp -- rate at which a GPU reads and updates rows of a table in its own memory. Requires neither
// MPI nor UCX.
//
//   perf_gpu [GIBIBYTES of the table (4)] [JSON]
//
// Bound: a copy of as many bytes within the GPU's memory (cudaMemcpyAsync), in the same run; for staging, a
// copy between the GPU and pinned host memory, and the memcpy of the core that fills it. A measurement is 20
// calls between two events; the median of 30 measurements counts. A step of KGE has its rows in the GPU's
// memory; its target is 10 times the rate of two CPU cores, 52,679 triples/s with ComplEx
// (docs/performance.md). Ranking of held-out triples, with the table in the GPU's memory, is compared with
// its matrix products alone. Before a case is timed, the result of a call is compared with the host's. The
// same lookups and pushes are measured on all CPU cores. With CAPSTAN_GPU_STAND_INS in the environment and no
// GPU, each case is one call on stand-ins, which verifies the result; the rates are meaningless.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/optimizers.hpp"
#include "gpu/gpu.hpp"
#include "gpu/row_bodies.hpp"
#include "gpu/row_ops.hpp"
#include "gpu/staging.hpp"
#include "perf/gpu/first_step.hpp"
#include "perf/gpu/host_rates.hpp"
#include "perf/gpu/kge_case.hpp"
#include "perf/gpu/rank_case.hpp"

namespace capstan::perf {
namespace {

using gpu::Values;

constexpr std::uint32_t kIds = 65536;
constexpr int kCalls = 20;
constexpr int kRepeats = 30;
constexpr int kSets = 8;  // sets of ids and buffers that calls use in turn, together larger than the caches
constexpr double kGiga = 1e9;
const Optimizer kSgd = optimizers::SGD{0.5};
const Optimizer kAdam = optimizers::Adam{0.01};

struct Case {
  std::string name;
  double gigabytes_per_second = 0;
  double of_copy = 0;
  double target = 0;
  bool verified = false;
};

/// A lookup or push with uniform ids, on the GPU and on the CPU cores.
struct HostComparison {
  std::string name;
  double gpu_rows = 0;  // per second
  double host_rows = 0;
  bool verified = false;
};

struct KgeRate {
  std::string name;
  double triples_per_second = 0;
  double tflops = 0;  // rate of the matrix products, TFLOP/s
  double target = 0;  // triples/s
  bool verified = false;
};

struct RankRate {
  std::string name;
  double pairs_per_second = 0;  // pairs of a query and an entity
  double of_product = 0;        // ratio to the rate of the matrix products alone
  bool verified = false;
};

float pattern(std::uint64_t i) { return static_cast<float>(i * 2654435761U % 16777216) / 16777216.0F; }

class Bench {
 public:
  explicit Bench(std::uint64_t table_bytes)
      : table_bytes_(table_bytes), stream_(0), pattern_(table_bytes / sizeof(float)) {
    for (std::size_t i = 0; i < pattern_.size(); ++i) pattern_[i] = pattern(i);
  }

  void run() {
    copy_rate_ = rate_of_copy();
    cases_.push_back({"copy within the GPU's memory", copy_rate_, 1, 0, true});
    staging();
    for (const std::uint64_t dim : {64, 128}) {
      const double looked_up = lookup(dim, false);
      const double pushed = push("sgd", kSgd, dim, false, false, 0.6);
      const double pushed_adam = push("adam", kAdam, dim, false, false, 0.6);
      push("adam, deterministic", kAdam, dim, false, true, 0);
      lookup(dim, true);
      push("sgd", kSgd, dim, true, false, 0);
      push("adam", kAdam, dim, true, false, 0);
      push("adam, deterministic", kAdam, dim, true, true, 0);
      beside_host(dim, looked_up, pushed, pushed_adam);
    }
    for (const auto model : {kge::ModelKind::complex, kge::ModelKind::distmult, kge::ModelKind::transe}) {
      kge_step(model);
      kge_ranks(model);
    }
  }
  const std::vector<Case>& cases() const { return cases_; }
  const std::vector<HostComparison>& beside_host() const { return beside_host_; }
  const std::vector<KgeRate>& kge_rates() const { return kge_rates_; }
  const std::vector<RankRate>& rank_rates() const { return rank_rates_; }

 private:
  /// Median duration of a call, in milliseconds.
  template <class Call>
  double milliseconds(const Call& call) {
    std::vector<double> all;
    const bool timed = !gpu::are_stand_ins();
    const int calls = timed ? kCalls : 1;
    for (int repeat = timed ? -3 : 0; repeat < (timed ? kRepeats : 1); ++repeat) {
      gpu::Event begin(0, gpu::Timing::yes), end(0, gpu::Timing::yes);
      begin.record(stream_);
      for (int i = 0; i < calls; ++i) call((repeat + 3) * calls + i);
      end.record(stream_);
      const double one = end.milliseconds_since(begin) / calls;
      if (repeat >= 0) all.push_back(one);
    }
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }

  /// Median duration of a call of this thread, in milliseconds.
  template <class Call>
  static double milliseconds_here(const Call& call) {
    std::vector<double> all;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
      all.push_back(taken.count());
    }
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }

  double rate_of_copy() {
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    const gpu::Memory from(0, kBytes), to(0, kBytes);
    gpu::fill_with_zeros(stream_, from.data(), kBytes);
    const double time = milliseconds([&](int) { gpu::copy(stream_, to.data(), from.data(), kBytes); });
    return 2 * kBytes / (time * 1e-3) / kGiga;
  }

  /// Copies between pageable host memory, mostly cached, and the GPU, as Variable::pull and push_dense do.
  void staging() {
    const std::size_t bytes = std::min<std::size_t>(table_bytes_, std::size_t{256} << 20);
    std::vector<std::byte> host(bytes);
    for (std::size_t i = 0; i < bytes; ++i) host[i] = std::byte(i * 131 % 251);
    const Values<std::byte> device(0, bytes);
    gpu::PinnedMemory pinned(bytes);
    std::memcpy(pinned.data(), host.data(), bytes);
    const auto rate = [&](double time) { return static_cast<double>(bytes) / (time * 1e-3) / kGiga; };
    const double in =
        rate(milliseconds([&](int) { gpu::copy(stream_, device.data(), pinned.data(), bytes); }));
    const double out =
        rate(milliseconds([&](int) { gpu::copy(stream_, pinned.data(), device.data(), bytes); }));
    cases_.push_back({"pinned memory to the GPU", in, in / copy_rate_, 0, true});
    cases_.push_back({"the GPU to pinned memory", out, out / copy_rate_, 0, true});
    // One core fills the pinned pieces, so its memcpy bounds what a stage can carry.
    const double core = rate(milliseconds_here([&] {
      for (std::size_t at = 0; at < bytes; at += gpu::kStagingPiece) {
        std::memcpy(pinned.data() + at % (2 * gpu::kStagingPiece), host.data() + at,
                    std::min(gpu::kStagingPiece, bytes - at));
      }
    }));
    cases_.push_back({"memcpy of one core to pinned memory", core, core / copy_rate_, 0, true});
    const double bound = std::min(in, core);

    gpu::fill_with_zeros(stream_, device.data(), bytes);
    gpu::Staging staging(0);
    const auto to_gpu = [&](int) {
      staging.to_gpu(stream_, device.data(), bytes, 1,
                     [&](std::uint64_t first, std::size_t count, std::byte* to) {
                       std::memcpy(to, host.data() + first, count);
                     });
    };
    const auto from_gpu = [&](int) {
      const std::byte* back = staging.from_gpu(stream_, device.data(), bytes);
      staging.await(bytes);
      return std::memcmp(back, host.data(), bytes) == 0;
    };
    to_gpu(0);
    const bool verified = from_gpu(0);
    const double staged_in = rate(milliseconds(to_gpu));
    const double staged_out = rate(milliseconds([&](int) {
      (void)staging.from_gpu(stream_, device.data(), bytes);
      staging.await(bytes);
    }));
    cases_.push_back({"staged to the GPU, of the slower copy", staged_in, staged_in / bound, 0.9, verified});
    cases_.push_back(
        {"staged from the GPU, of the pinned copy", staged_out, staged_out / out, 0.9, verified});
  }

  template <class T>
  Values<T> to_gpu(const std::vector<T>& values) {
    Values<T> device(0, values.size());
    gpu::copy(stream_, device.data(), values.data(), values.size() * sizeof(T));
    stream_.wait();
    return device;
  }
  template <class T>
  std::vector<T> to_host(const T* device, std::size_t count) {
    std::vector<T> host(count);
    gpu::copy(stream_, host.data(), device, count * sizeof(T));
    stream_.wait();
    return host;
  }

  struct Table {
    std::uint32_t rows;
    Values<float> values;
    Values<std::uint32_t> first_bad;
    std::vector<std::vector<std::uint32_t>> host_ids;
    std::vector<Values<std::uint32_t>> ids;
  };
  Table table_of(std::uint64_t dim, bool zipf) {
    Table table{static_cast<std::uint32_t>(table_bytes_ / (dim * sizeof(float))), {}, {}, {}, {}};
    table.values = to_gpu(pattern_);
    table.first_bad = to_gpu(std::vector<std::uint32_t>{gpu::kNoBadRow});
    std::mt19937_64 random(1);
    for (int set = 0; set < kSets; ++set) {
      std::vector<std::uint32_t> ids(kIds);
      for (std::uint32_t& id : ids)
        id = zipf ? zipf_rank(table.rows, random) : static_cast<std::uint32_t>(random() % table.rows);
      table.ids.push_back(to_gpu(ids));
      table.host_ids.push_back(std::move(ids));
    }
    return table;
  }
  /// Draws a popularity rank by inversion of a density of 1/x^1.05, and maps it to a row.
  static std::uint32_t zipf_rank(std::uint32_t rows, std::mt19937_64& random) {
    constexpr double kExponent = 1.05;
    const double u = std::uniform_real_distribution<double>()(random);
    const double power = 1 - kExponent;
    const double rank = std::pow(1 + u * (std::pow(static_cast<double>(rows), power) - 1), 1 / power);
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(rank) * 2654435761U % rows);
  }

  /// Adds a case; returns rows per second of a call with kIds rows.
  double add(std::string name, double bytes, double time, double target, bool verified) {
    const double rate = bytes / (time * 1e-3) / kGiga;
    cases_.push_back({std::move(name), rate, rate / copy_rate_, target, verified});
    return kIds / (time * 1e-3);
  }

  double lookup(std::uint64_t dim, bool zipf) {
    const Table table = table_of(dim, zipf);
    const Values<float> outs(0, kSets * kIds * dim);
    const auto out = [&](int i) { return outs.data() + static_cast<std::size_t>(i % kSets) * kIds * dim; };
    const auto call = [&](int i) {
      gpu::gather(stream_, {reinterpret_cast<std::byte*>(table.values.data()), table.rows,
                            dim * sizeof(float), table.ids[static_cast<std::size_t>(i % kSets)].data(), kIds,
                            reinterpret_cast<std::byte*>(out(i)), table.first_bad.data()});
    };
    call(1);
    const auto got = to_host(out(1), kIds * dim);
    bool verified = to_host(table.first_bad.data(), 1)[0] == gpu::kNoBadRow;
    for (std::size_t i = 0; i < got.size(); ++i) {
      verified = verified && got[i] == pattern(table.host_ids[1][i / dim] * dim + i % dim);
    }
    const double bytes =
        static_cast<double>(kIds) * (2 * static_cast<double>(dim) * sizeof(float) + sizeof(std::uint32_t));
    return add(fmt::format("lookup, {} floats, {}", dim, zipf ? "zipf" : "uniform"), bytes,
               milliseconds(call), zipf ? 0 : 0.7, verified);
  }

  double push(const char* name, const Optimizer& o, std::uint64_t dim, bool zipf, bool deterministic,
              double target) {
    const Table table = table_of(dim, zipf);
    const bool adam = o.kind == OptimizerKind::adam;
    std::vector<Values<float>> slots;
    for (int slot = 0; slot < (adam ? 2 : 0); ++slot) {
      slots.emplace_back(0, table.values.size());
      gpu::fill_with_zeros(stream_, slots.back().data(), table.values.size() * sizeof(float));
    }
    std::vector<float> host_gradient(kIds * dim);
    for (std::size_t i = 0; i < host_gradient.size(); ++i) host_gradient[i] = pattern(i) / 64;
    const Values<float> gradients(0, kSets * host_gradient.size());  // equal copies
    for (std::size_t set = 0; set < kSets; ++set) {
      gpu::copy(stream_, gradients.data() + set * host_gradient.size(), host_gradient.data(),
                host_gradient.size() * sizeof(float));
    }
    stream_.wait();
    gpu::Updater updater(stream_, table.rows, deterministic);
    const auto call = [&](int i) {
      updater.apply(stream_, o,
                    gpu::Update<float>{table.values.data(),
                                       adam ? slots[0].data() : nullptr,
                                       adam ? slots[1].data() : nullptr,
                                       dim,
                                       table.rows,
                                       table.ids[static_cast<std::size_t>(i % kSets)].data(),
                                       0,
                                       kIds,
                                       gradients.data() + static_cast<std::size_t>(i % kSets) * kIds * dim,
                                       1 + i,
                                       {},
                                       table.first_bad.data()});
    };
    call(0);
    const bool verified = is_correct(o, table, dim, host_gradient);
    double bytes = (adam ? 7.0 : 3.0) * static_cast<double>(kIds) * static_cast<double>(dim) * sizeof(float);
    bytes += kIds * sizeof(std::uint32_t);
    return add(fmt::format("push {}, {} floats, {}", name, dim, zipf ? "zipf" : "uniform"), bytes,
               milliseconds(call), target, verified);
  }

  void beside_host(std::uint64_t dim, double looked_up, double pushed, double pushed_adam) {
    const bool timed = !gpu::are_stand_ins();
    HostTable table(table_bytes_, dim, kIds, timed ? kCalls : 1, timed ? 10 : 1);
    const auto add = [&](const char* what, double gpu_rows, HostRate host) {
      beside_host_.push_back(
          {fmt::format("{}, {} floats, uniform", what, dim), gpu_rows, host.rows_per_second, host.verified});
    };
    add("lookup", looked_up, table.lookup());
    add("push sgd", pushed, table.push(kSgd));
    add("push adam", pushed_adam, table.push(kAdam));
  }

  void kge_step(kge::ModelKind model) {
    KgeCase one(stream_, model);
    const bool verified = one.is_correct();
    const double seconds = milliseconds([&](int i) { one.step(i); }) * 1e-3;
    kge_rates_.push_back({one.name(), one.triples() / seconds, one.flops() / seconds * 1e-12,
                          model == kge::ModelKind::complex ? 10 * 52679.0 : 0, verified});
  }

  void kge_ranks(kge::ModelKind model) {
    RankCase one(stream_, model);
    const bool verified = one.is_correct();
    const double rate = one.pairs() / (milliseconds([&](int) { one.rank(); }) * 1e-3);
    const double bound = one.pairs() / (milliseconds([&](int) { one.multiply(); }) * 1e-3);
    rank_rates_.push_back({one.name(), rate, rate / bound, verified});
  }

  /// Compares up to 1,000 rows after one push with SGD's rule, or with Adam's first step, which is nearly the
  /// learning rate.
  bool is_correct(const Optimizer& o, const Table& table, std::uint64_t dim,
                  const std::vector<float>& gradient) {
    const std::vector<std::uint32_t>& ids = table.host_ids[0];
    if (to_host(table.first_bad.data(), 1)[0] != gpu::kNoBadRow) return false;
    const std::set<std::uint32_t> checked_rows(ids.begin(), ids.begin() + 1000);
    for (const std::uint32_t row : checked_rows) {
      std::vector<double> sum(dim);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != row) continue;
        for (std::uint64_t j = 0; j < dim; ++j) sum[j] += static_cast<double>(gradient[i * dim + j]);
      }
      const auto now = to_host(table.values.data() + row * dim, dim);
      for (std::uint64_t j = 0; j < dim; ++j) {
        if (!is_after_first_step(o, sum[j], pattern(row * dim + j), now[j])) return false;
      }
    }
    return true;
  }

  std::uint64_t table_bytes_;
  gpu::Stream stream_;
  std::vector<float> pattern_;  // initial values of the table
  double copy_rate_ = 0;
  std::vector<Case> cases_;
  std::vector<HostComparison> beside_host_;
  std::vector<KgeRate> kge_rates_;
  std::vector<RankRate> rank_rates_;
};

/// Returns false if a result was wrong.
bool print(const Bench& bench, const char* json) {
  std::string text = "[";
  bool correct = true;
  fmt::print("{:<44}{:>10}{:>10}{:>8}  answer\n", "65,536 rows per call", "GB/s", "of copy", "target");
  for (const Case& one : bench.cases()) {
    fmt::print("{:<44}{:>10.0f}{:>10.2f}{:>8}  {}\n", one.name, one.gigabytes_per_second, one.of_copy,
               one.target > 0 ? fmt::format("{:.2f}", one.target) : "-", one.verified ? "verified" : "WRONG");
    text += fmt::format("{}\n  {{\"case\": \"{}\", \"gb_s\": {}, \"of_copy\": {}, \"verified\": {}}}",
                        text.size() > 1 ? "," : "", one.name, one.gigabytes_per_second, one.of_copy,
                        one.verified);
    correct = correct && one.verified;
  }
  fmt::print("{:<44}{:>10}{:>10}{:>8}  the cores' answer\n",
             fmt::format("the GPU compared with {} cores", std::thread::hardware_concurrency()), "M rows/s",
             "ratio", "target");
  for (const HostComparison& one : bench.beside_host()) {
    fmt::print("{:<44}{:>10.0f}{:>10.1f}{:>8}  {}\n", one.name, one.gpu_rows * 1e-6,
               one.gpu_rows / one.host_rows, 15, one.verified ? "verified" : "WRONG");
    text += fmt::format(
        ",\n  {{\"case\": \"{}, beside cores\", \"rows_s\": {}, \"cores_rows_s\": {}, \"verified\": {}}}",
        one.name, one.gpu_rows, one.host_rows, one.verified);
    correct = correct && one.verified;
  }
  fmt::print("{:<44}{:>10}{:>10}{:>8}  answer\n", "one batch per call", "triples/s", "TFLOP/s", "target");
  for (const KgeRate& one : bench.kge_rates()) {
    fmt::print("{:<44}{:>10.0f}{:>10.2f}{:>8}  {}\n", one.name, one.triples_per_second, one.tflops,
               one.target > 0 ? fmt::format("{:.0f}", one.target) : "-", one.verified ? "verified" : "WRONG");
    text += fmt::format(",\n  {{\"case\": \"{}\", \"triples_s\": {}, \"tflop_s\": {}, \"verified\": {}}}",
                        one.name, one.triples_per_second, one.tflops, one.verified);
    correct = correct && one.verified;
  }
  fmt::print("{:<44}{:>10}{:>10}{:>8}  answer\n", "2,048 queries per call", "G pairs/s", "of gemm", "target");
  for (const RankRate& one : bench.rank_rates()) {
    fmt::print("{:<44}{:>10.1f}{:>10.2f}{:>8}  {}\n", one.name, one.pairs_per_second / kGiga, one.of_product,
               "0.80", one.verified ? "verified" : "WRONG");
    text += fmt::format(",\n  {{\"case\": \"{}\", \"pairs_s\": {}, \"of_gemm\": {}, \"verified\": {}}}",
                        one.name, one.pairs_per_second, one.of_product, one.verified);
    correct = correct && one.verified;
  }
  if (json != nullptr) std::ofstream(json) << text << "\n]\n";
  return correct;
}

}  // namespace
}  // namespace capstan::perf

int main(int argc, char** argv) {
  namespace gpu = capstan::gpu;
  CLI::App app("Measures rows per second of the kernels of a GPU, compared with its memory bandwidth.");
  double gibibytes = 4;
  std::string json;
  app.add_option("GIB", gibibytes, "size of the table in GiB (default: 4)");
  app.add_option("JSON", json, "output file for context and results");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (gpu::count() == 0 && std::getenv("CAPSTAN_GPU_STAND_INS") != nullptr) gpu::use_stand_ins(1);
  if (gpu::count() == 0) {
    std::fprintf(stderr, "perf_gpu: %s\n", gpu::why_none().c_str());
    return 3;
  }
  try {
    const gpu::Info info = gpu::info(0);
    fmt::print("{} ({}), compute capability {}.{}, {:.0f} GB\n", info.name, info.bus, info.major, info.minor,
               static_cast<double>(info.bytes) * 1e-9);
    capstan::perf::Bench bench(static_cast<std::uint64_t>(gibibytes * (std::uint64_t{1} << 30)));
    bench.run();
    return capstan::perf::print(bench, json.empty() ? nullptr : json.c_str()) ? 0 : 1;
  } catch (const capstan::Error& error) {
    std::fprintf(stderr, "perf_gpu: %s\n", error.what());
    return 1;
  }
}
