// direct_writer_test.cpp -- direct and cached writes give the same bytes.
#include "io/direct_writer.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "tests/io/temporary_directory.hpp"

namespace capstan::io {
namespace {

using Pwrite = ssize_t (*)(int, const void*, std::size_t, off_t);

ssize_t system_pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  static const auto real = reinterpret_cast<Pwrite>(::dlsym(RTLD_NEXT, "pwrite"));
  return real(file, bytes, count, offset);
}

bool is_direct(int file) { return (::fcntl(file, F_GETFL) & O_DIRECT) != 0; }

/// Replaces `pwrite` of this process by `instead` until destruction.
class InPlaceOfPwrite {
 public:
  explicit InPlaceOfPwrite(std::function<ssize_t(int, const void*, std::size_t, off_t)> instead) {
    current() = std::move(instead);
  }
  ~InPlaceOfPwrite() { current() = nullptr; }
  InPlaceOfPwrite(const InPlaceOfPwrite&) = delete;
  InPlaceOfPwrite& operator=(const InPlaceOfPwrite&) = delete;
  static std::function<ssize_t(int, const void*, std::size_t, off_t)>& current() {
    static std::function<ssize_t(int, const void*, std::size_t, off_t)> instead;
    return instead;
  }
};

/// Counts the bytes of direct and cached writes. Rejects misaligned direct writes as the kernel does.
struct WriteCounts {
  std::uint64_t direct = 0;
  std::uint64_t cached = 0;

  ssize_t write(int file, const void* bytes, std::size_t count, off_t offset) {
    (is_direct(file) ? direct : cached) += count;
    if (is_direct(file)) {
      EXPECT_EQ(count % DirectWriter::kBlockBytes, 0u);
      EXPECT_EQ(static_cast<std::uint64_t>(offset) % DirectWriter::kBlockBytes, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % DirectWriter::kBlockBytes, 0u);
    }
    return system_pwrite(file, bytes, count, offset);
  }
};

struct Extent {
  std::uint64_t offset;
  std::uint64_t bytes;
};

class DirectWriting : public testing::Test {
 protected:
  /// Writes in pieces of `piece` bytes; keeps existing bytes outside of the ranges.
  void expect_written(const std::vector<Extent>& extents, std::uint64_t file_bytes, std::size_t piece) {
    SCOPED_TRACE("pieces of " + std::to_string(piece) + " bytes");
    std::string expected(file_bytes, 'x');
    const auto path = scratch_.write("file", expected);
    std::mt19937 random(static_cast<unsigned>(piece));
    {
      DirectWriter writer(path);
      for (const Extent& extent : extents) {
        for (std::uint64_t i = 0; i < extent.bytes; ++i)
          expected[extent.offset + i] = static_cast<char>(random() % 256);
        writer.begin(extent.offset, extent.bytes);
        for (std::uint64_t at = 0; at < extent.bytes; at += piece) {
          const std::size_t bytes = std::min<std::uint64_t>(piece, extent.bytes - at);
          std::memcpy(writer.staging_buffer(bytes), expected.data() + extent.offset + at, bytes);
          writer.add(bytes);
        }
        writer.end();
      }
      writer.sync();
    }
    EXPECT_TRUE(read_whole_file(path) == expected);
  }

  /// Returns false if the file system of this directory has no O_DIRECT, so that the tests cannot check it.
  bool direct_here() {
    WriteCounts counts;
    const InPlaceOfPwrite watch([&](auto... call) { return counts.write(call...); });
    expect_written({{0, kMany}}, kMany, kMany);
    return counts.direct > 0;
  }

