// table_list.cpp -- finds the table of an id.
#include "capstan/embedding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capstan/error.hpp"

namespace capstan {

TableMap::TableMap(std::vector<std::string> names, const std::vector<Shape>& shapes,
                   PartitionStrategy strategy)
    : names_(std::move(names)),
      first_rows_{0},
      strategy_(strategy),
      name_(fmt::format("{}", fmt::join(names_, ", "))) {
  if (shapes.empty()) throw Error(Code::invalid_argument, "the list of tables is empty; expected 1 or more");
  for (std::size_t table = 0; table < shapes.size(); ++table) {
    const Shape& shape = shapes[table];
    const Shape& first = shapes.front();
    if (shape.empty()) {
      throw Error(Code::invalid_argument,
                  fmt::format("variable \"{}\" is a scalar, which has no rows", names_[table]));
    }
    if (!std::equal(shape.begin() + 1, shape.end(), first.begin() + 1, first.end())) {
      throw Error(
          Code::invalid_argument,
          fmt::format("variable \"{}\" has shape {} and variable \"{}\" {}: tables of one list have the same "
                      "shapes except for axis 0",
                      names_[table], to_string(shape), names_.front(), to_string(first)));
    }
    first_rows_.push_back(first_rows_.back() + shape.front());
  }
}

TableMap::Location TableMap::location(std::int64_t id) const {
  if (strategy_ == PartitionStrategy::div) {
    if (id < 0 || id >= rows()) refuse(id, fmt::format("they have rows 0 to {} together", rows() - 1));
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), id);
    return {static_cast<std::size_t>(after - first_rows_.begin()) - 1, id - *(after - 1)};
  }
  const auto tables = static_cast<std::int64_t>(names_.size());
  if (id < 0) refuse(id, "ids are 0 or more");
  const Location out{static_cast<std::size_t>(id % tables), id / tables};
  const std::int64_t own = first_rows_[out.table + 1] - first_rows_[out.table];
  if (out.row >= own) {
    refuse(id, fmt::format("it would be row {} of \"{}\", which has rows 0 to {}", out.row, names_[out.table],
                           own - 1));
  }
  return out;
}

std::vector<TableMap::Part> TableMap::split(std::span<const std::int64_t> ids) const {
  std::vector<Part> parts(names_.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Location found = location(ids[i]);
    parts[found.table].rows.push_back(found.row);
    parts[found.table].positions.push_back(i);
  }
  return parts;
}

void TableMap::refuse(std::int64_t id, const std::string& where) const {
  throw Error(Code::out_of_range, fmt::format("id {} is not in the tables {}: {}", id, name_, where));
}

}  // namespace capstan
