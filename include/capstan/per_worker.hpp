// per_worker.hpp -- one object on every worker, made there when it is first needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/serialize.hpp"

namespace capstan {

namespace detail {

/// How a worker makes its own: the function's number and its arguments.
struct ResourceRecipe {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  std::vector<std::byte> arguments;
};

/// This worker's object of a recipe. Throws what the function throws, and Error(failed_precondition)
/// elsewhere than in a closure.
std::shared_ptr<void> worker_resource(const ResourceRecipe& recipe);
/// The same for one that add_worker_resource announced.
std::shared_ptr<void> worker_resource(std::uint64_t id);

/// The calling thread is in a strategy's scope.
bool in_scope() noexcept;
/// Announces a recipe to every worker of the strategy whose scope this is, so that its number is enough from
/// then on. `kind` and `name` are for errors: "table", "words". Throws Error: failed_precondition outside of
/// a scope, invalid_argument for a name that no checkpoint could hold.
std::uint64_t add_worker_resource(const std::string& kind, const std::string& name, std::uint32_t function,
                                  std::vector<std::byte> arguments);

}  // namespace detail

/// On the coordinator a handle, to be passed to closures; inside a closure a pointer to the worker's own
/// object. A worker that takes a lost one's place makes its own anew.
template <class T>
class PerWorker {
 public:
  T* operator->() const { return local_.get(); }
  T& operator*() const { return *local_; }

  explicit PerWorker(detail::ResourceRecipe recipe) : recipe_(std::move(recipe)) {}

 private:
  friend struct Serializer<PerWorker<T>>;
  detail::ResourceRecipe recipe_;
  std::shared_ptr<T> local_;
};

template <class T>
struct Serializer<PerWorker<T>> {
  static void write(Writer& out, const PerWorker<T>& value) { capstan::write(out, value.recipe_); }
  static PerWorker<T> read(Reader& in) {
    PerWorker<T> value(capstan::read<detail::ResourceRecipe>(in));
    value.local_ = std::static_pointer_cast<T>(detail::worker_resource(value.recipe_));
    return value;
  }
};

}  // namespace capstan
