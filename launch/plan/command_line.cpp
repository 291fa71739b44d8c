// command_line.cpp -- options and help texts of `capstan plan`.
#include "launch/plan/command_line.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"
#include "launch/plan/quantities.hpp"

namespace capstan::launch::plan {
namespace {

constexpr int kMaxRanks = 100'000;
constexpr int kMaxDim = 1 << 20;
constexpr double kMaxRows = 1e15;
constexpr double kMaxBatch = 1e9;
constexpr int kMaxSlots = 8;
constexpr double kMaxZipf = 10;

}  // namespace

Options::Options(CLI::App& app)
    : command_(*app.add_subcommand("plan", "recommend a number of ps and predict the time of a step")) {
  simulate::PlanRequest& plan = request_.plan;
  simulate::JobModel& job = plan.job;
  const CLI::Range ranks(1, kMaxRanks);
  command_.add_option("--workers", job.workers, "workers of the job")
      ->required()
      ->check(ranks)
      ->type_name("N");
  command_.add_option("--rows", plan.rows, "rows of the table")
      ->required()
      ->check(CLI::Range(1.0, kMaxRows))
      ->type_name("N");
  command_.add_option("--dim", job.dim, "floats of a row")
      ->required()
      ->check(CLI::Range(1, kMaxDim))
      ->type_name("N");
  command_.add_option("--batch", job.batch, "rows that a worker looks up, and pushes, in a step")
      ->required()
      ->check(CLI::Range(1.0, kMaxBatch))
      ->type_name("N");
  command_.add_option("--compute-time", compute_, "computation of a step, without communication")
      ->default_str("10ms")
      ->type_name("TIME");
  command_.add_option("--ps", plan.ps, "predict this number of ps")
      ->default_str("recommend one")
      ->check(ranks)
      ->type_name("N");
  command_.add_option("--bandwidth", bandwidth_, "bandwidth of a link in each direction")
      ->default_str("100Gb/s")
      ->type_name("RATE");
  command_.add_option("--links", links_, "links of a host")
      ->default_str("1")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  command_.add_option("--latency", latency_, "latency between two hosts")
      ->default_str("2us")
      ->type_name("TIME");
  command_.add_flag("--rdma", job.rdma, "adapters read rows and write pushes, without the CPU of the ps");
  command_.add_flag("--one-host", job.one_host, "all ranks share a host, and memory of the ps is mapped");
  command_.add_option("--cores", cores_, "cores of a host")
      ->default_str("one for each rank")
      ->check(ranks)
      ->type_name("N");
  command_.add_option("--workers-per-host", job.workers_per_host, "workers that share the links of a host")
      ->default_str("1")
      ->check(ranks)
      ->type_name("N");
  command_.add_option("--ps-per-host", job.ps_per_host, "ps that share the links of a host")
      ->default_str("1")
      ->check(ranks)
      ->type_name("N");
  command_.add_option("--mode", mode_, "how far workers may be apart: asynchronous, stale or synchronous")
      ->default_str("asynchronous")
      ->check(CLI::IsMember({"asynchronous", "stale", "synchronous"}))
      ->type_name("MODE");
  command_
      .add_option("--staleness", staleness_,
                  "steps between the fastest and the slowest worker; for --mode stale")
      ->default_str("2")
      ->check(CLI::Range(1, kMaxRanks))
      ->type_name("N");
  command_.add_option("--zipf", plan.zipf, "exponent of the distribution of row numbers; 0: uniform")
      ->default_str("0")
      ->check(CLI::Range(0.0, kMaxZipf))
      ->type_name("X");
  command_
      .add_option(
          "--slots", slots_,
          "values of the optimizer for each value of a row: 0 for SGD, 2 for Adam; they add memory, no time")
      ->default_str("0")
      ->check(CLI::Range(0, kMaxSlots))
      ->type_name("N");
  command_.add_option("--ps-memory", ps_memory_, "memory of a ps for rows")
      ->default_str("no limit")
      ->type_name("SIZE");
  command_
      .add_option("--constants", request_.constants,
                  "output of perf_simulate --out or perf/run, for measured times")
      ->type_name("FILE");
  command_.add_flag("--json", request_.json, "print JSON, in seconds and bytes");
}

void Options::reject_conflicts() const {
  if (command_.count("--staleness") > 0 && mode_ != "stale") {
    throw Error(Code::invalid_argument,
                fmt::format("--staleness: expected --mode stale, found --mode {}", mode_));
  }
  if (command_.count("--one-host") == 0) return;
  for (const char* between_hosts :
       {"--rdma", "--bandwidth", "--links", "--latency", "--workers-per-host", "--ps-per-host"}) {
    if (command_.count(between_hosts) == 0) continue;
    throw Error(Code::invalid_argument,
                fmt::format("{}: found with --one-host, expected several hosts", between_hosts));
  }
}

Request Options::request() const {
  reject_conflicts();
  Request request = request_;
  simulate::JobModel& job = request.plan.job;
  job.compute = parse_time("--compute-time", compute_);
  job.host.bandwidth = links_ * parse_bandwidth("--bandwidth", bandwidth_);
  job.host.latency = parse_time("--latency", latency_);
  job.staleness = mode_ == "synchronous" ? 0 : mode_ == "stale" ? staleness_ : -1;
  job.host.cores = static_cast<std::size_t>(cores_);
  request.plan.row_factor = 1 + slots_;
  if (!ps_memory_.empty()) {
    request.plan.ps_memory = parse_size("--ps-memory", ps_memory_);
    if (request.plan.ps_memory <= 0) {
      throw Error(Code::invalid_argument,
                  fmt::format("--ps-memory: expected a size above 0, found \"{}\"", ps_memory_));
    }
  }
  return request;
}

}  // namespace capstan::launch::plan
