// registry.cpp -- the functions that ranks can run for each other, in the order of their registration.
#include <vector>

#include "capstan/detail/remote_function.hpp"

namespace capstan::detail {
namespace {

/// A function's static, because registration runs before the statics of this file may exist.
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
    throw Error(Code::internal, "function " + std::to_string(number) + " is not registered on this rank");
  }
  return functions()[number];
}

}  // namespace capstan::detail
