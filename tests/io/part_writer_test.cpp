// part_writer_test.cpp -- reports, invalid arrays, and errors of the file system in write_part.
#include "io/hdf5/part_writer.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <tuple>

#include "checkpoint_sample.hpp"
#include "io/checksum.hpp"
#include "temporary_directory.hpp"

namespace capstan::io {
namespace {

using ::testing::HasSubstr;

TEST(WritePart, ReportsOffsetsAndChecksums) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  const auto file = scratch.path() / part_file_name(1, 3);
  const PartReport report = write_part(file, part_arrays(arrays, 1, 3));
  EXPECT_EQ(report.file, "part-00001-of-00003.h5");
  EXPECT_EQ(report.bytes, std::filesystem::file_size(file));
  const std::string bytes = file_text(file);
  ASSERT_EQ(report.datasets.size(), arrays.size() - 1);  // "step" has a row in the first part alone
  for (std::size_t i = 0; i < report.datasets.size(); ++i) {
    const auto& [array, dataset] = std::tie(arrays[i], report.datasets[i]);
    const auto [first, rows] = cut(array.shape[0], 1, 3);
    const std::string raw(array.bytes.data() + first * array.row_bytes(), rows * array.row_bytes());
    EXPECT_EQ(dataset.first_row, first);
    EXPECT_EQ(dataset.rows, rows);
    EXPECT_EQ(dataset.shape, array.shape);
    EXPECT_EQ(bytes.substr(dataset.offset, raw.size()), raw);
    EXPECT_EQ(dataset.xxh3, checksum_of(raw));
  }
}

TEST(WritePart, TheChecksumIsXxh3) {
  EXPECT_EQ(checksum_of(""), "2d06800538d394c2");  // xxhsum -H3 of an empty file
  Checksum in_pieces;
  in_pieces.add("cap", 3);
  in_pieces.add("stan", 4);
  EXPECT_EQ(in_pieces.hex(), checksum_of("capstan"));
}

TEST(WritePart, TheSameRowsGiveTheSameBytes) {
  const TemporaryDirectory scratch;
  const auto a = scratch.path() / "a.h5", b = scratch.path() / "b.h5";
  write_part(a, part_arrays(sample_arrays(), 0, 2));
  write_part(b, part_arrays(sample_arrays(), 0, 2));
  EXPECT_EQ(file_text(a), file_text(b));
}

TEST(WritePart, ReplacesAFile) {
  const TemporaryDirectory scratch;
  const auto file = scratch.write("part-00000-of-00001.h5", "something else");
  const auto bytes = write_part(file, {}).bytes;
  EXPECT_EQ(bytes, std::filesystem::file_size(file));
  EXPECT_GT(H5Fis_hdf5(file.c_str()), 0);
}

TEST(WritePart, RejectsInvalidArrays) {
  const TemporaryDirectory scratch;
  const auto file = scratch.path() / part_file_name(0, 1);
  const float data[4]{};
  const auto refused = [&](const std::string& words, PartArray array) {
    EXPECT_THAT(error_of(Code::invalid_argument, [&] { write_part(file, std::vector{array}); }),
                HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(file));
  };
  PartArray good{.variable = "w"};
  good.shape = {4};
  good.rows = 4;
  good.data = data;
  const auto with = [&](auto change) {
    PartArray array = good;
    change(array);
    return array;
  };
  refused("rank 0", with([](PartArray& a) { a.shape = {}; }));
  refused("rank 33", with([](PartArray& a) {
            a.shape.assign(33, 1);
            a.shape[0] = 4;
          }));
  refused("rows 0 to 4", with([](PartArray& a) { a.shape = {0}; }));
  refused("more than 2^63 bytes", with([](PartArray& a) {
            a.shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
          }));
  refused("rows 1 to 5", with([](PartArray& a) { a.first_row = 1; }));
  refused("at most 4", with([](PartArray& a) { a.first_row = ~std::uint64_t{0}; }));
  refused("no data", with([](PartArray& a) { a.data = nullptr; }));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         write_part(file, std::vector{good, good});
                       }),
              HasSubstr("given twice"));
  write_part(file, std::vector{good});
}

TEST(WritePart, ArraysWithoutElementsHaveNoOffset) {
  const TemporaryDirectory scratch;
  const auto file = scratch.path() / part_file_name(0, 1);
  const float data[1]{};
  PartArray rows{.variable = "rows"}, columns{.variable = "columns"};
  rows.shape = {0, 3};
  columns.shape = {4, 0};
  columns.rows = 4;
  columns.data = data;
  const PartReport report = write_part(file, std::vector{rows, columns});
  ASSERT_EQ(report.datasets.size(), 2u);
  for (const DatasetReport& dataset : report.datasets) {
    EXPECT_EQ(dataset.offset, 0u);
    EXPECT_EQ(dataset.xxh3, checksum_of(""));
  }
  EXPECT_EQ(report.datasets[1].rows, 4u);
}

TEST(WritePart, NamesAMissingDirectory) {
  const TemporaryDirectory scratch;
  const auto file = scratch.path() / "none" / part_file_name(0, 1);
  const auto fault = error_of(Code::not_found, [&] { write_part(file, {}); });
  EXPECT_THAT(fault, HasSubstr(file.string()));
  EXPECT_THAT(fault, HasSubstr("No such file"));
}

TEST(WritePart, ReportsAFullDiskAndNamesTheFile) {
  // A file size limit stands in for a full disk. In a child process: the limit cannot be raised again.
  const TemporaryDirectory scratch;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);  // write_part must not depend on the program to ignore it
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto array = make_array<double>("w", "value", {100'000}, 1);
    try {
      write_part(scratch.path() / part_file_name(0, 1), part_arrays({array}, 0, 1));
    } catch (const Error& error) {
      const bool named = std::string_view(error.what()).find(part_file_name(0, 1)) != std::string_view::npos;
      ::_exit(error.code() == Code::resource_exhausted && named ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: another error, 2: none";
}

TEST(WritePart, KeepsTheProgramsHdf5Settings) {
  const TemporaryDirectory scratch;
  H5E_auto2_t before = nullptr, after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  ASSERT_NE(before, nullptr);
  write_part(scratch.path() / part_file_name(0, 1), part_arrays(sample_arrays(), 0, 1));
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_EQ(before, after);
}

/// Returns the number of open ids of each type; 0 for a type that was never used.
std::map<H5I_type_t, hsize_t> open_ids() {
  std::map<H5I_type_t, hsize_t> counts;
  for (const H5I_type_t type :
       {H5I_FILE, H5I_GROUP, H5I_DATATYPE, H5I_DATASPACE, H5I_DATASET, H5I_ATTR, H5I_GENPROP_LST}) {
    H5E_BEGIN_TRY { H5Inmembers(type, &counts[type]); }
    H5E_END_TRY
  }
  return counts;
}

TEST(WritePart, LeavesNoHdf5HandleOpen) {
  const TemporaryDirectory scratch;
  const auto arrays = sample_arrays();
  CheckpointDirectory directory(scratch.path());
  const auto use_all = [&](std::int64_t step) {
    const CheckpointReader reader(save(directory, step, arrays, 2));
    reader.verify();
    expect_holds(reader, arrays);
  };
  use_all(1);  // the library opens ids of its own at the first use
  const auto before = open_ids();
  EXPECT_EQ(before.at(H5I_FILE), 0U);
  use_all(2);
  EXPECT_EQ(open_ids(), before);
}

}  // namespace
}  // namespace capstan::io
