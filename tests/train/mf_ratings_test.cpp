// mf_ratings_test.cpp -- formats of rating files, numbers of users and items, held-out pairs, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "train/mf/ratings.hpp"
#include "train/mf/user_ranking.hpp"

namespace capstan::train::mf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RatingFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return directory_.write(name, text);
  }
  std::string read_error(const std::string& text, RatingColumn column = RatingColumn::required) const {
    return error_of(Code::invalid_argument, [&] { read_ratings({.train = {write("wrong", text)}}, column); });
  }

  io::TemporaryDirectory directory_;
};

std::vector<std::tuple<int, int, float>> tuples(const std::vector<Rating>& ratings) {
  std::vector<std::tuple<int, int, float>> result;
  for (const Rating& r : ratings) result.emplace_back(r.user, r.item, r.value);
  return result;
}

TEST_F(RatingFiles, AcceptAllFormatsOfMovieLens) {
  for (const std::string text :
       {"u 7\ti\t3\t881250949\nv\ti\t4.5\t881250950\nu 7\tj\t1\t1\n",
        "u 7::i::3::881250949\nv::i::4.5::1\nu 7::j::1::1\n",
        "userId,movieId,rating,timestamp\nu 7,i,3,8\nv,i,4.5,8\nu 7,j,1,8\n",
        "\xef\xbb\xbfu 7,i,3\nv,i,4.5\nu 7,j,1\n", "u 7,i,3\r\nv, i ,4.5\r\n\r\nu 7,j,1",
        "u7 i  3 881250949\nv i 4.5\n\n u7   j 1 9\n"}) {
    const Ratings read = read_ratings({.train = {write("ratings", text)}}, RatingColumn::required);
    EXPECT_THAT(tuples(read.train),
                ElementsAre(std::tuple(0, 0, 3), std::tuple(1, 0, 4.5F), std::tuple(0, 1, 1)))
        << text;
    EXPECT_EQ(read.users, 2);
    EXPECT_EQ(read.items, 2);
    EXPECT_DOUBLE_EQ(read.mean, 8.5 / 3);
  }
}

TEST_F(RatingFiles, NumberUsersAndItemsThatOnlyTheTestHasLast) {
  const auto first = write("a", "1 10 5\n2 11 4\n"), second = write("b", "3\t10\t3\n");
  const auto test = write("c", "9 11 1\n3 12 2\n1 10 3\n");
  const Ratings read = read_ratings({.train = {first, second}, .test = {test}}, RatingColumn::required);
  EXPECT_EQ(read.users, 3);
  EXPECT_EQ(read.items, 2);
  EXPECT_DOUBLE_EQ(read.mean, 4) << "without the test ratings";
  EXPECT_THAT(tuples(read.test), ElementsAre(std::tuple(3, 1, 1), std::tuple(2, 2, 2), std::tuple(0, 0, 3)));
}

TEST_F(RatingFiles, NeedNoRatingsForImplicitFeedback) {
  const Ratings read = read_ratings({.train = {write("pairs", "a,x\nb,y,2\n")}}, RatingColumn::optional);
  EXPECT_EQ(read.train.size(), 2U);
  EXPECT_EQ(read.items, 2);
}

TEST_F(RatingFiles, RejectMalformedLinesWithFileAndLine) {
  EXPECT_THAT(read_error("1 2 3\n\n1 2\n"),
              AllOf(HasSubstr("wrong:3: expected user, item, rating"), HasSubstr("1 2")));
  EXPECT_THAT(read_error("1\t2\t3\t4\t5\n"), HasSubstr("wrong:1: "));
  EXPECT_THAT(read_error("1\t\t3\n"), HasSubstr("wrong:1: "));
  EXPECT_THAT(read_error("1,2,3\n1,2,good\n"), AllOf(HasSubstr("wrong:2: "), HasSubstr("good")));
  EXPECT_THAT(read_error("1\t2\tgood\n"), AllOf(HasSubstr("wrong:1: "), HasSubstr("good")));
  EXPECT_THAT(read_error("1,2,nan\n"), AllOf(HasSubstr("wrong:1: "), HasSubstr("nan")));
  EXPECT_THAT(read_error("1,2,3x\n1,2,3\n1,2,3x\n"), HasSubstr("wrong:3: "));
  EXPECT_THAT(read_error("1\n", RatingColumn::optional), HasSubstr("wrong:1: "));
  EXPECT_THAT(read_error("user,item,rating\n"), HasSubstr("wrong has no ratings"));
}

TEST_F(RatingFiles, RejectMissingFiles) {
  const auto path = directory_.path() / "absent";
  expect_error_naming(Code::not_found, {path.string()},
                      [&] { read_ratings({.train = {path}}, RatingColumn::required); });
}

TEST(ItemsByUser, AreSortedAndUnique) {
  const std::vector<Rating> ratings{{2, 7, 0}, {0, 5, 0}, {2, 3, 0}, {2, 7, 1}, {4, 1, 0}};
  const ItemsByUser items{ratings};
  EXPECT_THAT(items[0], ElementsAre(5));
  EXPECT_THAT(items[1], IsEmpty());
  EXPECT_THAT(items[2], ElementsAre(3, 7));
  EXPECT_THAT(items[4], ElementsAre(1));
  EXPECT_THAT(items[99], IsEmpty());
  EXPECT_TRUE(items.contains(2, 7));
  EXPECT_FALSE(items.contains(2, 5));
  EXPECT_FALSE(items.contains(99, 5));
}

TEST(HeldOutPairs, OmitKnownPairsAndUsersWithoutOthers) {
  const std::vector<Rating> known{{.user = 0, .item = 1}, {.user = 2, .item = 3}};
  const HeldOut found = make_held_out(
      known, {{.user = 4, .item = 1}, {.user = 2, .item = 3}, {.user = 0, .item = 3}, {.user = 0, .item = 1}},
      "f");
  EXPECT_THAT(found.users, ElementsAre(0, 4));
  EXPECT_THAT(found.wanted[0], ElementsAre(3));
  EXPECT_THAT(found.wanted[2], IsEmpty());
  EXPECT_THAT(found.wanted[4], ElementsAre(1));
  EXPECT_THAT(found.known[0], ElementsAre(1));
}

TEST(HeldOutPairs, RejectOnlyKnownPairs) {
  const std::vector<Rating> known{{.user = 0, .item = 1}, {.user = 2, .item = 3}};
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { make_held_out(known, {known[1]}, "held_out.txt"); }),
              HasSubstr("held_out.txt"));
  EXPECT_THAT(make_held_out(known, {}, "").users, IsEmpty());
}

TEST_F(RatingFiles, SomeRatingsValidate) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + " x 1\n";
  const Ratings read =
      read_ratings({.train = {write("ratings", text)}, .valid_fraction = 0.3}, RatingColumn::required);
  EXPECT_EQ(read.users, 1000) << "also of users with validation ratings only";
  EXPECT_EQ(read.train.size() + read.valid.size(), 1000U);
  EXPECT_NEAR(static_cast<double>(read.valid.size()), 300, 50);
  const Ratings given = read_ratings(
      {.train = {write("a", "a x 1\n")}, .valid = {write("b", "b x 2\na x 3\n")}}, RatingColumn::required);
  EXPECT_EQ(given.users, 1);
  ASSERT_EQ(given.valid.size(), 2U);
  EXPECT_EQ(given.valid[1].user, 0);
  EXPECT_EQ(given.mean, 1);
}

}  // namespace
}  // namespace capstan::train::mf
