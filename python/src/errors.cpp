// errors.cpp -- Error becomes the exception of capstan/errors.py with the same code.
#include <exception>

#include "bindings.hpp"

namespace capstan::python {
namespace {

// Owned by the module, which the interpreter never unloads.
PyObject* exception_of_code = nullptr;

void raise(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const nb::object made = nb::handle(exception_of_code)(static_cast<int>(error.code()), error.what());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  module.def(
      "set_exception_of_code", [](nb::object function) { exception_of_code = function.release().ptr(); },
      "Sets the function (code, message) that makes the exception of an error.");
  nb::register_exception_translator(&raise);
}

}  // namespace capstan::python
