// get_variable.hpp -- variables by their name, as tf.compat.v1.get_variable shares them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "capstan/variable.hpp"

namespace capstan {

/// The `reuse` of a variable scope.
enum class Reuse : std::uint8_t {
  never,      ///< makes it; Error(already_exists) where it is there
  always,     ///< takes the one that is there; Error(not_found) where there is none
  automatic,  ///< takes it where it is there, and else makes it: AUTO_REUSE
};

/// The variable of that name in the scope, made or reused. Of one that is reused only dtype and shape are
/// compared, as in TensorFlow; `initial` and `options` are those of its creation. Throws
/// Error(invalid_argument) for another dtype or shape, and what creating a variable throws.
template <class T, std::same_as<Shape> S>
Variable<T> get_variable(const std::string& name, const S& shape, const InitialValue<T>& initial = {},
                         const VariableOptions& options = {}, Reuse reuse = Reuse::never) {
  if (reuse == Reuse::never) return Variable<T>(name, shape, initial, options);
  const auto there = Variable<T>::find(name);
  if (!there && reuse == Reuse::automatic) return Variable<T>(name, shape, initial, options);
  if (!there) throw Error(Code::not_found, "get_variable: there is no variable \"" + name + "\" to reuse");
  if (there->shape() != shape) {
    throw Error(Code::invalid_argument, "get_variable: variable \"" + name + "\" has shape " +
                                            to_string(there->shape()) + ", expected " + to_string(shape));
  }
  return *there;
}
/// The one that is there, of any shape. Throws Error(not_found).
template <class T>
Variable<T> get_variable(const std::string& name) {
  if (const auto there = Variable<T>::find(name)) return *there;
  throw Error(Code::not_found, "get_variable: there is no variable \"" + name +
                                   "\" to reuse; give a shape, and Reuse::automatic, to make it");
}

}  // namespace capstan
