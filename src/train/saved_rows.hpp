// saved_rows.hpp -- reads the variables of a saved model: of a checkpoint, or of a model file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/model.hpp"

namespace capstan::train {

/// All calls throw Error: not_found for an unknown variable, out_of_range, data_loss, which names the file.
class SavedRows {
 public:
  virtual ~SavedRows() = default;

  /// Path for error messages.
  virtual std::string path() const = 0;
  virtual std::int64_t step() const = 0;
  /// JSON that the program saved.
  virtual const std::string& user_state() const = 0;
  virtual bool has(const std::string& variable) const = 0;
  virtual Shape shape(const std::string& variable) const = 0;
  /// Returns rows [first, first + rows) of a floating-point variable, widened or rounded to float. Throws
  /// Error(data_loss) for another dtype.
  virtual std::vector<float> floats(const std::string& variable, std::int64_t first,
                                    std::int64_t rows) const = 0;
  /// Returns a complete variable of int64.
  virtual std::vector<std::int64_t> integers(const std::string& variable) const = 0;
};

/// Opens one checkpoint. Its rows are read by one thread at a time.
std::unique_ptr<SavedRows> open_saved_rows(const std::filesystem::path& checkpoint);
/// Any thread.
std::unique_ptr<SavedRows> open_saved_rows(std::shared_ptr<const capstan::Model> model);

/// Looks up rows of a floating-point variable, or of a dynamic table by key, as floats. Throws as SavedRows
/// does.
std::vector<float> lookup_floats(const capstan::Model& model, const std::string& variable,
                                 std::span<const std::int64_t> ids);

}  // namespace capstan::train
