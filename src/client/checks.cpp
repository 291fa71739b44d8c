// checks.cpp -- checks all ids in one loop without branches.
#include "client/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "capstan/error.hpp"

namespace capstan::client {
namespace {

/// Positions within a call are 32-bit numbers in ByShard and Combiner.
constexpr std::size_t kMaxIds = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void check_ids(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids) {
  if (ids.size() > kMaxIds) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\": found {} ids in one call, expected at most {}; split the call",
                            variable.name, ids.size(), kMaxIds));
  }
  if (variable.table) return;  // any number is a key
  const auto last = static_cast<std::int64_t>(variable.rows()) - 1;
  // The sign bit of either term is set if an id is not in [0, last]. Without an early exit the loop
  // vectorizes.
  std::int64_t signs = 0;
  for (const std::int64_t id : ids) {
    signs |=
        id | static_cast<std::int64_t>(static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(id));
  }
  if (signs >= 0) return;
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [last](std::int64_t id) { return id < 0 || id > last; });
  throw protocol::no_such_row(*bad, static_cast<std::size_t>(bad - ids.begin()), variable.name,
                              variable.rows());
}

void check_rows(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows) {
  if (first_row <= variable.rows() && rows <= variable.rows() - first_row) return;
  throw Error(Code::out_of_range,
              fmt::format("rows {} to {} are not all in variable \"{}\", which has {} rows", first_row,
                          first_row + rows, variable.name, variable.rows()));
}

}  // namespace capstan::client
