// per_worker.cpp -- recipes of per-worker objects, and the initial values of per-worker variables.
#include "capstan/detail/per_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/name.hpp"
#include "capstan/per_worker.hpp"
#include "protocol/descriptor.hpp"
#include "ps/shard/initialize.hpp"
#include "strategy/merge_changes.hpp"
#include "strategy/strategy.hpp"

namespace capstan::detail {

bool in_scope() noexcept { return strategy::Strategy::current() != nullptr; }

ResourceHandle add_worker_resource(const std::string& kind, const std::string& name, std::uint32_t function,
                                   PackedArguments arguments) {
  check_name(kind, name);
  strategy::require_one_thread(fmt::format("{} \"{}\"", kind, name));
  strategy::Strategy* strategy = strategy::Strategy::current();
  if (strategy == nullptr) {
    throw Error(Code::failed_precondition,
                fmt::format("{} \"{}\" is created outside of a strategy's scope: open one on the "
                            "coordinator, auto scope = strategy.scope()",
                            kind, name));
  }
  return strategy->worker_resources().add(function, std::move(arguments));
}

CopyRecipe copy_recipe(const std::string& name, DType dtype, const Shape* shape,
                       const AnyInitialValue& initial) {
  WholeValue whole;
  if (initial.whole) whole = initial.whole();
  if (shape == nullptr && !initial.whole) {
    throw Error(Code::invalid_argument,
                "per-worker variable \"" + name + "\" needs a shape: its initializer has none");
  }
  const Shape& sizes = shape != nullptr ? *shape : whole.shape;
  if (!std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size >= 0; })) {
    throw Error(Code::invalid_argument,
                fmt::format("per-worker variable \"{}\" has shape {}; expected sizes of 0 or more", name,
                            to_string(sizes)));
  }
  (void)elements_of(sizes);
  if (initial.whole && !whole.fits(sizes)) {
    throw Error(Code::invalid_argument,
                fmt::format("per-worker variable \"{}\" has shape {} and an initial value of shape {}", name,
                            to_string(sizes), to_string(whole.shape)));
  }
  protocol::check_initializer(name, dtype, sizes, initial.initializer);
  return {
      name, sizes, dtype, protocol::seeded(initial.initializer, name), initial.fill, std::move(whole.bytes)};
}

void fill_copy(const CopyRecipe& recipe, void* out) {
  if (!recipe.values.empty()) {
    std::memcpy(out, recipe.values.data(), recipe.values.size());
  } else if (recipe.fill != 0) {
    registered_fill(recipe.fill)(
        {recipe.shape, recipe.shape, Shape(std::vector<std::int64_t>(recipe.shape.size()))}, out);
  } else {
    const std::vector<std::uint64_t> shape(recipe.shape.begin(), recipe.shape.end());
    ps::initialize(recipe.initializer, recipe.dtype, shape, 0, protocol::rows_of(shape), out);
  }
}

}  // namespace capstan::detail
