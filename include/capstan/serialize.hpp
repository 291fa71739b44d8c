// serialize.hpp -- serialization of arguments and results of closures, and of every control message.
//
// Works for arithmetic types, enums, strings, vectors, arrays, pairs, tuples, optionals, maps, and aggregates
// (plain structs of 1 to 16 members, without bases and C arrays) of these, nested arbitrarily. Specialize
// `Serializer` for any other type. Ranks run the same binary on the same architecture, so bytes are in host
// order.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/error.hpp"

namespace capstan {

/// Appends bytes to a buffer that it owns.
class Writer {
 public:
  /// Not inlined: GCC 12 reports false buffer overflows in the inlined code.
  [[gnu::noinline]] void raw(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, data, size);
  }
  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  std::vector<std::byte> take() noexcept { return std::move(bytes_); }

  /// Records an object that the bytes refer to; take_named() transfers the ownership to its caller.
  void name(std::shared_ptr<const void> object) { named_.push_back(std::move(object)); }
  std::vector<std::shared_ptr<const void>> take_named() noexcept { return std::move(named_); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::shared_ptr<const void>> named_;
};

/// Reads the output of a Writer. Throws Error(data_loss) if the bytes end too early.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}
  void raw(void* out, std::size_t size) {
    require(size);
    if (size != 0) std::memcpy(out, left_.data(), size);
    left_ = left_.subspan(size);
  }
  /// Returns the next `size` bytes in place, valid as long as the reader's input.
  std::span<const std::byte> view(std::size_t size) {
    require(size);
    const auto out = left_.first(size);
    left_ = left_.subspan(size);
    return out;
  }
  std::size_t left() const noexcept { return left_.size(); }
  void require(std::size_t size) const {
    if (size > left_.size()) {
      throw Error(Code::data_loss,
                  "truncated message: " + std::to_string(size - left_.size()) + " bytes are missing");
    }
  }

 private:
  std::span<const std::byte> left_;
};

/// Customization point: `static void write(Writer&, const T&)` and `static T read(Reader&)`. A generic
/// specialization lists its component types, so that errors name the offending one:
/// `using Parts = detail::TypeList<...>`.
template <class T>
struct Serializer;

template <class T>
void write(Writer& out, const T& value) {
  Serializer<T>::write(out, value);
}
template <class T>
T read(Reader& in) {
  return Serializer<T>::read(in);
}

/// Converts a value to bytes and back. `from_bytes` throws Error(data_loss) for bytes after the value.
template <class T>
std::vector<std::byte> to_bytes(const T& value) {
  Writer out;
  write(out, value);
  return out.take();
}
template <class T>
T from_bytes(std::span<const std::byte> bytes) {
  Reader in(bytes);
  T value = read<T>(in);
  if (in.left() != 0)
    throw Error(Code::data_loss,
                "message: found " + std::to_string(in.left()) + " bytes after its end, expected none");
  return value;
}

namespace detail {

template <class... T>
struct TypeList {};

struct Anything {
  template <class T>
  operator T() const noexcept;  // never defined: used only to count members
};

template <class T, class... Args>
constexpr std::size_t count_members() {
  if constexpr (sizeof...(Args) > 16) {
    return sizeof...(Args);
  } else if constexpr (requires { T{std::declval<Args>()..., std::declval<Anything>()}; }) {
    return count_members<T, Args..., Anything>();
  } else {
    return sizeof...(Args);
  }
}

template <class T>
struct BaseOf {
  template <class B>
  requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>) operator B() const noexcept;
};

/// Returns true if structured bindings of an aggregate correspond one to one to the initializers that
/// count_members counts: the aggregate has no base class, and no member is a C array.
template <class T>
constexpr bool has_plain_members() {
  if constexpr (requires { T{BaseOf<T>()}; }) {
    return false;
  } else {
    constexpr std::size_t kCount = count_members<T>();
    const auto is_one_member = []<std::size_t... Before, std::size_t... After>(
        std::index_sequence<Before...>, std::index_sequence<After...>) {
      return requires {
        T{(static_cast<void>(Before), Anything())..., {}, (static_cast<void>(After), Anything())...};
      };
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (is_one_member(std::make_index_sequence<I>(), std::make_index_sequence<kCount - 1 - I>()) &&
              ...);
    }
    (std::make_index_sequence<kCount>());
  }
}

template <class T>
constexpr bool has_pointers();

struct AnythingButPointers {
  template <class T>
  requires(!has_pointers<T>()) operator T() const noexcept;
};

/// Whether T is a pointer or an aggregate that contains one: its bytes are meaningless in another process.
/// Aggregates of more than 16 members are not examined.
template <class T>
constexpr bool has_pointers() {
  if constexpr (std::is_pointer_v<T> || std::is_member_pointer_v<T>) {
    return true;
  } else if constexpr (!std::is_aggregate_v<T>) {
    return false;
  } else {
    constexpr std::size_t kCount = count_members<T>();
    if constexpr (kCount > 16) {
      return false;
    } else {
      return []<std::size_t... I>(std::index_sequence<I...>) {
        return !requires { T{(static_cast<void>(I), AnythingButPointers())...}; };
      }
      (std::make_index_sequence<kCount>());
    }
  }
}

