// serve_test.cpp -- lookups of `capstan serve`, its threads, and the path of its socket, without HTTP.
// Tests: launch/serve/lookup.cpp
// Tests: launch/serve/thread_pool.cpp
// Tests: launch/serve/unix_socket.cpp
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/serve/lookup.hpp"
#include "launch/serve/thread_pool.hpp"
#include "launch/serve/unix_socket.hpp"
#include "support/expect_error.hpp"

namespace capstan::launch::serve {
namespace {

using ::testing::ElementsAre;

TEST(ServeLookup, ParsesIdsAndNames) {
  const Lookup ids = parse_lookup(R"({"variable": "w", "ids": [3, -1, 9223372036854775807]})", 3);
  EXPECT_EQ(ids.variable, "w");
  EXPECT_THAT(ids.ids, ElementsAre(3, -1, std::numeric_limits<std::int64_t>::max()));
  EXPECT_THAT(parse_lookup(R"({"variable": "w", "names": ["a", ""]})", 2).names, ElementsAre("a", ""));
  EXPECT_TRUE(parse_lookup(R"({"variable": "w", "ids": []})", 0).ids.empty());
}

TEST(ServeLookup, RejectsOtherRequests) {
  for (const char* text :
       {"", "{", "[]", "3", "{}", R"({"variable": "w"})", R"({"variable": 3, "ids": []})",
        R"({"variable": "w", "ids": 1})", R"({"variable": "w", "ids": [1.5]})",
        R"({"variable": "w", "ids": [1e3]})", R"({"variable": "w", "ids": [9223372036854775808]})",
        R"({"variable": "w", "ids": ["1"]})", R"({"variable": "w", "ids": [true]})",
        R"({"variable": "w", "ids": [null]})", R"({"variable": "w", "ids": [], "names": []})",
        R"({"variable": "w", "names": [1]})", R"({"variable": "w", "ids": [], "more": 1})",
        R"({"variable": "w", "ids": [NaN]})"}) {
    EXPECT_EQ(code_of([&] { (void)parse_lookup(text, 10); }), Code::invalid_argument) << text;
  }
  const std::string deep = R"({"variable": "w", "ids": )" + std::string(100'000, '[');
  EXPECT_EQ(code_of([&] { (void)parse_lookup(deep, 10); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)parse_lookup(R"({"variable": "w", "ids": [1, 2]})", 1); }),
            Code::resource_exhausted);
}

TEST(ServeLookup, ParsesBytesOfAnyAlignment) {
  const std::int64_t ids[] = {-2, 1LL << 40};
  std::string bytes(1, 'x');
  bytes.append(reinterpret_cast<const char*>(ids), sizeof ids);
  EXPECT_THAT(parse_binary_lookup("w", std::string_view(bytes).substr(1), 2).ids, ElementsAre(-2, 1LL << 40));
  EXPECT_EQ(code_of([&] { (void)parse_binary_lookup("w", bytes, 2); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)parse_binary_lookup("", "", 2); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)parse_binary_lookup("w", std::string_view(bytes).substr(1), 1); }),
            Code::resource_exhausted);
}

template <class T>
FoundRows rows_of(Shape shape, DType dtype, const std::vector<T>& values) {
  FoundRows rows{.shape = std::move(shape), .dtype = dtype};
  rows.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return rows;
}

TEST(ServeLookup, FormatsNestedListsThatParseToTheSameNumbers) {
  const std::vector<float> values{0.1F, -3e-38F, 16777217.0F, 0, 1e20F, -0.5F};
  const auto json = nlohmann::json::parse(to_json("a \"b\"", rows_of({2, 3}, DType::float32, values)));
  EXPECT_EQ(json["variable"], "a \"b\"");
  EXPECT_EQ(json["shape"], (std::vector{2, 3}));
  std::vector<float> read;
  for (const auto& row : json["rows"])
    for (const auto& value : row) read.push_back(value.get<float>());
  EXPECT_EQ(read, values);
  const auto cube =
      nlohmann::json::parse(to_json("c", rows_of<std::int64_t>({1, 2, 1}, DType::int64, {1, -5})));
  EXPECT_EQ(cube["rows"].dump(), "[[[1],[-5]]]");
  EXPECT_EQ(
      nlohmann::json::parse(to_json("v", rows_of<std::int32_t>({2}, DType::int32, {1, 2})))["rows"].dump(),
      "[1,2]");
  EXPECT_EQ(nlohmann::json::parse(to_json("v", rows_of<char>({2}, DType::boolean, {1, 0})))["rows"].dump(),
            "[true,false]");
}

TEST(ServeLookup, FormatsNumbersThatAreNotFiniteAsNull) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto text = to_json("v", rows_of<float>({3}, DType::float32, {infinity, std::nanf(""), -infinity}));
  EXPECT_EQ(nlohmann::json::parse(text)["rows"].dump(), "[null,null,null]");
}

