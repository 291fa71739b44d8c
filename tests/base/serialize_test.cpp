// serialize_test.cpp -- round trips of every kind of value, and input that is too short or too long.
#include "capstan/serialize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace capstan {
namespace {

enum class Color : std::uint8_t { red = 1, blue = 7 };

struct Point {
  std::int32_t x = 0;
  std::int32_t y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

/// Has padding, so it is serialized member by member.
struct Padded {
  std::uint8_t small = 0;
  double large = 0;
  friend bool operator==(const Padded&, const Padded&) = default;
};

struct Nested {
  std::string name;
  std::vector<Point> points;
  std::optional<std::string> note;
  std::map<std::string, std::vector<double>> table;
  std::array<std::string, 2> pair;
  Padded padded;
  bool flag = false;
  friend bool operator==(const Nested&, const Nested&) = default;
};

struct Sixteen {
  std::string a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
  friend bool operator==(const Sixteen&, const Sixteen&) = default;
};

struct One {
  std::vector<std::string> only;
  friend bool operator==(const One&, const One&) = default;
};

/// A type that needs its own Serializer.
class Celsius {
 public:
  explicit Celsius(double degrees) : degrees_(degrees) {}
  double degrees() const { return degrees_; }

 private:
  double degrees_;
};

}  // namespace

template <>
struct Serializer<Celsius> {
  static void write(Writer& out, const Celsius& value) { capstan::write(out, value.degrees()); }
  static Celsius read(Reader& in) { return Celsius(capstan::read<double>(in)); }
};

namespace {

Nested sample() {
  return {"shard", {{1, -2}, {3, 4}}, "a note", {{"m", {0.5, -1}}, {"v", {}}}, {"left", ""}, {9, 2.5}, true};
}

template <class T>
void expect_round_trip(const T& value) {
  EXPECT_EQ(from_bytes<T>(to_bytes(value)), value);
}

/// Expects that each truncation of the bytes is rejected, and also one additional byte.
template <class T>
void expect_exact_length(const T& value) {
  std::vector<std::byte> bytes = to_bytes(value);
  ASSERT_FALSE(bytes.empty());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    try {
      (void)from_bytes<T>(std::span(bytes).first(length));
      ADD_FAILURE() << "accepted " << length << " of " << bytes.size() << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::data_loss) << error.what();
    }
  }
  bytes.push_back(std::byte{0});
  try {
    (void)from_bytes<T>(bytes);
    ADD_FAILURE() << "accepted an additional byte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::data_loss);
    EXPECT_THAT(error.what(), testing::HasSubstr("1 bytes"));
  }
}