/// Types that are serialized as their bytes, by memcpy, individually and in vectors.
template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, float16> ||
    std::is_same_v<T, bfloat16> ||
    (std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>&& std::is_aggregate_v<T> &&
     !has_pointers<T>());

/// Calls `visit` with every member of an aggregate.
template <class T, class Visit>
decltype(auto) with_members(T& value, Visit&& visit) {
  constexpr std::size_t kCount = count_members<std::remove_cv_t<T>>();
  static_assert(kCount >= 1 && kCount <= 16, "expected a serialized aggregate to have 1 to 16 members");
  if constexpr (kCount == 1) {
    auto& [f0] = value;
    return visit(f0);
  } else if constexpr (kCount == 2) {
    auto& [f0, f1] = value;
    return visit(f0, f1);
  } else if constexpr (kCount == 3) {
    auto& [f0, f1, f2] = value;
    return visit(f0, f1, f2);
  } else if constexpr (kCount == 4) {
    auto& [f0, f1, f2, f3] = value;
    return visit(f0, f1, f2, f3);
  } else if constexpr (kCount == 5) {
    auto& [f0, f1, f2, f3, f4] = value;
    return visit(f0, f1, f2, f3, f4);
  } else if constexpr (kCount == 6) {
    auto& [f0, f1, f2, f3, f4, f5] = value;
    return visit(f0, f1, f2, f3, f4, f5);
  } else if constexpr (kCount == 7) {
    auto& [f0, f1, f2, f3, f4, f5, f6] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6);
  } else if constexpr (kCount == 8) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7);
  } else if constexpr (kCount == 9) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8);
  } else if constexpr (kCount == 10) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9);
  } else if constexpr (kCount == 11) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10);
  } else if constexpr (kCount == 12) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11);
  } else if constexpr (kCount == 13) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12);
  } else if constexpr (kCount == 14) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13);
  } else if constexpr (kCount == 15) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14);
  } else if constexpr (kCount == 16) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15] = value;
    return visit(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15);
  }
}

/// The member types of an aggregate; void if it cannot be serialized by its members.
template <class T>
struct MembersOf {
  struct List {
    template <class... M>
    TypeList<std::remove_cvref_t<M>...> operator()(M&...) const {
      return {};
    }
  };
  static constexpr std::size_t kCount = count_members<T>();
  static auto list(T& value) {
    if constexpr (kCount >= 1 && kCount <= 16) {
      if constexpr (has_plain_members<T>()) return with_members(value, List());
    }
  }
  using Type = decltype(list(std::declval<T&>()));
};

template <class T>
struct IsStdArray : std::false_type {};
template <class T, std::size_t N>
struct IsStdArray<std::array<T, N>> : std::true_type {};

}  // namespace detail

template <detail::Plain T>
struct Serializer<T> {
  static void write(Writer& out, const T& value) { out.raw(&value, sizeof value); }
  static T read(Reader& in) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = capstan::read<std::uint8_t>(in);
      if (byte > 1) {
        throw Error(Code::data_loss,
                    "message: found " + std::to_string(byte) + " for a bool, expected 0 or 1");
      }
      return byte == 1;
    } else {
      T value;
      in.raw(&value, sizeof value);
      return value;
    }
  }
};

