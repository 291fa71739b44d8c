// word_test.cpp -- atomic words in memory that is mapped more than once, used by several threads.
#include "transport/memory/word.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "transport/memory/persistent_memory.hpp"

namespace capstan::transport {
namespace {

TEST(WordTest, ReadsAndWritesOnlyTheBytesAtItsAddress) {
  alignas(8) std::byte memory[24] = {};
  word_at(memory + 8).store(0x0102030405060708ULL);
  std::uint64_t words[3];
  std::memcpy(words, memory, sizeof words);
  EXPECT_EQ(words[0], 0U);
  EXPECT_EQ(words[1], 0x0102030405060708ULL);
  EXPECT_EQ(words[2], 0U);
  words[1] = 9;
  std::memcpy(memory, words, sizeof words);
  EXPECT_EQ(word_at(memory + 8).load(), 9U);
}

TEST(WordTest, IsLockFree) {
  // A lock would protect the word within one process only.
  EXPECT_TRUE(decltype(word_at(nullptr))::is_always_lock_free);
}

TEST(WordTest, CountsFromSeveralMappingsAtOnce) {
  const auto memory = PersistentMemory::create();
  constexpr std::uint64_t kAdditions = 20000;
  constexpr int kMappings = 2;
  std::byte* last = nullptr;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kMappings; ++i) {
    last = memory->map(PersistentMemory::kFirstOffset, 4096).data() + 64;
    threads.emplace_back([word = last] {
      for (std::uint64_t n = 0; n < kAdditions; ++n) word_at(word).fetch_add(1);
    });
  }
  threads.clear();  // joins the threads
  EXPECT_EQ(word_at(last).load(), kMappings * kAdditions);
}

}  // namespace
}  // namespace capstan::transport
