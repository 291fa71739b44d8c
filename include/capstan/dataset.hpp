// dataset.hpp -- Dataset: a lazy input pipeline, which produces elements only when it is read.
#pragma once

#include <concepts>
#include <functional>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/data/background.hpp"
#include "capstan/data/batch_of.hpp"
#include "capstan/data/cache.hpp"
#include "capstan/data/combine.hpp"
#include "capstan/data/elements.hpp"
#include "capstan/data/interleave.hpp"
#include "capstan/data/operator.hpp"
#include "capstan/data/rebatch.hpp"
#include "capstan/data/shuffle.hpp"
#include "capstan/data/sources.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/iterator.hpp"
#include "capstan/detail/remote_function.hpp"

namespace capstan {

struct ShuffleOptions {
  /// If not set, every iterator draws a random seed; without reshuffling, all iterators share one.
  std::optional<std::uint64_t> seed = {};
  /// Gives every iteration its own order: each one that `repeat` starts, and each new iterator. The order
  /// depends on the seed and on the number of iterators made from this dataset before. If false, all
  /// iterations have the same order.
  bool reshuffle_each_iteration = true;
};

struct MapOptions {
  /// 0: the function runs in the reading thread. Otherwise it runs concurrently in this number of threads, so
  /// it must be thread-safe; elements keep their order.
  int threads = 0;
  /// Maximum number of elements in progress or ready; 0: twice the number of threads.
  int ahead = 0;
};

template <class T>
class Dataset;

namespace detail {

template <class T>
struct BeginOfDataset;

/// Functions that call members of Dataset, registered so that other ranks find them by number. Their first
/// parameters are the input datasets.
template <class T>
struct DatasetMaker;

/// Sets how another rank makes `node`: by calling `make`(its inputs..., arguments...).
template <auto make, class N, class... Args>
std::shared_ptr<N> with_recipe(std::shared_ptr<N> node, Args... arguments) {
  if constexpr ((Serializable<Args> && ...)) {
    node->set_recipe({&RegisteredMaker<make>::number, [arguments...](Writer& out) {
                        (void)out;
                        (capstan::write(out, arguments), ...);
                      }});
  }
  return node;
}

/// The elements of a source, shared so that its recipe does not copy them.
template <class T>
struct SharedElements {
  std::shared_ptr<const std::vector<T>> elements;
};

}  // namespace detail

template <Serializable T>
struct Serializer<detail::SharedElements<T>> {
  static void write(Writer& out, const detail::SharedElements<T>& shared) {
    capstan::write(out, *shared.elements);
  }
  static detail::SharedElements<T> read(Reader& in) {
    return {std::make_shared<const std::vector<T>>(capstan::read<std::vector<T>>(in))};
  }
};

/// A cheap value: copies share one immutable pipeline, and every operator returns a new one. Elements are
/// produced when an iterator requests them. Thread-safe, with one iterator per thread.
///
/// Invalid arguments throw Error(invalid_argument) immediately; the iterator throws errors that depend on the
/// data, such as a missing file or a malformed line.
template <class T>
class Dataset {
 public:
  using Element = T;

  // --- Sources
  static Dataset from_vector(std::vector<T> elements) {
    auto node = std::make_shared<data::VectorNode<T>>(std::move(elements), data::Kind::vector);
    const auto shared = node->elements();
    return Dataset(
        detail::with_recipe<&Maker::from_vector>(std::move(node), detail::SharedElements<T>{shared}));
  }
  /// 0, 1, ..., stop - 1.
  static Dataset range(T stop) requires std::integral<T> { return range(0, stop); }
  /// start, start + step, ... up to, not including, stop; a negative step counts down.
  static Dataset range(T start, T stop, T step = 1) requires std::integral<T> {
    return Dataset(detail::with_recipe<&Maker::range>(std::make_shared<data::RangeNode<T>>(start, stop, step),
                                                      start, stop, step));
  }
  /// `make()` is called for each iteration and returns a function, which returns elements, then nullopt.
  /// Restoring a position calls make() again and skips the elements before the position.
  template <std::invocable F>
  static Dataset from_generator(F make) {
    auto node = std::make_shared<data::GeneratorNode<T>>(make);
    return Dataset(detail::with_recipe<&Maker::template from_generator<F>>(
        std::move(node), detail::Carried<F>(std::move(make))));
  }
  /// The elements of each file in order; `open` makes a dataset from one file. Sharding by file never divides
  /// a file.
  template <std::invocable<const std::filesystem::path&> F>
  static Dataset from_files(data::Paths files, F open) {
    auto node = std::make_shared<data::FilesNode<T>>(
        files, [open](const std::filesystem::path& file) { return Dataset(open(file)).node()->open(); });
    return Dataset(detail::with_recipe<&Maker::template from_files<F>>(std::move(node), std::move(files),
                                                                       detail::Carried<F>(std::move(open))));
  }

