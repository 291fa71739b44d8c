// options.cpp -- one help line a flag.
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

void add_options(CLI::App& app, Options& o) {
  app.add_option("--min-bytes", o.min_bytes, "smallest message, such as 4KiB")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-bytes", o.max_bytes, "largest message")->transform(CLI::AsSizeValue(false));
  app.add_option("--rows", o.rows, "rows of a table; 0: a table of 256 MiB, whatever --dim is");
  app.add_option("--dim", o.dims, "floats a row, one or several: 16,64")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--call-ids", o.call_ids, "ids a call, one or several")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--ids", o.ids, "how ids are drawn: uniform, zipf or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"uniform", "zipf"}));
  app.add_option("--zipf-exponent", o.zipf_exponent, "of --ids zipf")->check(CLI::PositiveNumber);
  app.add_option("--iters", o.iters, "samples of each case in a repeat")->check(CLI::PositiveNumber);
  app.add_option("--warmup", o.warmup, "samples before them that do not count")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repeat", o.repeat, "times that all cases are gone through")->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed, "start of the random numbers");
  app.add_option("--only", o.only, "only cases whose name has this in it: call=8192");
  app.add_flag("--huge-pages,!--no-huge-pages", o.huge_pages,
               "the bound's own table asks for huge pages; else as the memory of a ps");
  app.add_flag("--rival,!--no-rival", o.with_rival, "run the MPI rival, where there is one");
  app.add_option("--bounds", o.bounds, "bounds that another program has measured (perf/run writes it)")
      ->check(CLI::ExistingFile);
  app.add_option("--json", o.json, "a file for context and results");
}

}  // namespace capstan::perf
