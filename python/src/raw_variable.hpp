// raw_variable.hpp -- a variable or a dynamic table whose dtype is known at run time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace capstan::python {

/// Makes public the protected calls of AnyVariable, which take values of any dtype.
class RawVariable : public AnyVariable {
 public:
  using AnyVariable::flush;
  using AnyVariable::lookup;
  using AnyVariable::mapped_memory;
  using AnyVariable::Op;
  using AnyVariable::pull;
  using AnyVariable::push;
  using AnyVariable::push_dense;
  using AnyVariable::scatter;
  using AnyVariable::to_send;
  using AnyVariable::update;
  using AnyVariable::update_all;

  RawVariable(std::string name, DType dtype, const Shape& shape, const detail::AnyInitialValue& initial,
              const VariableOptions& options)
      : AnyVariable(std::move(name), dtype, &shape, initial, options) {}
  RawVariable(std::uint32_t id, std::uint32_t part, DType dtype) { bind({id, part}, dtype); }
  explicit RawVariable(std::shared_ptr<const strategy::BoundVariable> bound)
      : AnyVariable(std::move(bound)) {}

  std::vector<RawVariable> parts() const {
    std::vector<RawVariable> all;
    for (auto& bound : bound_shards()) all.push_back(RawVariable(std::move(bound)));
    return all;
  }
  Pending lookup_async(std::span<const std::int64_t> ids, void* out, std::size_t elements) const {
    const Part part{this, ids, out, nullptr, elements};
    return start_lookups({&part, 1}, ReadMode::relaxed);
  }
  /// Starts one lookup of several variables.
  static Pending lookup_all_async(const std::vector<std::tuple<const RawVariable*, Ids, Out>>& lookups) {
    std::vector<Part> parts;
    for (const auto& [variable, ids, out] : lookups) {
      parts.push_back({variable, {ids.data(), ids.size()}, out.data(), nullptr, out.size()});
    }
    return start_lookups(parts, ReadMode::relaxed);
  }
  Pending pushed() const { return AnyVariable::pushed(); }
};

inline std::span<const std::int64_t> span_of(const Ids& ids) { return {ids.data(), ids.size()}; }

/// Throws Error(invalid_argument) unless the elements have the size of the dtype.
template <class Array>
void check_element(const RawVariable& variable, const Array& array) {
  if (array.itemsize() == size_of(variable.dtype())) return;
  throw Error(Code::invalid_argument, "variable \"" + variable.name() + "\": found elements of " +
                                          std::to_string(array.itemsize()) + " bytes, expected " +
                                          std::string(to_string(variable.dtype())));
}

}  // namespace capstan::python