  // --- Elements
  /// Replaces each element by function(element).
  template <class F, class U = std::decay_t<std::invoke_result_t<F&, T>>>
  Dataset<U> map(F function) const {
    auto node = std::make_shared<data::MapNode<T, U>>(node_, function);
    return Dataset<U>(detail::with_recipe<&Maker::template map<F>>(std::move(node),
                                                                   detail::Carried<F>(std::move(function))));
  }
  /// As above, in background threads; see MapOptions.
  template <class F, class U = std::decay_t<std::invoke_result_t<F&, T>>>
  Dataset<U> map(F function, MapOptions options) const {
    data::require_at_least(options.threads, 0, "map: the number of threads");
    data::require_at_least(options.ahead, 0, "map: the number of elements ahead");
    if (options.threads == 0) return map(std::move(function));
    const auto ahead = static_cast<std::size_t>(options.ahead > 0 ? options.ahead : 2 * options.threads);
    auto node =
        std::make_shared<data::ParallelMapNode<T, U>>(node_, function, data::Ahead{options.threads, ahead});
    return Dataset<U>(detail::with_recipe<&Maker::template parallel_map<F>>(
        std::move(node), detail::Carried<F>(std::move(function)), options));
  }
  /// The elements for which keep(element) is true.
  template <std::predicate<const T&> F>
  Dataset filter(F keep) const {
    auto node = std::make_shared<data::FilterNode<T>>(node_, keep);
    return Dataset(detail::with_recipe<&Maker::template filter<F>>(std::move(node),
                                                                   detail::Carried<F>(std::move(keep))));
  }
  /// The first `count` elements; -1: all.
  Dataset take(std::int64_t count) const {
    return Dataset(detail::with_recipe<&Maker::take>(
        std::make_shared<data::CountedNode<T>>(node_, data::Kind::take, count), count));
  }
  /// All elements except the first `count`; -1: no elements.
  Dataset skip(std::int64_t count) const {
    return Dataset(detail::with_recipe<&Maker::skip>(
        std::make_shared<data::CountedNode<T>>(node_, data::Kind::skip, count), count));
  }
  /// Elements index, index + count, index + 2 count, ... Both may be kShardHint, for AutoShardPolicy::hint.
  Dataset shard(std::int64_t count, std::int64_t index) const {
    return Dataset(detail::with_recipe<&Maker::shard>(
        std::make_shared<data::ShardNode<T>>(node_, count, index, false), count, index));
  }
  /// Batches of `size` elements; the last one may be smaller, unless `drop_remainder` drops it.
  Dataset<std::vector<T>> batch(std::int64_t size, bool drop_remainder = false) const {
    return Dataset<std::vector<T>>(detail::with_recipe<&Maker::batch>(
        std::make_shared<data::BatchNode<T, std::vector<T>>>(node_, size, drop_remainder, nullptr), size,
        drop_remainder));
  }
  /// As above, with batches made by combine(elements): stack<T> for arrays, for instance.
  template <class F, class U = std::decay_t<std::invoke_result_t<F&, std::vector<T>>>>
  Dataset<U> batch_as(std::int64_t size, F combine, bool drop_remainder = false) const {
    auto node = std::make_shared<data::BatchNode<T, U>>(node_, size, drop_remainder, combine);
    return Dataset<U>(detail::with_recipe<&Maker::template batch_as<F>>(
        std::move(node), size, detail::Carried<F>(std::move(combine)), drop_remainder));
  }
  /// Batches of the given sizes, used cyclically, cut from batches of any size; the last may be smaller.
  Dataset rebatch(std::vector<std::int64_t> sizes, bool drop_remainder = false) const requires Batch<T> {
    auto node = std::make_shared<data::RebatchNode<T>>(node_, sizes, drop_remainder);
    return Dataset(detail::with_recipe<&Maker::rebatch>(std::move(node), std::move(sizes), drop_remainder));
  }
  /// Cuts each batch into `pieces` parts of equal size. The size is rounded up, so the last parts may be
  /// smaller or empty.
  Dataset legacy_rebatch(std::int64_t pieces) const requires Batch<T> {
    return Dataset(detail::with_recipe<&Maker::legacy_rebatch>(
        std::make_shared<data::LegacyRebatchNode<T>>(node_, pieces), pieces));
  }

