// per_worker.hpp -- PerWorker: one object on every worker, created on first use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/detail/remote_value.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

namespace detail {

/// How a worker creates its object: the number of a registered function and its serialized arguments.
struct ResourceRecipe {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  std::vector<std::byte> arguments;
};

/// Refers to a per-worker object, of which each worker creates its own instance. Every worker frees its
/// instance once the last copy of the handle on the coordinator is destroyed, and every closure that received
/// one has ended.
class ResourceHandle {
 public:
  ResourceHandle() = default;
  ResourceHandle(std::uint64_t id, std::shared_ptr<const void> owner) : id_(id), owner_(std::move(owner)) {}
  /// 0 for a handle without an object.
  std::uint64_t id() const noexcept { return id_; }
  /// Null on a worker.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

 private:
  std::uint64_t id_ = 0;
  std::shared_ptr<const void> owner_;
};

/// Returns this worker's object, creating it on first use. Throws the creating function's error, and
/// Error(failed_precondition) outside of a closure or after the coordinator has freed the object.
CAPSTAN_API std::shared_ptr<void> worker_resource(const ResourceHandle& handle);

/// Returns whether the calling thread is in a strategy's scope.
CAPSTAN_API bool in_scope() noexcept;
/// Registers a new object for the workers of the strategy whose scope is open. `kind` and `name` appear in
/// errors: "table", "words". Throws Error: failed_precondition outside of a scope, invalid_argument for a
/// name that is not valid in checkpoints.
CAPSTAN_API ResourceHandle add_worker_resource(const std::string& kind, const std::string& name,
                                               std::uint32_t function, PackedArguments arguments);

}  // namespace detail

template <>
struct Serializer<detail::ResourceHandle> {
  static void write(Writer& out, const detail::ResourceHandle& handle) {
    if (handle.owner()) out.name(handle.owner());
    capstan::write(out, handle.id());
  }
  static detail::ResourceHandle read(Reader& in) { return {capstan::read<std::uint64_t>(in), nullptr}; }
};

/// On the coordinator, a handle to pass to closures; inside a closure, a pointer to the worker's own object.
/// A worker that replaces a dead one creates a new object. Each worker frees its object once the last copy of
/// the handle is destroyed and every closure that received one has ended.
template <class T>
class PerWorker {
 public:
  T* operator->() const { return local_.get(); }
  T& operator*() const { return *local_; }

  explicit PerWorker(detail::ResourceHandle handle) : handle_(std::move(handle)) {}

 private:
  friend struct Serializer<PerWorker<T>>;
  detail::ResourceHandle handle_;
  std::shared_ptr<T> local_;
};

template <class T>
struct Serializer<PerWorker<T>> {
  static void write(Writer& out, const PerWorker<T>& value) { capstan::write(out, value.handle_); }
  static PerWorker<T> read(Reader& in) {
    PerWorker<T> value(capstan::read<detail::ResourceHandle>(in));
    value.local_ = std::static_pointer_cast<T>(detail::worker_resource(value.handle_));
    return value;
  }
};

}  // namespace capstan
