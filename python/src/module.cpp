// module.cpp -- the extension module capstan._capstan.
#include "bindings.hpp"

namespace capstan::python {

Bytes to_bytes(const nb::bytes& bytes) {
  const auto* data = static_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

nb::bytes to_python(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

}  // namespace capstan::python

NB_MODULE(_capstan, module) {
  namespace python = capstan::python;
  // Objects in user modules are still alive when the interpreter ends, which is not a leak.
  nanobind::set_leak_warnings(false);
  module.attr("VERSION") = CAPSTAN_VERSION_STRING;
  module.def(
      "build_info",
      [] {
        const capstan::BuildInfo built = capstan::build_info();
        nanobind::dict info;
        info["version"] = to_string(capstan::version());
        info["commit"] = built.commit;
        info["build_type"] = built.build_type;
        info["compiler"] = built.compiler;
        info["compile_options"] = built.compile_options;
        info["cmake_options"] = built.cmake_options;
        return info;
      },
      nanobind::sig("def build_info() -> dict[str, str]"),
      "Returns how the library was built: version, commit, build_type, compiler, compile_options, "
      "cmake_options.");
  python::bind_errors(module);
  python::bind_options(module);
  python::bind_cluster(module);
  python::bind_strategy(module);
  python::bind_variable(module);
  python::bind_table(module);
  python::bind_coordinator(module);
  python::bind_checkpoint(module);
  python::bind_replicas(module);
  python::bind_dataset(module);
  python::bind_readers(module);
  python::bind_metrics(module);
  python::bind_resolvers(module);
}