  static constexpr std::uint64_t kMany = DirectWriter::kMinDirectBytes;
  TemporaryDirectory scratch_;
};

TEST_F(DirectWriting, WritesAllBytesForEveryRowSize) {
  // Other data follows each range in its last block.
  const std::vector<Extent> extents{
      {4096, kMany + 4096 * 7 + 1}, {2 * kMany, kMany}, {4 * kMany - 4096, kMany + 4095}, {700, 100}};
  WriteCounts counts;
  const InPlaceOfPwrite watch([&](auto... call) { return counts.write(call...); });
  for (const std::size_t piece : {1u << 20, 4096u, 4095u, 4097u, 1000u, 12345u, 3u << 20})
    expect_written(extents, 6 * kMany, piece);
}

TEST_F(DirectWriting, UsesDirectWritesOnlyForCompleteBlocksOfLargeRanges) {
  if (!direct_here()) GTEST_SKIP() << "no O_DIRECT on the file system of " << scratch_.path();
  WriteCounts counts;
  const InPlaceOfPwrite watch([&](auto... call) { return counts.write(call...); });
  expect_written({{8192, kMany + 5000}}, 2 * kMany, 3000);
  EXPECT_EQ(counts.direct, kMany + 4096);
  EXPECT_EQ(counts.cached, 5000u - 4096);
  counts = {};
  expect_written({{8192, kMany - 1}}, 2 * kMany, 3000);
  expect_written({{100, kMany + 5000}}, 2 * kMany, 3000);
  EXPECT_EQ(counts.direct, 0u);
}

TEST_F(DirectWriting, FallsBackToThePageCacheIfADirectWriteIsRejected) {
  WriteCounts counts;
  int refused = 0;
  const InPlaceOfPwrite watch([&](int file, const void* bytes, std::size_t count, off_t offset) -> ssize_t {
    if (is_direct(file) && offset >= 65536 && ++refused > 0) {
      errno = EINVAL;
      return -1;
    }
    return counts.write(file, bytes, count, offset);
  });
  expect_written({{0, kMany + 1}, {2 * kMany, kMany}}, 3 * kMany, 30000);
  EXPECT_LE(refused, 1) << "a rejected direct write was retried";
}

TEST_F(DirectWriting, ContinuesAfterAShortWrite) {
  for (const std::size_t most : {4096u, 5000u, 1u}) {
    const InPlaceOfPwrite watch([&](int file, const void* bytes, std::size_t count, off_t offset) {
      if (!is_direct(file)) return system_pwrite(file, bytes, count, offset);
      std::vector<char> copy(static_cast<const char*>(bytes), static_cast<const char*>(bytes) + count);
      const FileDescriptor cached(
          ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_WRONLY | O_CLOEXEC));
      return system_pwrite(cached.get(), copy.data(), std::min(count, most), offset);
    });
    expect_written({{4096, kMany + 10000}}, 2 * kMany, 100'000);
  }
}

TEST_F(DirectWriting, ErrorsNameTheFile) {
  for (const auto& [error, code] :
       {std::pair(ENOSPC, Code::resource_exhausted), std::pair(EDQUOT, Code::resource_exhausted),
        std::pair(EIO, Code::internal)}) {
    const InPlaceOfPwrite watch([&, error = error](int, const void*, std::size_t, off_t) -> ssize_t {
      errno = error;
      return -1;
    });
    const auto path = scratch_.write("full", std::string(kMany, 'x'));
    DirectWriter writer(path);
    writer.begin(0, kMany);
    std::memset(writer.staging_buffer(kMany), 1, kMany);
    try {
      writer.add(kMany);
      ADD_FAILURE() << "no error";
    } catch (const Error& thrown) {
      EXPECT_EQ(thrown.code(), code);
      EXPECT_THAT(thrown.what(), testing::HasSubstr(path.string()));
      EXPECT_THAT(thrown.what(), testing::HasSubstr(std::strerror(error)));
    }
  }
}

TEST_F(DirectWriting, WritesToAFileSystemInMemory) {
  std::string pattern = "/dev/shm/capstan-io-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) GTEST_SKIP() << "no /dev/shm";
  const std::filesystem::path path = std::filesystem::path(pattern) / "file";
  std::ofstream(path) << "x";
  DirectWriter writer(path);
  writer.begin(0, kMany);
  std::memset(writer.staging_buffer(kMany), 'y', kMany);
  writer.add(kMany);
  writer.end();
  writer.sync();
  EXPECT_TRUE(read_whole_file(path) == std::string(kMany, 'y'));
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace capstan::io

/// Replaces the function of the C library.
extern "C" ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  if (const auto& instead = capstan::io::InPlaceOfPwrite::current())
    return instead(file, bytes, count, offset);
  return capstan::io::system_pwrite(file, bytes, count, offset);
}
