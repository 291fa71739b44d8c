// select_replica.hpp -- replaces the PerReplica values within an argument by one replica's values.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/detail/per_replica.hpp"
#include "capstan/error.hpp"

namespace capstan {

class ReplicaContext;

namespace detail {

/// True for a PerReplica, and for a container that contains one.
template <class T>
struct HasPerReplica : IsPerReplica<T> {};
template <class T>
struct HasPerReplica<std::vector<T>> : HasPerReplica<T> {};
template <class T, std::size_t N>
struct HasPerReplica<std::array<T, N>> : HasPerReplica<T> {};
template <class A, class B>
struct HasPerReplica<std::pair<A, B>> : std::disjunction<HasPerReplica<A>, HasPerReplica<B>> {};
template <class... T>
struct HasPerReplica<std::tuple<T...>> : std::disjunction<HasPerReplica<T>...> {};
template <class K, class V>
struct HasPerReplica<std::map<K, V>> : HasPerReplica<V> {};
template <class K, class V>
struct HasPerReplica<std::unordered_map<K, V>> : HasPerReplica<V> {};

template <class T>
struct Selection {
  static const T& of(const T& value, int, int) { return value; }
};

/// Replaces PerReplica values by those of `replica`. Throws Error(invalid_argument) unless each PerReplica
/// has `replicas` values, or, if `replicas` is 0, more than `replica`.
template <class T>
decltype(auto) select_replica(const T& value, int replica, int replicas) {
  return Selection<T>::of(value, replica, replicas);
}

template <class T>
struct Selection<PerReplica<T>> {
  static decltype(auto) of(const PerReplica<T>& value, int replica, int replicas) {
    const auto size = static_cast<int>(value.size());
    if (size <= replica || (replicas != 0 && size != replicas)) {
      throw Error(Code::invalid_argument, "PerReplica argument: found values for " + std::to_string(size) +
                                              " replicas, expected " + std::to_string(replicas));
    }
    return value[static_cast<std::size_t>(replica)];
  }
};

template <class T>
using Selected = std::remove_cvref_t<decltype(Selection<T>::of(std::declval<const T&>(), 0, 0))>;

template <class T>
requires HasPerReplica<T>::value struct Selection<std::vector<T>> {
  static auto of(const std::vector<T>& value, int replica, int replicas) {
    std::vector<Selected<T>> out;
    for (const T& element : value) out.push_back(select_replica(element, replica, replicas));
    return out;
  }
};
template <class T, std::size_t N>
requires HasPerReplica<T>::value struct Selection<std::array<T, N>> {
  static auto of(const std::array<T, N>& value, int replica, int replicas) {
    std::array<Selected<T>, N> out;
    for (std::size_t i = 0; i < N; ++i) out[i] = select_replica(value[i], replica, replicas);
    return out;
  }
};
template <class A, class B>
requires HasPerReplica<std::pair<A, B>>::value struct Selection<std::pair<A, B>> {
  static auto of(const std::pair<A, B>& value, int replica, int replicas) {
    return std::pair<Selected<A>, Selected<B>>(select_replica(value.first, replica, replicas),
                                               select_replica(value.second, replica, replicas));
  }
};
template <class... T>
requires HasPerReplica<std::tuple<T...>>::value struct Selection<std::tuple<T...>> {
  static auto of(const std::tuple<T...>& value, int replica, int replicas) {
    return std::apply(
        [&](const T&... element) {
          return std::tuple<Selected<T>...>(select_replica(element, replica, replicas)...);
        },
        value);
  }
};

template <template <class...> class Map, class K, class V>
struct MapSelection {
  static auto of(const Map<K, V>& value, int replica, int replicas) {
    Map<K, Selected<V>> out;
    for (const auto& [key, mapped] : value) out.emplace(key, select_replica(mapped, replica, replicas));
    return out;
  }
};
template <class K, class V>
requires HasPerReplica<V>::value struct Selection<std::map<K, V>> : MapSelection<std::map, K, V> {
};
template <class K, class V>
requires HasPerReplica<V>::value struct Selection<std::unordered_map<K, V>>
    : MapSelection<std::unordered_map, K, V> {
};

/// Calls fn with the replica's arguments, preceded by its context if fn accepts one.
template <class F, class Context, class... Args>
decltype(auto) call_on_replica(F& fn, Context& context, const Args&... args) {
  const int replica = context.replica_id_in_sync_group();
  const int replicas = context.num_replicas_in_sync();
  if constexpr (std::is_invocable_v<F&, Context&, decltype(select_replica(args, replica, replicas))...>) {
    return fn(context, select_replica(args, replica, replicas)...);
  } else {
    return fn(select_replica(args, replica, replicas)...);
  }
}

}  // namespace detail
}  // namespace capstan