TEST(Serialize, NumbersAndEnumsKeepTheirValues) {
  expect_round_trip(true);
  expect_round_trip('x');
  expect_round_trip(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(std::numeric_limits<std::uint64_t>::max());
  expect_round_trip(0.1F);
  expect_round_trip(-std::numeric_limits<double>::denorm_min());
  expect_round_trip(Color::blue);
}

TEST(Serialize, StringsAndContainersKeepTheirElements) {
  expect_round_trip(std::string());
  expect_round_trip(std::string("with\0zero", 9));
  expect_round_trip(std::vector<std::int32_t>{});
  expect_round_trip(std::vector<std::int32_t>{1, -2, 3});
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::string>{"a", "", "ccc"});
  expect_round_trip(std::vector<std::vector<double>>{{}, {1}, {2, 3}});
  expect_round_trip(std::array<double, 3>{1, 2, 3});
  expect_round_trip(std::array<std::string, 2>{"x", "y"});
  expect_round_trip(std::pair<std::string, int>{"k", 4});
  expect_round_trip(std::tuple<int, std::string, std::vector<int>>{1, "two", {3}});
  expect_round_trip(std::tuple<>{});
  expect_round_trip(std::optional<std::string>{});
  expect_round_trip(std::optional<std::string>{"here"});
  expect_round_trip(std::optional<std::optional<int>>{std::optional<int>{}});
  expect_round_trip(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  expect_round_trip(std::unordered_map<int, std::string>{{1, "a"}, {2, "b"}});
}

TEST(Serialize, StructsKeepTheirMembers) {
  expect_round_trip(Point{1, -1});
  expect_round_trip(Padded{255, 1e300});
  expect_round_trip(std::vector<Padded>{{1, 2}, {3, 4}});
  expect_round_trip(One{{"x"}});
  expect_round_trip(Nested{});
  expect_round_trip(sample());
  expect_round_trip(std::vector<Nested>{sample(), {}, sample()});
  expect_round_trip(Sixteen{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"});
}

TEST(Serialize, BytesContainNoPadding) {
  EXPECT_EQ(to_bytes(Padded{1, 2}).size(), 9U);
  EXPECT_EQ(to_bytes(Point{1, 2}).size(), 8U);
  EXPECT_EQ(to_bytes(std::string("abc")).size(), 8U + 3U);
  EXPECT_EQ(to_bytes(std::vector<Point>(3)).size(), 8U + 24U);
}

TEST(Serialize, UsesTheSerializerOfACustomType) {
  EXPECT_EQ(from_bytes<Celsius>(to_bytes(Celsius(21.5))).degrees(), 21.5);
}

TEST(Serialize, ReadsValuesInTheOrderOfWriting) {
  Writer out;
  write(out, std::string("first"));
  write(out, 2);
  write(out, std::vector<double>{3});
  const auto bytes = out.take();
  Reader in(bytes);
  EXPECT_EQ(read<std::string>(in), "first");
  EXPECT_EQ(read<int>(in), 2);
  EXPECT_EQ(read<std::vector<double>>(in), std::vector<double>{3});
  EXPECT_EQ(in.left(), 0U);
}

TEST(Serialize, RejectsBytesOfTheWrongLength) {
  expect_exact_length(std::uint64_t{7});
  expect_exact_length(std::string("text"));
  expect_exact_length(std::vector<std::int64_t>{1, 2});
  expect_exact_length(std::vector<bool>{true, false});
  expect_exact_length(std::vector<std::string>{"a", "bb"});
  expect_exact_length(std::optional<int>{3});
  expect_exact_length(std::map<std::string, int>{{"a", 1}});
  expect_exact_length(std::unordered_map<int, std::string>{{1, "a"}});
  expect_exact_length(std::tuple<int, std::string>{1, "x"});
  expect_exact_length(sample());
}

TEST(Serialize, RejectsImpossibleSizesBeforeAllocating) {
  for (const std::uint64_t size : {std::uint64_t{100}, std::uint64_t{1} << 40, std::uint64_t{1} << 61,
                                   (std::uint64_t{1} << 61) + 1, std::numeric_limits<std::uint64_t>::max()}) {
    Writer out;
    write(out, size);
    write(out, std::uint64_t{0});
    const auto bytes = out.take();
    EXPECT_THROW((void)from_bytes<std::string>(bytes), Error) << size;
    EXPECT_THROW((void)from_bytes<std::vector<double>>(bytes), Error) << size;
    EXPECT_THROW((void)from_bytes<std::vector<std::string>>(bytes), Error) << size;
    EXPECT_THROW((void)from_bytes<std::vector<bool>>(bytes), Error) << size;
    EXPECT_THROW((void)(from_bytes<std::map<int, int>>(bytes)), Error) << size;
  }
}

TEST(Serialize, RejectsInvalidBooleans) {
  for (const int byte : {2, 128, 255}) {
    const std::vector<std::byte> bytes{std::byte(byte)};
    EXPECT_THROW((void)from_bytes<bool>(bytes), Error);
    EXPECT_THROW((void)from_bytes<std::optional<int>>(bytes), Error);
  }
}

}  // namespace
}  // namespace capstan
