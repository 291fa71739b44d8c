// initializers.cpp -- the functions that fill shards, in the order of their registration.
#include <vector>

#include "capstan/initializers.hpp"

namespace capstan::detail {
namespace {

/// A function's static, because registration runs before the statics of this file may exist.
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
    throw Error(Code::internal, "a function that fills shards, number " + std::to_string(number) +
                                    ", is not registered here");
  }
  return fills()[number - 1];
}

}  // namespace capstan::detail
