// csv_test.cpp -- schemas of CSV files, and errors in schemas and files.
#include "train/sparse/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"

namespace capstan::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Csv : public testing::Test {
 protected:
  std::string schema_error(const std::string& text) {
    const auto file = directory_.write("schema.toml", text);
    return error_of(Code::invalid_argument, [&] { CsvSchema::load(file); });
  }
  std::string file_error(const std::string& text) {
    const auto file = directory_.write("data.csv", text);
    return error_of(Code::invalid_argument, [&] {
      CsvReader reader(file, {.label = "click", .categories = {"site"}, .integers = {"hour"}});
      while (reader.next()) {
      }
    });
  }
  io::TemporaryDirectory directory_;
};

TEST_F(Csv, LoadsSchema) {
  const auto file = directory_.write("schema.toml",
                                     "label = \"click\"\ncategories = [\"site\", \"app\"]\n"
                                     "integers = [\"hour\"]\nseparator = \"\\t\"\n");
  const CsvSchema schema = CsvSchema::load(file);
  EXPECT_EQ(schema.label, "click");
  EXPECT_THAT(schema.categories, ElementsAre("site", "app"));
  EXPECT_THAT(schema.integers, ElementsAre("hour"));
  EXPECT_EQ(schema.separator, "\t");
  const auto defaults = directory_.write("defaults.toml", "label = \"y\"\nintegers = [\"n\"]\n");
  EXPECT_EQ(CsvSchema::load(defaults).separator, ",");
}

TEST_F(Csv, RejectsInvalidSchemas) {
  EXPECT_THROW(CsvSchema::load(directory_.path() / "missing"), Error);
  EXPECT_THAT(schema_error("label = \n"), HasSubstr("schema.toml:1"));
  EXPECT_THAT(schema_error("label = \"y\"\nintegers = [\"n\"]\nweight = 3\n"),
              AllOf(HasSubstr("schema.toml:3"), HasSubstr("weight")));
  EXPECT_THAT(schema_error("label = 3\n"), AllOf(HasSubstr("schema.toml:1"), HasSubstr("label")));
  EXPECT_THAT(schema_error("label = \"y\"\ncategories = \"site\"\n"),
              AllOf(HasSubstr("schema.toml:2"), HasSubstr("categories")));
  EXPECT_THAT(schema_error("label = \"y\"\nintegers = [\"n\"]\nseparator = \";;\"\n"),
              AllOf(HasSubstr("schema.toml:3"), HasSubstr("separator")));
  EXPECT_THAT(schema_error("integers = [\"n\"]\n"), HasSubstr("label"));
  EXPECT_THAT(schema_error("label = \"y\"\n"), HasSubstr("categories"));
  EXPECT_THAT(schema_error("label = \"y\"\ncategories = [\"n\"]\nintegers = [\"n\"]\n"), HasSubstr("\"n\""));
  EXPECT_THAT(schema_error("label = \"y\"\nintegers = [\"y\"]\n"), HasSubstr("\"y\""));
}

TEST_F(Csv, ReportsInvalidFiles) {
  EXPECT_THAT(file_error("click,site\n1,x\n"), AllOf(HasSubstr("data.csv:1"), HasSubstr("\"hour\"")));
  EXPECT_THAT(file_error("click,site,hour\n1,x,2\n2,x,2\n"),
              AllOf(HasSubstr("data.csv:3"), HasSubstr("\"click\""), HasSubstr("\"2\"")));
  EXPECT_THAT(file_error("click,site,hour\n1,x,noon\n"),
              AllOf(HasSubstr("data.csv:2"), HasSubstr("\"hour\""), HasSubstr("\"noon\"")));
  EXPECT_THAT(file_error("click,site,hour\n1,x\n"), AllOf(HasSubstr("data.csv:2"), HasSubstr("found 2")));
}

TEST_F(Csv, RejectsAColumnThatTheHeaderHasTwice) {
  for (const std::string header : {"click,site,hour,site", "click,click,site,hour", "hour,click,site,hour"}) {
    EXPECT_THAT(file_error(header + "\n1,1,1,1\n"), AllOf(HasSubstr("data.csv:1"), HasSubstr("twice")));
  }
  const auto other = directory_.write("other.csv", "click,,note,site,note,,hour\n1,,,x,,,2\n");
  CsvReader reader(other, {.label = "click", .categories = {"site"}, .integers = {"hour"}});
  EXPECT_TRUE(reader.next()) << "columns without a role may have any names";
}

TEST_F(Csv, SkipsAByteOrderMark) {
  const CsvSchema schema{.label = "y", .categories = {"text"}};
  for (const std::string header : {"y,text", "\"y\",text"}) {
    const auto file = directory_.write("marked.csv", "\xef\xbb\xbf" + header + "\r\n1,a\r\n");
    CsvReader reader(file, schema);
    ASSERT_TRUE(reader.next());
    EXPECT_TRUE(reader.label());
  }
  const auto saved = directory_.write("schema.toml", "\xef\xbb\xbflabel = \"y\"\nintegers = [\"n\"]\n");
  EXPECT_EQ(CsvSchema::load(saved).label, "y");
}

TEST_F(Csv, NamesTheRolesOfColumns) {
  const CsvSchema schema{.label = "y", .categories = {"a", "b"}, .integers = {"n"}};
  EXPECT_THAT(schema.roles(), ElementsAre(Pair("a", "category"), Pair("b", "category"), Pair("n", "integer"),
                                          Pair("y", "label")));
}

TEST_F(Csv, ReadsQuotedFieldsAndOtherSeparators) {
  const CsvSchema schema{.label = "y", .categories = {"text"}, .integers = {}, .separator = ";"};
  const auto plain = directory_.write("plain", "y;text\n1;a\n"),
             quoted = directory_.write("quoted", "y;text\n0;\"a\"\n");
  CsvReader first(plain, schema), second(quoted, schema);
  ASSERT_TRUE(first.next());
  ASSERT_TRUE(second.next());
  EXPECT_TRUE(first.label());
  EXPECT_FALSE(second.label());
  EXPECT_EQ(first.features(), second.features());
  EXPECT_FALSE(first.next());
  const auto empty = directory_.write("empty", "");
  EXPECT_FALSE(CsvReader(empty, schema).next());
}

}  // namespace
}  // namespace capstan::train
