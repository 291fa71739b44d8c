// table.cpp -- dynamic tables of any dtype.
#include "bindings.hpp"
#include "raw_variable.hpp"

namespace capstan::python {
namespace {

detail::TableCalls calls(const RawVariable& table) { return {*table.bound()}; }

nb::dict to_dict(const TableStatistics& statistics) {
  nb::dict out;
  out["keys"] = statistics.keys;
  out["max_keys"] = statistics.max_keys;
  out["inserted"] = statistics.inserted;
  out["erased"] = statistics.erased;
  out["refused"] = statistics.refused;
  out["evicted"] = statistics.evicted;
  out["not_admitted"] = statistics.not_admitted;
  out["growths"] = statistics.growths;
  out["row_bytes"] = statistics.row_bytes;
  out["index_bytes"] = statistics.index_bytes;
  out["probes"] = statistics.probes;
  return out;
}

}  // namespace

void bind_table(nb::module_& module) {
  using nb::literals::operator""_a;
  module.def(
      "create_table",
      [](const std::string& name, int dtype, std::int64_t dim, const Initializer* initializer,
         const std::optional<Optimizer>& optimizer, int missing, std::uint64_t max_keys, int when_full,
         std::uint32_t admit_after, double admit_probability, std::uint64_t evict_after, bool trainable,
         const std::optional<UpdateGroup>& group, bool stochastic_rounding, bool int8_rows,
         std::optional<int> communication_dtype, std::optional<bool> int8_lookups) {
        const TableOptions options{.optimizer = optimizer,
                                   .missing = static_cast<MissingKeys>(missing),
                                   .max_keys = max_keys,
                                   .when_full = static_cast<WhenFull>(when_full),
                                   .admit_after = admit_after,
                                   .admit_probability = admit_probability,
                                   .evict_after = evict_after,
                                   .trainable = trainable,
                                   .group = group,
                                   .stochastic_rounding = stochastic_rounding,
                                   .int8_rows = int8_rows,
                                   .communication_dtype = dtype_of(communication_dtype),
                                   .int8_lookups = int8_lookups};
        const nb::gil_scoped_release unlocked;
        return RawVariable(detail::create_table(name, static_cast<DType>(dtype), dim,
                                                initializer == nullptr ? Initializer() : *initializer,
                                                options));
      },
      "name"_a, "dtype"_a, "dim"_a, "initializer"_a.none(), "optimizer"_a.none(), "missing"_a, "max_keys"_a,
      "when_full"_a, "admit_after"_a, "admit_probability"_a, "evict_after"_a, "trainable"_a, "group"_a.none(),
      "stochastic_rounding"_a, "int8_rows"_a, "communication_dtype"_a.none(), "int8_lookups"_a.none());
  module.def(
      "table_lookup_or_insert",
      [](const RawVariable& self, const Ids& keys, const Out& out) {
        check_element(self, out);
        const nb::gil_scoped_release unlocked;
        calls(self).lookup_or_insert(span_of(keys), out.data(), out.size());
      },
      "table"_a, "keys"_a, "out"_a);
  module.def(
      "table_lookup_exactly",
      [](const RawVariable& self, const Ids& keys, const Out& out) {
        check_element(self, out);
        const nb::gil_scoped_release unlocked;
        calls(self).lookup_exactly(span_of(keys), out.data(), out.size());
      },
      "table"_a, "keys"_a, "out"_a);
  module.def(
      "table_insert",
      [](const RawVariable& self, const Ids& keys) {
        const nb::gil_scoped_release unlocked;
        calls(self).insert(span_of(keys));
      },
      "table"_a, "keys"_a);
  module.def(
      "table_erase",
      [](const RawVariable& self, const Ids& keys) {
        const nb::gil_scoped_release unlocked;
        calls(self).erase(span_of(keys));
      },
      "table"_a, "keys"_a);
  module.def(
      "table_assign_in_every_run",
      [](const RawVariable& self, const Ids& keys, const In& values) {
        check_element(self, values);
        const nb::gil_scoped_release unlocked;
        calls(self).assign_in_every_run(span_of(keys), values.data(), values.size());
      },
      "table"_a, "keys"_a, "values"_a);
  module.def(
      "table_set_default_row",
      [](const RawVariable& self, const In& values) {
        check_element(self, values);
        const nb::gil_scoped_release unlocked;
        calls(self).set_default_row(values.data(), values.size());
      },
      "table"_a, "values"_a);
  module.def(
      "table_contains",
      [](const RawVariable& self, const Ids& keys) {
        std::vector<std::uint8_t> found;
        {
          const nb::gil_scoped_release unlocked;
          found = calls(self).contains(span_of(keys));
        }
        return array_of(std::move(found));
      },
      "table"_a, "keys"_a);
  module.def(
      "table_statistics",
      [](const RawVariable& self) {
        TableStatistics statistics;
        {
          const nb::gil_scoped_release unlocked;
          statistics = calls(self).statistics();
        }
        return to_dict(statistics);
      },
      "table"_a);
  module.def(
      "table_keys",
      [](const RawVariable& self, std::uint32_t shard, std::uint64_t first_row, std::uint64_t rows) {
        detail::TableCalls::Listed listed;
        {
          const nb::gil_scoped_release unlocked;
          listed = calls(self).list(shard, first_row, rows);
        }
        return nb::make_tuple(listed.end_row, array_of(std::move(listed.keys)));
      },
      "table"_a, "shard"_a, "first_row"_a, "rows"_a,
      "Returns the number of the first row that was never used, and the keys of some rows.");
  module.def(
      "hash_keys",
      [](const std::vector<std::string>& texts, std::uint64_t salt) {
        std::vector<std::int64_t> keys;
        keys.reserve(texts.size());
        for (const std::string& text : texts) keys.push_back(hash_key(text, salt));
        return array_of(std::move(keys));
      },
      "texts"_a, "salt"_a = 0);
}

}  // namespace capstan::python
