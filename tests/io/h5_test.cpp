// h5_test.cpp -- HDF5 wrappers: error codes and reasons, types, selections, attributes.
#include "io/hdf5/h5.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/expect_error.hpp"
#include "temporary_directory.hpp"

namespace capstan::io::h5 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DType kDTypes[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                             DType::int32,   DType::int64,    DType::boolean};

class H5Test : public testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "test.h5"; }
  /// Creates a dataset of bytes and its missing groups.
  Dataset create_bytes(const File& file, const std::string& name, std::uint64_t bytes) {
    const Space space = create_space({bytes});
    const Properties links = intermediate_groups();
    return Dataset(check(H5Dcreate2(file.get(), name.c_str(), H5T_NATIVE_UINT8, space.get(), links.get(),
                                    H5P_DEFAULT, H5P_DEFAULT),
                         "H5Dcreate2", path()));
  }
  /// Returns the message of a call that fails because of `reason`.
  static std::string failed_because(const std::string& reason, Code code) {
    H5Eclear2(H5E_DEFAULT);
    // The innermost record is pushed first; the outer one only propagates it.
    H5Epush2(H5E_DEFAULT, "a.c", "write", 1, H5E_ERR_CLS, H5E_IO, H5E_WRITEERROR, "%s", reason.c_str());
    H5Epush2(H5E_DEFAULT, "b.c", "flush", 2, H5E_ERR_CLS, H5E_IO, H5E_WRITEERROR, "flush failed");
    return error_of(code, [] { check(-1, "H5Dwrite", "dir/file.h5"); });
  }

  const TemporaryDirectory directory_;
  const Session session_;
};

TEST_F(H5Test, CheckReturnsAnswersThatAreNotNegative) {
  EXPECT_EQ(check(0, "H5Dwrite", "file"), 0);
  EXPECT_EQ(check(1234567, "H5Dopen2", "file"), 1234567);
}

TEST_F(H5Test, CheckThrowsTheInnermostReasonAndNamesCallAndFile) {
  const std::string error = failed_because("file write failed: time = now\n, errno = 5", Code::internal);
  for (const char* parameter : {"H5Dwrite", "dir/file.h5", "time = now, errno = 5"}) {
    EXPECT_THAT(error, HasSubstr(parameter));
  }
  EXPECT_THAT(error, testing::Not(HasSubstr("flush failed")));
}

TEST_F(H5Test, CheckThrowsWithoutAReasonOrAFile) {
  H5Eclear2(H5E_DEFAULT);
  EXPECT_THAT(error_of(Code::internal, [] { check(-1, "H5Screate", {}); }), HasSubstr("H5Screate"));
}

TEST_F(H5Test, MapsFullDisksQuotasAndSizeLimitsToResourceExhausted) {
  for (const char* reason : {"error message = 'No space left on device'",
                             "error message = 'Disk quota exceeded'", "error message = 'File too large'"}) {
    EXPECT_THAT(failed_because(reason, Code::resource_exhausted), HasSubstr(reason));
  }
}

TEST_F(H5Test, OpensFilesReadOnly) {
  { const Dataset dataset = create_bytes(create_file(path()), "a/b/c", 10); }
  const File file = open_file(path());
  EXPECT_GE(Dataset(H5Dopen2(file.get(), "a/b/c", H5P_DEFAULT)).get(), 0) << "missing groups are created";
  EXPECT_THAT(error_of(Code::internal, [&] { create_bytes(file, "d", 10); }), HasSubstr(path().string()));
  EXPECT_THAT(error_of(Code::internal, [&] { open_file(directory_.path() / "missing.h5"); }),
              HasSubstr("missing.h5"));
}

TEST_F(H5Test, CreateFileReplacesAnExistingFile) {
  { const Dataset dataset = create_bytes(create_file(path()), "old", 10); }
  close_file(create_file(path()), path());
  const File file = open_file(path());
  EXPECT_EQ(H5Lexists(file.get(), "old", H5P_DEFAULT), 0);
}

TEST_F(H5Test, LargeArraysStartOnAPage) {
  const File file = create_file(path());
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    const Dataset small = create_bytes(file, "small" + number, 100);
    const Dataset large = create_bytes(file, "large" + number, 64 * 1024 + 1);
    for (const Dataset* dataset : {&small, &large}) {
      const std::vector<std::uint8_t> bytes(64 * 1024 + 1);
      ASSERT_GE(H5Dwrite(dataset->get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0);
    }
    EXPECT_EQ(H5Dget_offset(large.get()) % 4096, 0U);
  }
}

TEST_F(H5Test, CloseFileThrowsTheErrorOfTheCall) {
  File file = create_file(path());
  const hid_t closed = file.get();
  close_file(std::move(file), path());
  const std::string error = error_of(Code::internal, [&] { close_file(File(closed), path()); });
  EXPECT_THAT(error, HasSubstr("H5Fclose"));
  EXPECT_THAT(error, HasSubstr(path().string()));
}

TEST_F(H5Test, SpacesHaveTheirShape) {
  EXPECT_THAT(shape_of(create_space({4, 0, 7}), path()), ElementsAre(4, 0, 7));
  EXPECT_TRUE(shape_of(Space(H5Screate(H5S_SCALAR)), path()).empty());
}

TEST_F(H5Test, SelectsRowsWithAllTheirColumns) {
  const std::vector<std::uint64_t> shape{10, 3, 2};
  const Space space = create_space(shape);
  select_rows(space, shape, 4, 5);
  EXPECT_EQ(H5Sget_select_npoints(space.get()), 5 * 3 * 2);
  std::array<hsize_t, 3> first{};
  std::array<hsize_t, 3> last{};
  ASSERT_GE(H5Sget_select_bounds(space.get(), first.data(), last.data()), 0);
  EXPECT_THAT(first, ElementsAre(4, 0, 0));
  EXPECT_THAT(last, ElementsAre(8, 2, 1));
  select_rows(space, shape, 9, 1);
  EXPECT_EQ(H5Sget_select_npoints(space.get()), 6) << "the previous selection is replaced";
}