  // --- Streams
  /// Random order: each element is drawn from a buffer of `buffer` elements. Restoring a position reads the
  /// input again from the start of the iteration, so shuffle before expensive operators.
  Dataset shuffle(std::int64_t buffer, ShuffleOptions options = {}) const {
    auto node = std::make_shared<data::ShuffleNode<T>>(
        node_, buffer,
        data::ShuffleOrder{options.seed.value_or(0), options.seed.has_value(),
                           options.reshuffle_each_iteration});
    return Dataset(detail::with_recipe<&Maker::shuffle>(std::move(node), buffer, options));
  }
  /// Repeats the dataset `count` times; -1: endlessly.
  Dataset repeat(std::int64_t count = -1) const {
    return Dataset(
        detail::with_recipe<&Maker::repeat>(std::make_shared<data::RepeatNode<T>>(node_, count), count));
  }
  Dataset concatenate(const Dataset& other) const {
    return Dataset(detail::with_recipe<&Maker::concatenate>(
        std::make_shared<data::ConcatenateNode<T>>(std::vector<data::NodePointer<T>>{node_, other.node_})));
  }
  /// make(element) returns a Dataset; takes `block` elements from each of `cycle` such datasets in turn.
  template <class F, class D = std::decay_t<std::invoke_result_t<F&, T>>>
  D interleave(F make, std::int64_t cycle, std::int64_t block = 1) const {
    using U = typename D::Element;
    auto node = std::make_shared<data::InterleaveNode<T, U>>(
        node_, [make](T element) mutable { return make(std::move(element)).node(); }, cycle, block);
    return D(detail::with_recipe<&Maker::template interleave<F>>(
        std::move(node), detail::Carried<F>(std::move(make)), cycle, block));
  }
  /// The elements of make(element) for each element in order.
  template <class F>
  auto flat_map(F make) const {
    return interleave(std::move(make), 1);
  }
  /// A custom operator: make(next) returns a function that returns elements, and that calls next() to read
  /// elements of this dataset. Cannot be sharded by file. Restoring a position runs it again from its start.
  template <class U>
  Dataset<U> transform(std::function<data::Next<U>(data::Next<T>)> make) const {
    return Dataset<U>(std::make_shared<data::TransformNode<T, U>>(node_, std::move(make)));
  }
  /// Reads up to `elements` ahead in a background thread; 0: none. Put it last, after batch: handing over an
  /// element costs about a microsecond.
  Dataset prefetch(std::int64_t elements) const {
    data::require_at_least(elements, 0, "prefetch: the number of elements");
    if (elements == 0) return *this;
    return Dataset(detail::with_recipe<&Maker::prefetch>(
        std::make_shared<data::PrefetchNode<T>>(node_, elements), elements));
  }
  /// Stores the elements of the first iteration in memory. Later iterations read them from there: iterations
  /// of the same iterator, and of iterators made after it reached the end.
  Dataset cache() const {
    return Dataset(detail::with_recipe<&Maker::cache>(std::make_shared<data::CacheNode<T>>(node_)));
  }

  // --- Reading
  Iterator<T> make_iterator() const { return Iterator<T>(node_->open()); }
  /// Lets a function that makes a per-worker dataset return a Dataset if its result type is Iterator.
  operator Iterator<T>() const { return make_iterator(); }  // NOLINT(google-explicit-constructor)

  /// For `for (auto& element : dataset)`.
  auto begin() const { return typename detail::BeginOfDataset<T>::Type(make_iterator()); }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Properties known without reading: see data::BatchInfo.
  data::BatchInfo batches() const { return node_->batches(); }
  /// True if it contains a repeat() without a count.
  bool endless() const { return node_->endless(); }
  /// Returns the number of elements, by reading all of them. Throws Error(invalid_argument) for an endless
  /// dataset.
  std::int64_t count() const {
    if (endless()) {
      throw Error(
          Code::invalid_argument,
          "count: the dataset is endless, expected a finite one; give repeat() a count, or use take()");
    }
    std::int64_t elements = 0;
    for (auto iterator = make_iterator(); iterator.try_next();) ++elements;
    return elements;
  }

  /// For sharding (capstan/input.hpp) and for user-defined sources.
  explicit Dataset(data::NodePointer<T> node) : node_(std::move(node)) {}
  const data::NodePointer<T>& node() const noexcept { return node_; }

