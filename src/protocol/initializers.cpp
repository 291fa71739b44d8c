// initializers.cpp -- registered functions that fill shards, in registration order.
#include <vector>

#include "capstan/initializers.hpp"

namespace capstan::detail {
namespace {

/// A function-local static, because registration may run before this file's static variables are
/// initialized.
std::vector<Fill>& fills() {
  static std::vector<Fill> all;
  return all;
}

}  // namespace

std::uint32_t register_fill(Fill fill) {
  fills().push_back(fill);
  return static_cast<std::uint32_t>(fills().size());
}

Fill registered_fill(std::uint32_t number) {
  if (number == 0 || number > fills().size()) {
    throw Error(Code::internal, "fill function " + std::to_string(number) +
                                    " is not registered on this rank; run the same binary on every rank");
  }
  return fills()[number - 1];
}

}  // namespace capstan::detail
