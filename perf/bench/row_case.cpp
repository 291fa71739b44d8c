// row_case.cpp -- grid of cases.
#include "perf/bench/row_case.hpp"

#include <fmt/format.h>

#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

constexpr int kMaxCalls = 1024;  // bounds the duration of a sample of small calls

}  // namespace

Ids RowCase::draw_ids(std::uint64_t stream) const {
  return {ids, rows, zipf_exponent, seed + 0x632BE59BD9B4E019u * (stream + 1)};
}

std::vector<RowCase> row_cases(const Options& o, const std::string& what, std::uint64_t sample_ids,
                               int min_calls) {
  std::vector<RowCase> cases;
  for (const std::uint64_t dim : o.dims) {
    for (const std::string& ids : o.ids) {
      for (const std::uint64_t call : o.call_ids) {
        RowCase c;
        c.group = fmt::format("{} dim={} ids={}", what, dim, ids);
        c.name = fmt::format("{} call={}", c.group, call);
        if (!o.wants(c.name)) continue;
        c.rows = o.rows_of(dim);
        c.width = dim;
        c.call = call;
        c.ids = ids;
        c.zipf_exponent = o.zipf_exponent;
        c.seed = o.seed;
        c.warmup = o.warmup;
        c.samples = o.iters;
        c.calls = std::clamp(static_cast<int>(sample_ids / call), min_calls, kMaxCalls);
        c.huge_pages = o.huge_pages;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

RowCase for_repeat(RowCase row_case, int repeat) {
  row_case.seed += 7919 * static_cast<std::uint64_t>(repeat);
  return row_case;
}

bool loop_bounds_rows(const Session& session) { return !session.tcp_bound && !session.bounds.has(kRowBound); }

void use_link_bandwidth(Result& result, const Session& session, const char* name, std::uint64_t size,
                        double scale) {
  std::optional<double> value = session.bounds.at(name, size);
  if (value) *value *= scale;
  (session.tcp_bound ? result.rival : result.bound) = value;
  (session.tcp_bound ? result.rival_name : result.bound_name) = session.bounds.by(name);
}

Result row_result(const RowCase& c, const Timings& timings, const Session& session, const std::string& loop) {
  Result result;
  result.name = c.name;
  result.group = c.group;
  result.size = c.call;
  result.size_unit = "ids a call";
  result.unit = "rows/s";
  result.verified = timings.verified;
  const double rows = static_cast<double>(c.sample_ids()) * static_cast<double>(session.workers);
  result = rate_result(std::move(result), rows, timings.measured);
  if (!timings.bound.empty()) {
    result.bound = rows / median(timings.bound);
    result.bound_name = loop + ", " + timings.bound_name;
  } else {
    const std::uint64_t row_bytes = c.width * sizeof(float);
    use_link_bandwidth(result, session, kRowBound, c.call * row_bytes, 1e6 / static_cast<double>(row_bytes));
  }
  return result;
}

bool read_once(Variable<float> variable, Counter counter, std::int64_t workers) {
  StartBarrier(counter, workers).wait();
  const std::uint64_t block_rows = std::max<std::uint64_t>(1, (1 << 20) / variable.width());
  std::vector<float> block;
  for (std::uint64_t row = 0; row < variable.rows(); row += block_rows) {
    block.resize(std::min(block_rows, variable.rows() - row) * variable.width());
    variable.pull(row, block);
  }
  return true;
}

const Variable<float>& RowTables::get(std::uint64_t rows, std::uint64_t width,
                                      const VariableOptions& options) {
  auto found = tables_.find({rows, width});
  if (found == tables_.end()) {
    const Shape shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
    const std::string name = fmt::format("{}{}x{}", name_, rows, width);
    found =
        tables_.emplace(std::pair(rows, width), Variable<float>(name, shape, initializers::zeros(), options))
            .first;
    fill_(found->second);
  }
  return found->second;
}

}  // namespace capstan::perf
