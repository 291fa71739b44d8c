// saved_words.cpp -- see saved_words.hpp.
#include "train/word2vec/saved_words.hpp"

#include <utility>

#include "train/saved_program.hpp"

namespace capstan::train::word2vec {

NamedRows open_saved_words(std::shared_ptr<const SavedRows> saved) {
  const std::int64_t dim = read_saved_program(*saved, "train word2vec").number("--dim");
  return {std::move(saved), {kWordRows, kWordNames, "word"}, dim};
}

}  // namespace capstan::train::word2vec
