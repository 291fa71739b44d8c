// options.hpp -- flags common to all benchmarks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace capstan::perf {

/// Returns true if shared memory, such as that of a ps, can have huge pages
/// (/sys/kernel/mm/transparent_hugepage/shmem_enabled).
bool shared_memory_may_be_huge();

struct Options {
  std::uint64_t min_bytes = 4 << 10;
  std::uint64_t max_bytes = 256 << 20;
  std::uint64_t rows = 0;  // 0: a table of kTableBytes
  std::vector<std::uint64_t> dims = {16, 32, 64, 128, 256};
  std::vector<std::uint64_t> call_ids = {1024, 8192, 65536};
  std::vector<std::string> ids = {"uniform", "zipf"};
  double zipf_exponent = 1.05;
  int iters = 8;
  int warmup = 3;
  int repeat = 5;
  std::uint64_t seed = 1;
  std::string only;
  bool huge_pages = shared_memory_may_be_huge();
  bool with_rival = true;
  std::optional<bool> tcp_bound = {};  // nullopt: if only TCP connects the hosts of the ranks
  std::string bounds;
  std::string json;
  std::string csv;

  /// Returns true if --only includes the case.
  bool wants(std::string_view name) const { return name.find(only) != name.npos; }

  /// Far larger than any cache, so that a random row is read from memory.
  static constexpr std::uint64_t kTableBytes = std::uint64_t{256} << 20;
  std::uint64_t rows_of(std::uint64_t dim) const {
    return rows != 0 ? rows : kTableBytes / (dim * sizeof(float));
  }
};

/// Adds the flags to a program's parser. -m, -i and -x are those of the OSU Micro-Benchmarks
/// (mvapich.cse.ohio-state.edu/benchmarks).
void add_options(CLI::App& app, Options& options);

}  // namespace capstan::perf
