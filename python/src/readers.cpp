// readers.cpp -- datasets read from files, whose records become numpy arrays, strings and bytes.
#include <nanobind/stl/filesystem.h>

#include <string_view>

#include "capstan/readers.hpp"
#include "dataset.hpp"

namespace capstan::python {
namespace {

using nb::literals::operator""_a;

nb::object bits_of(std::uint32_t bits, std::size_t count) {
  std::vector<std::uint8_t> flags(count);
  for (std::size_t i = 0; i < count; ++i) flags[i] = static_cast<std::uint8_t>(bits >> i & 1U);
  return nb::cast(array_of(std::move(flags))).attr("view")("bool");
}
nb::object text(std::string_view bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

nb::object to_object(const std::string& line) { return text(line); }
nb::object to_object(const Bytes& record) { return to_python(record); }
nb::object to_object(const std::vector<std::string>& fields) {
  nb::list list;
  for (const std::string& field : fields) list.append(text(field));
  return nb::tuple(list);
}
nb::object to_object(SparseExample example) {
  return nb::make_tuple(example.label, array_of(std::move(example.ids)), array_of(std::move(example.values)));
}
nb::object to_object(SparseBatch batch) {
  return nb::make_tuple(array_of(std::move(batch.labels)), array_of(std::move(batch.offsets)),
                        array_of(std::move(batch.ids)), array_of(std::move(batch.values)));
}
nb::object to_object(const CriteoExample& example) {
  nb::dict fields;
  fields["label"] = example.label;
  fields["integers"] = array_of(std::vector<std::int64_t>(example.integers.begin(), example.integers.end()));
  fields["integers_present"] = bits_of(example.integers_present, example.integers.size());
  fields["categories"] =
      array_of(std::vector<std::uint32_t>(example.categories.begin(), example.categories.end()));
  fields["categories_present"] = bits_of(example.categories_present, example.categories.size());
  return fields;
}
template <class T>
nb::object to_object(Array<T> array) {
  return nb::cast(array_of(std::move(array.values), array.shape));
}

template <class T>
Objects objects_of(const Dataset<T>& dataset) {
  return dataset.map([](T element) { return with_lock([&] { return to_object(std::move(element)); }); });
}

/// Returns read<T>() for the element type T that is named `dtype`; `names` are the names of the types.
template <class... T, class Read>
Objects of_type(const std::string& dtype, std::initializer_list<const char*> names, const Read& read) {
  std::optional<Objects> found;
  std::size_t i = 0;
  ((dtype == names.begin()[i++] ? (void)found.emplace(objects_of(read.template operator()<T>())) : (void)0),
   ...);
  if (found) return *found;
  std::string expected;
  for (const char* name : names) expected += std::string(expected.empty() ? "" : ", ") + name;
  throw Error(Code::invalid_argument, "found dtype " + dtype + ", expected one of " + expected);
}

SeparatedOptions separated_options(const std::string& separator, const std::string& quote, bool header) {
  if (separator.size() != 1 || quote.size() > 1) {
    throw Error(Code::invalid_argument, "found separator \"" + separator + "\" and quote \"" + quote +
                                            "\", expected 1 character, and 0 or 1 characters");
  }
  return {.separator = separator[0], .quote = quote.empty() ? '\0' : quote[0], .header = header};
}

TFRecordCompression compression_of(const std::string& name) {
  if (name.empty()) return TFRecordCompression::automatic;
  if (name == "NONE") return TFRecordCompression::none;
  if (name == "GZIP") return TFRecordCompression::gzip;
  if (name == "ZLIB") return TFRecordCompression::zlib;
  throw Error(Code::invalid_argument, "found compression_type " + name + ", expected NONE, GZIP or ZLIB");
}

}  // namespace

void bind_readers(nb::module_& module) {
  using data::Paths;
  module.def("text_lines", [](const Paths& files) { return objects_of(text_lines(files)); });
  module.def(
      "libsvm",
      [](const Paths& files, std::int64_t first_id, std::int64_t features, bool two_classes,
         std::optional<std::uint64_t> salt, std::optional<std::int64_t> batch, bool drop_remainder) {
        const LibsvmOptions options{.first_id = first_id,
                                    .features = features,
                                    .two_classes = two_classes,
                                    .hash_ids = salt.has_value(),
                                    .salt = salt.value_or(0)};
        if (!batch) return objects_of(libsvm(files, options));
        return objects_of(libsvm_batches(files, *batch, options, drop_remainder));
      },
      "files"_a, "first_id"_a, "features"_a, "two_classes"_a, "salt"_a.none(), "batch"_a.none(),
      "drop_remainder"_a);
  module.def(
      "separated",
      [](const Paths& files, const std::string& separator, const std::string& quote, bool header) {
        return objects_of(separated(files, separated_options(separator, quote, header)));
      },
      "files"_a, "separator"_a, "quote"_a, "header"_a);
  module.def(
      "hashed_columns",
      [](const Paths& files, std::int64_t label, std::vector<std::int64_t> numbers,
         std::vector<std::int64_t> categories, const std::string& separator, const std::string& quote,
         bool header) {
        return objects_of(hashed_columns(files, {.label = label,
                                                 .numbers = std::move(numbers),
                                                 .categories = std::move(categories),
                                                 .separated = separated_options(separator, quote, header)}));
      },
      "files"_a, "label"_a, "numbers"_a, "categories"_a, "separator"_a, "quote"_a, "header"_a);
  module.def(
      "criteo", [](const Paths& files, bool label) { return objects_of(criteo(files, label)); }, "files"_a,
      "has_label"_a);
  module.def(
      "fixed_records",
      [](const Paths& files, std::int64_t bytes, std::int64_t header, std::int64_t footer) {
        return objects_of(fixed_records(files, bytes, {header, footer}));
      },
      "files"_a, "record_bytes"_a, "header_bytes"_a, "footer_bytes"_a);
  module.def(
      "idx",
      [](const Paths& files, const std::string& dtype) {
        return of_type<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float, double>(
            dtype, {"uint8", "int8", "int16", "int32", "float32", "float64"},
            [&]<class T>() { return idx<T>(files); });
      },
      "files"_a, "dtype"_a);
  module.def(
      "hdf5_rows",
      [](const Paths& files, const std::string& name, const std::string& dtype) {
        return of_type<float, double, std::uint8_t, std::int32_t, std::int64_t>(
            dtype, {"float32", "float64", "uint8", "int32", "int64"},
            [&]<class T>() { return hdf5_rows<T>(files, name); });
      },
      "files"_a, "name"_a, "dtype"_a);
  module.def(
      "tf_records",
      [](const Paths& files, const std::string& compression) {
        return objects_of(tf_records(files, compression_of(compression)));
      },
      "files"_a, "compression"_a);
  nb::class_<TFRecordWriter>(module, "TFRecordWriter",
                             "Writes one TFRecord file, which appears under its name when `close` returns.")
      .def(
          "__init__",
          [](TFRecordWriter* self, const std::filesystem::path& path, const std::string& compression,
             bool replace) {
            new (self) TFRecordWriter(path, {compression_of(compression), replace});
          },
          "path"_a, "compression_type"_a = "", "replace"_a = false)
      .def(
          "write",
          [](TFRecordWriter& self, const nb::bytes& record) {
            self.write(std::string_view(record.c_str(), record.size()));
          },
          "record"_a, "Write one record.")
      .def("close", &TFRecordWriter::close, nb::call_guard<nb::gil_scoped_release>(),
           "Make the file durable, and move it to its final name.");
}

}  // namespace capstan::python
