// registry.cpp -- functions that ranks can run for each other, in registration order.
#include <vector>

#include "capstan/detail/remote_function.hpp"

namespace capstan::detail {
namespace {

/// A function-local static, because registration may run before this file's static variables are initialized.
std::vector<RemoteFunction>& functions() {
  static std::vector<RemoteFunction> all;
  return all;
}

}  // namespace

std::uint32_t register_function(const RemoteFunction& function) {
  functions().push_back(function);
  return static_cast<std::uint32_t>(functions().size() - 1);
}

const RemoteFunction& registered_function(std::uint32_t number) {
  if (number >= functions().size()) {
    throw Error(Code::internal, "function " + std::to_string(number) +
                                    " is not registered on this rank; run the same binary on every rank");
  }
  return functions()[number];
}

}  // namespace capstan::detail
