// key_texts_test.cpp -- texts of keys are kept once, cut, and compared with those of equal keys.
#include "capstan/key_texts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capstan/serialize.hpp"
#include "capstan/strategy.hpp"
#include "client/client.hpp"
#include "strategy/context.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

// Rows of 8 bytes with these texts.
constexpr std::int64_t kRed = 0x646572, kBlue = 0x65756c62;

class KeyTextsTest : public testing::Test {
 protected:
  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ParameterServerStrategy::Scope scope_{&strategy_.implementation()};
};

TEST_F(KeyTextsTest, ReturnsTheTextsOfItsKeys) {
  const KeyTexts words("words", 8, 1000);
  const std::vector<std::int64_t> keys = words.keys_of(Texts{"red", "green", "red", ""}, 3);
  EXPECT_THAT(keys,
              ElementsAre(hash_key("red", 3), hash_key("green", 3), hash_key("red", 3), hash_key("", 3)));
  EXPECT_EQ(words.texts_of(keys), (Texts{"red", "green", "red", ""}));
  EXPECT_THAT(words.texts_of({hash_key("blue")}), ElementsAre(""));
  EXPECT_EQ(words.table().size(), 2U);
  (void)words.keys_of(Texts{"green"}, 3);
  (void)words.keys_of(Texts{});
  EXPECT_EQ(words.table().size(), 2U);
}

TEST_F(KeyTextsTest, KeepsTheStartOfALongText) {
  const KeyTexts words("words", 10, 1000);  // two elements of 8 bytes
  const Texts texts{"0123456789abcdef", "0123456789abcdefg", "0123456789abcdeX", std::string("a\0b", 3)};
  const std::vector<std::int64_t> keys = words.keys_of(texts);
  EXPECT_THAT(words.texts_of(keys), ElementsAre(texts[0], texts[0], texts[2], "a"));
  EXPECT_EQ(words.keys_of(texts), keys);
}

TEST_F(KeyTextsTest, RejectsATextWithTheKeyOfAnother) {
  const KeyTexts words("words", 8, 1000);
  words.table().assign({hash_key("red")}, {kBlue});  // as if both had the same hash
  EXPECT_THAT(error_of(Code::already_exists, [&] { (void)words.keys_of(Texts{"red"}); }),
              NamesAll({"red", "blue", "words"}));
}

TEST_F(KeyTextsTest, RejectsOneOfTwoNewTextsWithOneKey) {
  const KeyTexts words("words", 8, 1000);
  // The rows of both are written in one call, as if both texts had the same hash: the second one is kept.
  words.table().assign({hash_key("red"), hash_key("red")}, {kRed, kBlue});
  EXPECT_THAT(words.texts_of({hash_key("red")}), ElementsAre("blue"));
  EXPECT_THAT(error_of(Code::already_exists,
                       [&] {
                         (void)words.keys_of(Texts{"green", "red"});
                       }),
              NamesAll({"red", "blue", "words"}));
}

TEST(KeyTexts, KeepsAllTextsOfAClosureThatRunsAgain) {
  RankThreads ranks{{.ranks = 3, .flags = {{"ps", "1"}}}};
  ParameterServerStrategy strategy{ranks.cluster()};
  const ParameterServerStrategy::Scope scope{&strategy.implementation()};
  const KeyTexts words("words", 8, 1000);
  client::Client& client = strategy.implementation().context().client();
  const auto run = [&](bool again, const Texts& texts) {
    client.begin({.id = 7, .again = again});
    (void)words.keys_of(texts);
    client.begin({});
  };
  // As if the first two runs had been killed before they stored the next text.
  run(false, {"red"});
  run(true, {"red", "green"});
  run(true, {"red", "green", "blue"});
  EXPECT_THAT(words.texts_of({hash_key("red"), hash_key("green"), hash_key("blue")}),
              ElementsAre("red", "green", "blue"));
}

TEST_F(KeyTextsTest, RejectsTextsWithoutBytes) {
  EXPECT_THAT(error_of(Code::invalid_argument, [] { KeyTexts("words", 0); }), NamesAll({"0"}));
}

TEST_F(KeyTextsTest, IsAnArgumentOfClosures) {
  const KeyTexts words("words", 8, 1000);
  const std::vector<std::int64_t> keys = words.keys_of(Texts{"red"});
  EXPECT_THAT(from_bytes<KeyTexts>(to_bytes(words)).texts_of(keys), ElementsAre("red"));
}

}  // namespace
}  // namespace capstan