TEST_F(H5Test, TypesHaveTheSizeOfTheDType) {
  for (const DType dtype : kDTypes) {
    EXPECT_EQ(H5Tget_size(memory_type(dtype)), size_of(dtype)) << to_string(dtype);
    EXPECT_EQ(H5Tget_size(file_type(dtype)), size_of(dtype)) << to_string(dtype);
    const H5T_class_t kind = is_floating(dtype)        ? H5T_FLOAT
                             : dtype == DType::boolean ? H5T_ENUM
                                                       : H5T_INTEGER;
    EXPECT_EQ(H5Tget_class(file_type(dtype)), kind) << to_string(dtype);
    EXPECT_EQ(H5Tget_class(memory_type(dtype)), kind) << to_string(dtype);
    if (dtype == DType::boolean) continue;
    EXPECT_EQ(H5Tget_order(file_type(dtype)), H5T_ORDER_LE) << to_string(dtype);
  }
}

TEST_F(H5Test, HalfTypesDecodeTheirBits) {
  const float values[] = {0, 1, -1.5F, 0x1.ffcp15F, 0x1p-14F, 0x1p-24F};  // the last is subnormal in float16
  for (const float value : values) {
    std::array<std::byte, 4> memory{};
    const float16 half(value);
    std::memcpy(memory.data(), &half, sizeof half);
    ASSERT_GE(H5Tconvert(file_type(DType::float16), H5T_NATIVE_FLOAT, 1, memory.data(), nullptr, H5P_DEFAULT),
              0);
    float back = -7;
    std::memcpy(&back, memory.data(), sizeof back);
    EXPECT_EQ(back, value);
    const bfloat16 brain(value);
    std::memcpy(memory.data(), &brain, sizeof brain);
    ASSERT_GE(
        H5Tconvert(file_type(DType::bfloat16), H5T_NATIVE_FLOAT, 1, memory.data(), nullptr, H5P_DEFAULT), 0);
    std::memcpy(&back, memory.data(), sizeof back);
    EXPECT_EQ(back, static_cast<float>(brain));
  }
}

TEST_F(H5Test, WritesAttributesOfEveryKind) {
  const File file = create_file(path());
  write_attribute(file.get(), "integer", std::int64_t{-5'000'000'000});
  write_attribute(file.get(), "real", 0.1);
  write_attribute(file.get(), "list", std::vector<std::uint64_t>{3, 1, ~std::uint64_t{0}});
  write_attribute(file.get(), "text", std::string("\xc3\xa4 b"));
  const auto open = [&](const char* name) { return Attribute(H5Aopen(file.get(), name, H5P_DEFAULT)); };

  std::int64_t integer = 0;
  ASSERT_GE(H5Aread(open("integer").get(), H5T_NATIVE_INT64, &integer), 0);
  EXPECT_EQ(integer, -5'000'000'000);
  double real = 0;
  ASSERT_GE(H5Aread(open("real").get(), H5T_NATIVE_DOUBLE, &real), 0);
  EXPECT_EQ(real, 0.1);
  std::array<std::uint64_t, 3> list{};
  const Attribute of_list = open("list");
  EXPECT_THAT(shape_of(Space(H5Aget_space(of_list.get())), path()), ElementsAre(3));
  ASSERT_GE(H5Aread(of_list.get(), H5T_NATIVE_UINT64, list.data()), 0);
  EXPECT_THAT(list, ElementsAre(3, 1, ~std::uint64_t{0}));
  const Attribute of_text = open("text");
  const Type type(H5Aget_type(of_text.get()));
  EXPECT_GT(H5Tis_variable_str(type.get()), 0);
  EXPECT_EQ(H5Tget_cset(type.get()), H5T_CSET_UTF8);
  char* text = nullptr;
  ASSERT_GE(H5Aread(of_text.get(), type.get(), &text), 0);
  EXPECT_STREQ(text, "\xc3\xa4 b");
  H5free_memory(text);

  EXPECT_THAT(error_of(Code::internal, [&] { write_attribute(file.get(), "real", 0.2); }), HasSubstr("real"))
      << "the attribute exists";
}

herr_t own_printer(hid_t, void*) { return 0; }

TEST(H5Session, RestoresTheProgramsErrorPrinter) {
  H5E_auto2_t before = nullptr;
  void* data_before = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data_before);
  int data = 0;
  H5Eset_auto2(H5E_DEFAULT, own_printer, &data);
  H5E_auto2_t printer = nullptr;
  void* printer_data = nullptr;
  {
    const Session session;
    H5Eget_auto2(H5E_DEFAULT, &printer, &printer_data);
    EXPECT_EQ(printer, nullptr) << "errors are thrown, not printed";
  }
  H5Eget_auto2(H5E_DEFAULT, &printer, &printer_data);
  EXPECT_EQ(printer, &own_printer);
  EXPECT_EQ(printer_data, &data);
  H5Eset_auto2(H5E_DEFAULT, before, data_before);
}

TEST(H5Session, AdmitsOneThreadAtATime) {
  constexpr int kThreads = 4, kTimes = 200;
  int inside = 0;  // not atomic: the session guards it
  int most = 0;
  int total = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < kTimes; ++i) {
          const Session session;
          most = std::max(most, ++inside);
          std::this_thread::yield();
          --inside;
          ++total;
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(total, kThreads * kTimes);
}

}  // namespace
}  // namespace capstan::io::h5
