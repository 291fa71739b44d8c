// row_reader_test.cpp -- rows of HDF5 files of other programs.
#include "io/hdf5/row_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "io/hdf5/h5.hpp"
#include "support/expect_error.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using testing::ElementsAre;

class RowReaderTest : public testing::Test {
 protected:
  /// Adds a dataset of the given type to the file.
  template <class T>
  void add(const std::string& name, const std::vector<std::uint64_t>& shape, const std::vector<T>& values,
           hid_t stored, hid_t memory) {
    const h5::Session session;
    h5::File file = std::filesystem::exists(path_)
                        ? h5::File(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT))
                        : h5::create_file(path_);
    const h5::Space space = h5::create_space(shape);
    const h5::Properties links = h5::intermediate_groups();
    const h5::Dataset dataset(
        H5Dcreate2(file.get(), name.c_str(), stored, space.get(), links.get(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(dataset.get(), 0);
    ASSERT_GE(H5Dwrite(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }
  void add_floats(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::vector<float> values(
        std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    std::iota(values.begin(), values.end(), 0.F);
    add(name, shape, values, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT);
  }
  template <class T>
  std::vector<T> read(const std::string& name, std::uint64_t first, std::uint64_t rows,
                      std::size_t width = 1) {
    std::vector<T> out(rows * width);
    RowReader(path_, name).read(first, rows, out.data());
    return out;
  }
  /// The error must name the file and the dataset.
  void expect_rejected(Code code, const std::string& name) {
    const std::string error = error_of(code, [&] { const RowReader reader(path_, name); });
    EXPECT_THAT(error, testing::HasSubstr(path_.string()));
    EXPECT_THAT(error, testing::HasSubstr(name));
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "rows.h5";
};

TEST_F(RowReaderTest, ReadsAnyRowsOfATable) {
  add_floats("x", {5, 3});
  const RowReader reader(path_, "x");
  EXPECT_EQ(reader.shape(), (Shape{5, 3}));
  std::vector<float> out(7, -1);
  reader.read(3, 2, out.data());
  EXPECT_THAT(out, ElementsAre(9, 10, 11, 12, 13, 14, -1));
  out.assign(7, -1);
  reader.read(0, 1, out.data());
  EXPECT_THAT(out, ElementsAre(0, 1, 2, -1, -1, -1, -1));
  out.assign(7, -1);
  reader.read(2, 0, out.data());
  EXPECT_THAT(out, ElementsAre(-1, -1, -1, -1, -1, -1, -1));
}

TEST_F(RowReaderTest, ReadsDatasetsOfAnyRankInAnyGroup) {
  add_floats("vector", {6});
  add_floats("a/b/images", {3, 2, 2});
  EXPECT_THAT(read<float>("vector", 4, 2), ElementsAre(4, 5));
  EXPECT_EQ(RowReader(path_, "a/b/images").shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(read<float>("/a/b/images", 1, 1, 4), ElementsAre(4, 5, 6, 7));
}

TEST_F(RowReaderTest, ConvertsTheNumbersOfTheFile) {
  const std::vector<double> doubles{0, 1.75, 200, 3e9};
  add("doubles", {4}, doubles, H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE);
  const std::vector<std::int64_t> integers{-1, 7, 300, std::int64_t{1} << 40};
  add("integers", {4}, integers, H5T_STD_I64BE, H5T_NATIVE_INT64);
  add("bytes", {3}, std::vector<std::uint8_t>{0, 127, 255}, H5T_STD_U8LE, H5T_NATIVE_UINT8);

  EXPECT_EQ(read<double>("doubles", 0, 4), doubles);
  EXPECT_THAT(read<float>("doubles", 0, 4), ElementsAre(0.F, 1.75F, 200.F, 3e9F));
  EXPECT_THAT(read<std::int64_t>("doubles", 0, 4), ElementsAre(0, 1, 200, 3'000'000'000));
  EXPECT_THAT(read<std::uint8_t>("doubles", 0, 3), ElementsAre(0, 1, 200));
  EXPECT_EQ(read<std::int64_t>("integers", 0, 4), integers);
  EXPECT_THAT(read<std::int32_t>("integers", 0, 3), ElementsAre(-1, 7, 300));
  EXPECT_THAT(read<double>("integers", 3, 1), ElementsAre(0x1p40));
  EXPECT_THAT(read<std::uint8_t>("bytes", 0, 3), ElementsAre(0, 127, 255));
  EXPECT_THAT(read<std::int32_t>("bytes", 0, 3), ElementsAre(0, 127, 255));
}

TEST_F(RowReaderTest, KeepsItsFileWhenItIsRemoved) {
  add_floats("x", {2});
  const RowReader reader(path_, "x");
  std::filesystem::remove(path_);
  std::vector<float> out(2);
  reader.read(0, 2, out.data());
  EXPECT_THAT(out, ElementsAre(0, 1));
}

TEST_F(RowReaderTest, SeveralReadersShareAFile) {
  add_floats("x", {2});
  add_floats("y", {3});
  const RowReader x(path_, "x");
  {
    const RowReader y(path_, "y");
    EXPECT_EQ(y.shape(), Shape{3});
  }
  std::vector<float> out(2);
  x.read(0, 2, out.data());
  EXPECT_THAT(out, ElementsAre(0, 1));
}

TEST_F(RowReaderTest, RejectsAMissingFileOrDataset) {
  EXPECT_THAT(error_of(Code::not_found, [&] { const RowReader reader(path_, "x"); }),
              testing::HasSubstr(path_.string()));
  add_floats("group/x", {2});
  expect_rejected(Code::not_found, "missing");
  expect_rejected(Code::not_found, "group/missing");
  expect_rejected(Code::not_found, "group");  // no dataset
}

TEST_F(RowReaderTest, RejectsDatasetsWithoutRowsOrNumbers) {
  add("scalar", {}, std::vector<float>{1}, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT);
  expect_rejected(Code::invalid_argument, "scalar");
  hid_t text = -1;
  hid_t boolean = -1;
  {
    const h5::Session session;
    text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    boolean = h5::file_type(DType::boolean);
  }
  add("texts", {2}, std::vector<char>(8, 'a'), text, text);
  expect_rejected(Code::invalid_argument, "texts");
  add("flags", {2}, std::vector<std::uint8_t>(2, 1), boolean, boolean);
  expect_rejected(Code::invalid_argument, "flags");
  const h5::Session session;
  H5Tclose(text);
}

TEST_F(RowReaderTest, RejectsAFileThatIsNotHdf5) {
  directory_.write("rows.h5", "");
  EXPECT_THAT(error_of(Code::data_loss, [&] { const RowReader reader(path_, "x"); }),
              testing::HasSubstr(path_.string()));
  directory_.write("rows.h5", std::string(5000, 'x'));
  EXPECT_THAT(error_of(Code::data_loss, [&] { const RowReader reader(path_, "x"); }),
              testing::HasSubstr(path_.string()));
}

TEST_F(RowReaderTest, RejectsAFileThatEndsEarly) {
  add_floats("x", {1000});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  EXPECT_THAT(error_of(Code::data_loss, [&] { const RowReader reader(path_, "x"); }),
              testing::HasSubstr(path_.string()));
}

TEST_F(RowReaderTest, NamesTheRowsThatCannotBeRead) {
  // The first of four chunks of ten rows has a checksum, and a byte of it is damaged.
  const std::array<hsize_t, 1> chunk{10};
  haddr_t address = 0;
  {
    const h5::Session session;
    const h5::File file = h5::create_file(path_);
    const h5::Space space = h5::create_space({40});
    const h5::Properties properties = h5::create_properties(H5P_DATASET_CREATE);
    ASSERT_GE(H5Pset_chunk(properties.get(), 1, chunk.data()), 0);
    ASSERT_GE(H5Pset_fletcher32(properties.get()), 0);
    const h5::Dataset dataset(
        H5Dcreate2(file.get(), "x", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
    const std::vector<float> values(40, 1);
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    ASSERT_GE(H5Dflush(dataset.get()), 0);
    const std::array<hsize_t, 1> first{0};
    unsigned filters = 0;
    hsize_t bytes = 0;
    ASSERT_GE(H5Dget_chunk_info_by_coord(dataset.get(), first.data(), &filters, &address, &bytes), 0);
  }
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(address))
      << 'x';

  const RowReader reader(path_, "x");
  std::vector<float> out(20);
  const std::string error = error_of(Code::data_loss, [&] { reader.read(5, 11, out.data()); });
  for (const std::string& parameter :
       {path_.string(), std::string("x"), std::string("5"), std::string("15")}) {
    EXPECT_THAT(error, testing::HasSubstr(parameter));
  }
  reader.read(10, 20, out.data());
  EXPECT_EQ(out, std::vector<float>(20, 1)) << "other chunks are readable";
}

}  // namespace
}  // namespace capstan::io
