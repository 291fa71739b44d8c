// get_variable.hpp -- creates or reuses variables by name, as tf.compat.v1.get_variable does.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "capstan/variable.hpp"

namespace capstan {

/// The `reuse` of a variable scope.
enum class Reuse : std::uint8_t {
  never,      ///< creates the variable; Error(already_exists) if it exists
  always,     ///< returns the existing variable; Error(not_found) if there is none
  automatic,  ///< AUTO_REUSE: returns the existing variable, else creates it
};

/// Creates or reuses the variable `name` of the scope. When it is reused, only dtype and shape are compared,
/// as in TensorFlow; `initial` and `options` are ignored. Throws Error: invalid_argument for another dtype or
/// shape, already_exists and not_found as described at Reuse, and the errors of creating a variable.
template <class T, std::same_as<Shape> S>
Variable<T> get_variable(const std::string& name, const S& shape, const InitialValue<T>& initial = {},
                         const VariableOptions& options = {}, Reuse reuse = Reuse::never) {
  if (reuse == Reuse::never) return Variable<T>(name, shape, initial, options);
  const auto existing = Variable<T>::find(name);
  if (!existing && reuse == Reuse::automatic) return Variable<T>(name, shape, initial, options);
  if (!existing) throw Error(Code::not_found, "get_variable: there is no variable \"" + name + "\" to reuse");
  if (existing->shape() != shape) {
    throw Error(Code::invalid_argument, "get_variable: variable \"" + name + "\" has shape " +
                                            to_string(existing->shape()) + ", expected " + to_string(shape));
  }
  return *existing;
}
/// Returns the existing variable `name`, of any shape. Throws Error: not_found; invalid_argument for another
/// dtype.
template <class T>
Variable<T> get_variable(const std::string& name) {
  if (const auto existing = Variable<T>::find(name)) return *existing;
  throw Error(Code::not_found, "get_variable: there is no variable \"" + name +
                                   "\" to reuse; to create it, pass a shape and Reuse::automatic");
}

}  // namespace capstan
