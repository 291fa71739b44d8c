// dataset.hpp -- datasets of Python objects.
#pragma once

#include "capstan/dataset.hpp"
#include "capstan/input.hpp"
#include "object.hpp"

namespace capstan {

/// A batch, as capstan/data.py makes it, is an array, or a tuple or dict of batches.
template <>
struct BatchOf<python::Object> {
  static std::int64_t size(const python::Object& batch);
  static python::Object slice(const python::Object& batch, std::int64_t from, std::int64_t to);
  static void append(python::Object& batch, const python::Object& part);
};

}  // namespace capstan

namespace capstan::python {

using Objects = Dataset<Object>;

}  // namespace capstan::python
