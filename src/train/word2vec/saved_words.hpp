// saved_words.hpp -- the words of a model that `capstan train word2vec` saved.
#pragma once

#include <memory>

#include "train/named_rows.hpp"

namespace capstan::train::word2vec {

// Variables of a checkpoint.
inline constexpr const char* kWordRows = "words";
inline constexpr const char* kWordNames = "word_names";

/// Throws Error: failed_precondition if another program saved the rows, or there are no names; data_loss for
/// a damaged model.
NamedRows open_saved_words(std::shared_ptr<const SavedRows> saved);

}  // namespace capstan::train::word2vec