TEST(ServeThreads, RunsTasksAndRejectsThoseBeyondTheQueue) {
  std::latch release(1), began(1);
  std::atomic<int> done = 0;
  ThreadPool pool(1, 1);
  ASSERT_TRUE(pool.try_add([&] {
    began.count_down();
    release.wait();
    ++done;
  }));
  began.wait();
  EXPECT_FALSE(pool.has_waiting());
  EXPECT_TRUE(pool.try_add([&] { ++done; }));
  EXPECT_TRUE(pool.has_waiting());
  EXPECT_FALSE(pool.try_add([&] { ++done; }));
  release.count_down();
  pool.shutdown();
  EXPECT_EQ(done, 2);
  EXPECT_FALSE(pool.try_add([] {}));
}

/// A bound socket, on which a process listens if `listens`.
class BoundSocket {
 public:
  BoundSocket(const std::filesystem::path& path, bool listens) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    if (listens) {
      EXPECT_EQ(::listen(socket_, 1), 0);
    }
  }
  ~BoundSocket() { ::close(socket_); }

 private:
  int socket_;
};

class ServeSocket : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("capstan-serve-" + std::to_string(::getpid()));
  std::filesystem::path path_ = directory_ / "socket";
};

TEST_F(ServeSocket, RemovesOnlyAStaleSocket) {
  remove_stale_socket(path_);  // no file
  { const BoundSocket stale(path_, false); }
  ASSERT_TRUE(std::filesystem::exists(path_));
  remove_stale_socket(path_);
  EXPECT_FALSE(std::filesystem::exists(path_));
  {
    const BoundSocket live(path_, true);
    EXPECT_EQ(code_of([&] { remove_stale_socket(path_); }), Code::already_exists);
  }
  std::filesystem::remove(path_);
  std::ofstream(path_) << "text";
  EXPECT_EQ(code_of([&] { remove_stale_socket(path_); }), Code::already_exists);
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(code_of([&] { remove_stale_socket(std::string(108, 'x')); }), Code::invalid_argument);
}

TEST_F(ServeSocket, LocksItsDirectoryAgainstAnotherStart) {
  const FileDescriptor other(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY));
  {
    const FileDescriptor lock = lock_directory_of(path_);
    EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), -1);
  }
  EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(code_of([&] { (void)lock_directory_of(directory_ / "missing" / "socket"); }), Code::not_found);
}

TEST_F(ServeSocket, RemovesItsOwnSocketAtTheEnd) {
  {
    const BoundSocket own(path_, true);
    const SocketFile file(path_);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  const BoundSocket first(directory_ / "first", true), other(directory_ / "other", true);
  {
    const SocketFile file(directory_ / "first");
    std::filesystem::rename(directory_ / "other", directory_ / "first");
  }
  EXPECT_TRUE(std::filesystem::exists(directory_ / "first"));
}

}  // namespace
}  // namespace capstan::launch::serve