template <>
struct Serializer<std::string> {
  static void write(Writer& out, const std::string& value) {
    capstan::write(out, std::uint64_t{value.size()});
    out.raw(value.data(), value.size());
  }
  static std::string read(Reader& in) {
    const auto bytes = in.view(capstan::read<std::uint64_t>(in));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

template <class T>
struct Serializer<std::vector<T>> {
  using Parts = detail::TypeList<T>;
  static void write(Writer& out, const std::vector<T>& value) {
    capstan::write(out, std::uint64_t{value.size()});
    if constexpr (detail::Plain<T> && !std::is_same_v<T, bool>) {
      out.raw(value.data(), value.size() * sizeof(T));
    } else {
      for (const T& element : value) capstan::write<T>(out, element);
    }
  }
  static std::vector<T> read(Reader& in) {
    const auto size = capstan::read<std::uint64_t>(in);
    in.require(size);  // an element takes at least one byte, which bounds the allocation
    std::vector<T> value;
    if constexpr (detail::Plain<T> && !std::is_same_v<T, bool>) {
      if (size > in.left() / sizeof(T)) in.require(in.left() + 1);
      value.resize(size);
      in.raw(value.data(), size * sizeof(T));
    } else {
      value.reserve(size);
      for (std::uint64_t i = 0; i < size; ++i) value.push_back(capstan::read<T>(in));
    }
    return value;
  }
};

template <class T, std::size_t N>
requires(!detail::Plain<std::array<T, N>>) struct Serializer<std::array<T, N>> {
  using Parts = detail::TypeList<T>;
  static void write(Writer& out, const std::array<T, N>& value) {
    for (const T& element : value) capstan::write(out, element);
  }
  static std::array<T, N> read(Reader& in) {
    std::array<T, N> value;
    for (T& element : value) element = capstan::read<T>(in);
    return value;
  }
};

template <class A, class B>
struct Serializer<std::pair<A, B>> {
  using Parts = detail::TypeList<A, B>;
  static void write(Writer& out, const std::pair<A, B>& value) {
    capstan::write(out, value.first);
    capstan::write(out, value.second);
  }
  static std::pair<A, B> read(Reader& in) {
    A first = capstan::read<A>(in);  // first: the evaluation order of arguments is unspecified
    return {std::move(first), capstan::read<B>(in)};
  }
};

template <class... T>
struct Serializer<std::tuple<T...>> {
  using Parts = detail::TypeList<T...>;
  static void write(Writer& out, const std::tuple<T...>& value) {
    std::apply([&](const T&... element) { (capstan::write(out, element), ...); }, value);
  }
  static std::tuple<T...> read(Reader& in) {
    return std::tuple<T...>{capstan::read<T>(in)...};  // a braced list is evaluated in order
  }
};

template <class T>
struct Serializer<std::optional<T>> {
  using Parts = detail::TypeList<T>;
  static void write(Writer& out, const std::optional<T>& value) {
    capstan::write(out, value.has_value());
    if (value) capstan::write(out, *value);
  }
  static std::optional<T> read(Reader& in) {
    if (!capstan::read<bool>(in)) return std::nullopt;
    return capstan::read<T>(in);
  }
};

namespace detail {

template <class Map>
struct MapSerializer {
  using Entry = std::pair<typename Map::key_type, typename Map::mapped_type>;
  using Parts = TypeList<typename Map::key_type, typename Map::mapped_type>;
  static void write(Writer& out, const Map& value) {
    capstan::write(out, std::uint64_t{value.size()});
    for (const auto& [key, mapped] : value) {
      capstan::write(out, key);
      capstan::write(out, mapped);
    }
  }
  static Map read(Reader& in) {
    const auto size = capstan::read<std::uint64_t>(in);
    in.require(size);
    Map value;
    for (std::uint64_t i = 0; i < size; ++i) value.insert(capstan::read<Entry>(in));
    return value;
  }
};

}  // namespace detail

template <class K, class V>
struct Serializer<std::map<K, V>> : detail::MapSerializer<std::map<K, V>> {};
template <class K, class V>
struct Serializer<std::unordered_map<K, V>> : detail::MapSerializer<std::unordered_map<K, V>> {};

template <class T>
requires(std::is_aggregate_v<T> && !std::is_array_v<T> && !detail::Plain<T> &&
         !detail::IsStdArray<T>::value) struct Serializer<T> {
  using Parts = typename detail::MembersOf<T>::Type;
  static void write(Writer& out, const T& value) {
    detail::with_members(value, [&](const auto&... member) { (capstan::write(out, member), ...); });
  }
  static T read(Reader& in) {
    T value{};
    detail::with_members(value, [&](auto&... member) {
      ((member = capstan::read<std::remove_cvref_t<decltype(member)>>(in)), ...);
    });
    return value;
  }
};

namespace detail {

template <class T>
concept HasSerializer = requires(Writer& out, Reader& in, const T& value) {
  Serializer<T>::write(out, value);
  { Serializer<T>::read(in) } -> std::same_as<T>;
};
template <class T>
concept HasParts = requires {
  typename Serializer<T>::Parts;
};

/// The first type within T that cannot be serialized; void if all of T can. `Outer` lists enclosing types,
/// which are being examined already.
template <class T, class... Outer>
struct Unserializable {
  using Type = std::conditional_t<HasSerializer<T>, void, T>;
};
template <class Parts, class Whole, class... Outer>
struct UnserializablePart {
  using Type = Whole;  // an aggregate whose members cannot be listed
};
template <class Whole, class... Outer>
struct UnserializablePart<TypeList<>, Whole, Outer...> {
  using Type = void;
};
template <class First, class... Rest, class Whole, class... Outer>
struct UnserializablePart<TypeList<First, Rest...>, Whole, Outer...> {
  static auto find() {
    if constexpr (!(std::is_same_v<First, Whole> || ... || std::is_same_v<First, Outer>)) {
      if constexpr (!std::is_void_v<typename Unserializable<First, Whole, Outer...>::Type>) {
        return Unserializable<First, Whole, Outer...>();
      } else {
        return UnserializablePart<TypeList<Rest...>, Whole, Outer...>();
      }
    } else {
      return UnserializablePart<TypeList<Rest...>, Whole, Outer...>();
    }
  }
  using Type = typename decltype(find())::Type;
};
template <HasParts T, class... Outer>
struct Unserializable<T, Outer...> {
  using Type = typename UnserializablePart<typename Serializer<T>::Parts, T, Outer...>::Type;
};

}  // namespace detail

/// T can be an argument or result of a closure: `write` and `read` work for it and for all its components.
template <class T>
concept Serializable = std::is_void_v<typename detail::Unserializable<std::remove_cv_t<T>>::Type>;

}  // namespace capstan
