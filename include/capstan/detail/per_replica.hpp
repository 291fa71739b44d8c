// per_replica.hpp -- PerReplica: one value for each replica of a worker, as `run` takes and returns them.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Values by replica number. A worker with one replica has PerReplica values of size 1, because a C++ type
/// cannot depend on the number of replicas; they convert implicitly to the value.
template <class T>
struct PerReplica {
  std::vector<T> values;

  std::size_t size() const noexcept { return values.size(); }
  decltype(auto) operator[](std::size_t replica) { return values[replica]; }
  decltype(auto) operator[](std::size_t replica) const { return values[replica]; }
  auto begin() const noexcept { return values.begin(); }
  auto end() const noexcept { return values.end(); }

  /// Returns the only value. Throws Error(failed_precondition) unless size() is 1.
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
    throw Error(Code::failed_precondition,
                "PerReplica::value: found the values of " + std::to_string(values.size()) +
                    " replicas, expected one value; reduce or gather them, or index by replica");
  }
};

template <class T>
struct IsPerReplica : std::false_type {};
template <class T>
struct IsPerReplica<PerReplica<T>> : std::true_type {};

/// A plain value, the same for every replica.
template <class T>
concept OneValue = !IsPerReplica<T>::value;

template <class T>
struct Serializer<PerReplica<T>> {
  static void write(Writer& out, const PerReplica<T>& value) { capstan::write(out, value.values); }
  static PerReplica<T> read(Reader& in) { return {capstan::read<std::vector<T>>(in)}; }
};

}  // namespace capstan
