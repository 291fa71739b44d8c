// dynamic_table.cpp -- handles of dynamic tables check sizes; the client transfers the bytes.
#include "capstan/dynamic_table.hpp"

#include "capstan/error.hpp"
#include "strategy/bound_checks.hpp"
#include "strategy/create_once.hpp"

namespace capstan {
namespace {

strategy::ClientUse client_of(const strategy::BoundVariable& table) { return table.context->use_client(); }

}  // namespace

namespace detail {

std::shared_ptr<const strategy::BoundVariable> create_table(const std::string& name, DType dtype,
                                                            std::int64_t dim, const Initializer& initial,
                                                            const TableOptions& options) {
  return strategy::create_once(name, [&](strategy::VariableCreator& creator) {
    return creator.create_table(name, dtype, dim, initial, options);
  });
}

void TableCalls::lookup_or_insert(Keys keys, void* out, std::size_t elements) const {
  strategy::check_elements(table, elements, keys.size(), "lookup_or_insert");
  client_of(table)->lookup_or_insert(table.descriptor, keys, out);
}

void TableCalls::lookup_exactly(Keys keys, void* out, std::size_t elements) const {
  strategy::check_elements(table, elements, keys.size(), "export_rows");
  client_of(table)->lookup(strategy::exact_copy_of(table)->descriptor, keys, out);
}

void TableCalls::insert(Keys keys) const {
  client_of(table)->scatter(table.descriptor, protocol::RowOp::insert, keys, nullptr);
}

void TableCalls::erase(Keys keys) const {
  client_of(table)->scatter(table.descriptor, protocol::RowOp::erase, keys, nullptr);
}

void TableCalls::assign(Keys keys, const void* values, std::size_t elements) const {
  strategy::check_elements(table, elements, keys.size(), "assign");
  client_of(table)->scatter(table.descriptor, protocol::RowOp::set, keys, values);
}

void TableCalls::assign_in_every_run(Keys keys, const void* values, std::size_t elements) const {
  strategy::check_elements(table, elements, keys.size(), "assign");
  client_of(table)->set_rows_in_every_run(table.descriptor, keys, values);
}

void TableCalls::set_default_row(const void* values, std::size_t elements) const {
  strategy::check_elements(table, elements, 1, "set_default_row");
  client_of(table)->tables().set_default_row(table.descriptor, static_cast<const std::byte*>(values));
}

std::vector<std::uint8_t> TableCalls::contains(Keys keys) const {
  return client_of(table)->tables().contains(table.descriptor, keys);
}

TableStatistics TableCalls::statistics() const {
  protocol::TableStatistics sum;
  for (const auto& shard : client_of(table)->tables().statistics(table.descriptor)) sum.add(shard);
  return {.keys = sum.keys,
          .max_keys = sum.most_keys,
          .inserted = sum.inserted,
          .erased = sum.erased,
          .refused = sum.refused,
          .evicted = sum.evicted,
          .not_admitted = sum.not_admitted,
          .growths = sum.growths,
          .row_bytes = sum.row_bytes,
          .index_bytes = sum.index_bytes,
          .probes = sum.probes()};
}

TableCalls::Listed TableCalls::list(std::uint32_t shard, std::uint64_t first_row, std::uint64_t rows) const {
  protocol::ListedKeys listed = client_of(table)->tables().list(table.descriptor, shard, first_row, rows);
  return {listed.rows_end, std::move(listed.keys)};
}

MissingKeys TableCalls::missing() const { return table.descriptor.policy.missing; }

}  // namespace detail
}  // namespace capstan