 private:
  using Maker = detail::DatasetMaker<T>;
  data::NodePointer<T> node_;
};

/// A dataset is serialized as the description of its pipeline; see data::Operator::describe.
template <class T>
struct Serializer<Dataset<T>> {
  static void write(Writer& out, const Dataset<T>& dataset) { dataset.node()->describe(out); }
  static Dataset<T> read(Reader& in) {
    const auto& function = detail::registered_function(capstan::read<std::uint32_t>(in));
    return *std::static_pointer_cast<Dataset<T>>(function.make(in));
  }
};

namespace detail {

template <class T>
struct DatasetMaker {
  using D = Dataset<T>;
  static D from_vector(const SharedElements<T>& shared) { return D::from_vector(*shared.elements); }
  static D range(T start, T stop, T step) { return D::range(start, stop, step); }
  template <class F>
  static D from_generator(const Carried<F>& make) {
    return D::from_generator(make.function);
  }
  template <class F>
  static D from_files(data::Paths files, const Carried<F>& open) {
    return D::from_files(std::move(files), open.function);
  }
  template <class F>
  static auto map(const D& from, const Carried<F>& function) {
    return from.map(function.function);
  }
  template <class F>
  static auto parallel_map(const D& from, const Carried<F>& function, MapOptions options) {
    return from.map(function.function, options);
  }
  template <class F>
  static D filter(const D& from, const Carried<F>& keep) {
    return from.filter(keep.function);
  }
  static D take(const D& from, std::int64_t count) { return from.take(count); }
  static D skip(const D& from, std::int64_t count) { return from.skip(count); }
  static D shard(const D& from, std::int64_t count, std::int64_t index) { return from.shard(count, index); }
  static auto batch(const D& from, std::int64_t size, bool drop) { return from.batch(size, drop); }
  template <class F>
  static auto batch_as(const D& from, std::int64_t size, const Carried<F>& combine, bool drop) {
    return from.batch_as(size, combine.function, drop);
  }
  static D rebatch(const D& from, std::vector<std::int64_t> sizes, bool drop) {
    return from.rebatch(std::move(sizes), drop);
  }
  static D legacy_rebatch(const D& from, std::int64_t pieces) { return from.legacy_rebatch(pieces); }
  static D shuffle(const D& from, std::int64_t buffer, const ShuffleOptions& options) {
    return from.shuffle(buffer, options);
  }
  static D repeat(const D& from, std::int64_t count) { return from.repeat(count); }
  static D concatenate(const D& from, const D& other) { return from.concatenate(other); }
  template <class F>
  static auto interleave(const D& from, const Carried<F>& make, std::int64_t cycle, std::int64_t block) {
    return from.interleave(make.function, cycle, block);
  }
  static D prefetch(const D& from, std::int64_t elements) { return from.prefetch(elements); }
  static D cache(const D& from) { return from.cache(); }
};

/// Sets how another rank makes the node of a reader: by calling `make`(files, options...).
template <auto make, class N, class... Options>
std::shared_ptr<N> reader_with_recipe(std::shared_ptr<N> node, const Options&... options) {
  auto files = node->files();
  return with_recipe<make>(std::move(node), std::move(files), options...);
}

template <class... T>
struct ZipMaker {
  static Dataset<std::tuple<T...>> zip(const Dataset<T>&... datasets);
};
template <class A, class B>
struct ZipMaker<A, B> {
  static Dataset<std::pair<A, B>> zip(const Dataset<A>& a, const Dataset<B>& b);
};

template <class T>
struct BeginOfDataset {
  /// An input iterator.
  class Type {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    explicit Type(Iterator<T> from) : from_(std::move(from)) { ++*this; }
    T& operator*() const { return *element_; }
    Type& operator++() {
      element_ = from_.try_next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !element_; }

   private:
    Iterator<T> from_;
    mutable std::optional<T> element_;
  };
};

}  // namespace detail

/// Pairs of one element of each dataset, up to the end of the shorter one.
template <class A, class B>
Dataset<std::pair<A, B>> zip(const Dataset<A>& a, const Dataset<B>& b) {
  return Dataset<std::pair<A, B>>(detail::with_recipe<&detail::ZipMaker<A, B>::zip>(
      std::make_shared<data::ZipNode<std::pair<A, B>, A, B>>(a.node(), b.node())));
}
/// As above, for three or more datasets.
template <class A, class B, class C, class... More>
auto zip(const Dataset<A>& a, const Dataset<B>& b, const Dataset<C>& c, const Dataset<More>&... more) {
  using Out = std::tuple<A, B, C, More...>;
  return Dataset<Out>(detail::with_recipe<&detail::ZipMaker<A, B, C, More...>::zip>(
      std::make_shared<data::ZipNode<Out, A, B, C, More...>>(a.node(), b.node(), c.node(), more.node()...)));
}

template <class... T>
Dataset<std::tuple<T...>> detail::ZipMaker<T...>::zip(const Dataset<T>&... datasets) {
  return capstan::zip(datasets...);
}
template <class A, class B>
Dataset<std::pair<A, B>> detail::ZipMaker<A, B>::zip(const Dataset<A>& a, const Dataset<B>& b) {
  return capstan::zip(a, b);
}

/// File names, for an interleave or flat_map that opens them: sharding by file shards these names.
CAPSTAN_API Dataset<std::filesystem::path> list_files(data::Paths files);

}  // namespace capstan
