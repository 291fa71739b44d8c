// options.cpp -- command-line flags and their help texts.
#include "perf/bench/options.hpp"

#include <CLI/CLI.hpp>
#include <fstream>

namespace capstan::perf {

bool shared_memory_may_be_huge() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  return line.find("[never]") == line.npos && line.find("[deny]") == line.npos && !line.empty();
}

namespace {

/// "4KiB" -> 4096. Throws CLI::ValidationError.
std::uint64_t bytes_of(std::string text) {
  const std::string fault = CLI::AsSizeValue(/*kb_is_1000=*/false)(text);
  if (!fault.empty()) throw CLI::ValidationError("--message-size", fault);
  return std::stoull(text);
}

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.add_option("--min-bytes", o.min_bytes, "smallest message, such as 4KiB")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-bytes", o.max_bytes, "largest message")->transform(CLI::AsSizeValue(false));
  app.add_option_function<std::string>(
         "-m,--message-size",
         [&o](const std::string& range) {
           const std::size_t colon = range.find(':');
           const std::string largest = range.substr(colon == range.npos ? 0 : colon + 1);
           if (colon != range.npos && colon != 0) o.min_bytes = bytes_of(range.substr(0, colon));
           if (!largest.empty()) o.max_bytes = bytes_of(largest);
         },
         "smallest and largest message of perf_dense: 4KiB:1MiB, 4KiB: or 1MiB")
      ->type_name("[MIN:]MAX");
  app.add_option("--rows", o.rows, "rows of a table; 0: a table of 256 MiB for any --dim");
  app.add_option("--dim", o.dims, "floats per row, comma-separated: 16,64")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--call-ids", o.call_ids, "ids per call, comma-separated")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--ids", o.ids, "distribution of the ids: uniform, zipf or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"uniform", "zipf"}));
  app.add_option("--zipf-exponent", o.zipf_exponent, "exponent of --ids zipf")->check(CLI::PositiveNumber);
  app.add_option("-i,--iters", o.iters, "samples of each case in a repeat")->check(CLI::PositiveNumber);
  app.add_option("-x,--warmup", o.warmup, "warm-up samples before each case")->check(CLI::NonNegativeNumber);
  app.add_option("--repeat", o.repeat, "number of passes over all cases")->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "seed of the random numbers");
  app.add_option("--only", o.only, "run only cases whose name contains this: call=8192");
  app.add_flag("--huge-pages,!--no-huge-pages", o.huge_pages,
               "huge pages for the table of the bound (default: as for the memory of a ps)");
  app.add_flag("--rival,!--no-rival", o.with_rival, "run the MPI rival, if there is one");
  app.add_flag_function(
      "--tcp-bound,!--no-tcp-bound", [&o](std::int64_t count) { o.tcp_bound = count > 0; },
      "bound of perf_lookup, perf_push and perf_dense: a raw TCP stream between the ranks (default: if "
      "only TCP connects their hosts)");
  app.add_option("--bounds", o.bounds, "file of bounds measured by another program (written by perf/run)")
      ->check(CLI::ExistingFile);
  app.add_option("--json", o.json, "output file for context and results");
  app.add_option("--csv", o.csv, "output file for the results as comma-separated values");
}

}  // namespace capstan::perf
