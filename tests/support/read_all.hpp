// read_all.hpp -- reads all elements of a dataset into vectors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capstan/input.hpp"

namespace capstan {

using Numbers = std::vector<std::int64_t>;
using Steps = std::vector<Numbers>;  // one batch for each replica of a step
using Data = Dataset<std::int64_t>;

template <class T>
std::vector<T> all(Iterator<T> iterator) {
  std::vector<T> elements;
  while (auto element = iterator.try_next()) elements.push_back(std::move(*element));
  return elements;
}
/// Returns, for each step, the batches of its replicas.
template <class B>
std::vector<std::vector<B>> all(Iterator<PerReplica<B>> iterator) {
  std::vector<std::vector<B>> steps;
  while (auto step = iterator.try_next()) steps.push_back(std::move(step->values));
  return steps;
}
template <class T>
auto all(const Dataset<T>& dataset) {
  return all(dataset.make_iterator());
}
template <class B>
auto all(const DistributedDataset<B>& dataset) {
  return all(dataset.steps());
}

}  // namespace capstan
