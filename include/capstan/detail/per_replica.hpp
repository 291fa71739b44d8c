// per_replica.hpp -- one value for each replica of a worker: what `run` takes and gives.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Values by replica number. A worker with one replica has PerReplica values too, of size 1, because a C++
/// type cannot depend on the number of replicas; those convert to the value by themselves.
template <class T>
struct PerReplica {
  std::vector<T> values;

  std::size_t size() const noexcept { return values.size(); }
  decltype(auto) operator[](std::size_t replica) { return values[replica]; }
  decltype(auto) operator[](std::size_t replica) const { return values[replica]; }
  auto begin() const noexcept { return values.begin(); }
  auto end() const noexcept { return values.end(); }

  /// The only value. Throws Error(failed_precondition) when there are several, or none.
  T value() const& {
    require_one();
    return values.front();
  }
  T value() && {
    require_one();
    return std::move(values.front());
  }
  operator T() const& { return value(); }
  operator T() && { return std::move(*this).value(); }

  friend bool operator==(const PerReplica&, const PerReplica&) = default;

 private:
  void require_one() const {
    if (values.size() == 1) return;
    throw Error(Code::failed_precondition, "the values of " + std::to_string(values.size()) +
                                               " replicas are not one value: reduce or gather them, or "
                                               "name the replica");
  }
};

template <class T>
struct IsPerReplica : std::false_type {};
template <class T>
struct IsPerReplica<PerReplica<T>> : std::true_type {};

/// A value that is the same for every replica.
template <class T>
concept OneValue = !IsPerReplica<T>::value;

template <class T>
struct Serializer<PerReplica<T>> {
  static void write(Writer& out, const PerReplica<T>& value) { capstan::write(out, value.values); }
  static PerReplica<T> read(Reader& in) { return {capstan::read<std::vector<T>>(in)}; }
};

}  // namespace capstan
