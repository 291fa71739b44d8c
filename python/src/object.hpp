// object.hpp -- Python objects in C++ values that any thread copies, calls and destroys.
#pragma once

#include <memory>
#include <utility>

#include "bindings.hpp"

namespace capstan::python {

/// A shared reference to a Python object. Copying does not change the object's reference count, so threads
/// without the interpreter's lock can copy and destroy this value.
class Object {
 public:
  Object() = default;
  explicit Object(nb::object object);

  bool valid() const noexcept { return object_ != nullptr; }
  /// REQUIRES: valid(), and the interpreter's lock to use the result.
  nb::handle get() const noexcept { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

/// Returns `call()`, called with the interpreter's lock. `call` returns a nb::object; an exception of Python
/// passes through C++ as nb::python_error. Any thread.
template <class Call>
Object with_lock(const Call& call) {
  const nb::gil_scoped_acquire locked;
  return Object(nb::object(call()));
}

/// Throws the Python exception `error` as the Error with which it travels to another rank. REQUIRES: the
/// interpreter's lock.
[[noreturn]] void throw_error(nb::python_error& error);

}  // namespace capstan::python
