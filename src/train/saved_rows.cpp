// saved_rows.cpp -- see saved_rows.hpp.
#include "train/saved_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_reader.hpp"

namespace capstan::train {
namespace {

template <class T>
std::vector<float> to_floats(const std::vector<T>& values) {
  std::vector<float> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(),
                 [](T value) { return static_cast<float>(value); });
  return out;
}

/// Calls read.operator()<T>(), which returns a vector of the variable's dtype T.
template <class Read>
std::vector<float> read_as_floats(DType dtype, const std::string& path, const std::string& variable,
                                  const Read& read) {
  switch (dtype) {
    case DType::float32:
      return read.template operator()<float>();
    case DType::float64:
      return to_floats(read.template operator()<double>());
    case DType::float16:
      return to_floats(read.template operator()<float16>());
    case DType::bfloat16:
      return to_floats(read.template operator()<bfloat16>());
    default:
      throw Error(Code::data_loss,
                  fmt::format("{}: variable {} has the dtype {}, expected a floating-point one", path,
                              variable, to_string(dtype)));
  }
}

class CheckpointRows final : public SavedRows {
 public:
  explicit CheckpointRows(const std::filesystem::path& checkpoint) : reader_(checkpoint) {}

  std::string path() const override { return reader_.directory().string(); }
  std::int64_t step() const override { return reader_.step(); }
  const std::string& user_state() const override { return reader_.user_state(); }
  bool has(const std::string& variable) const override {
    const auto& all = reader_.variables();
    return std::ranges::find(all, variable, &io::VariableInfo::name) != all.end();
  }
  Shape shape(const std::string& variable) const override {
    const auto& shape = reader_.variable(variable).shape;
    return {shape.begin(), shape.end()};
  }
  std::vector<float> floats(const std::string& variable, std::int64_t first,
                            std::int64_t rows) const override {
    const io::VariableInfo& info = reader_.variable(variable);
    return read_as_floats(info.dtype, path(), variable,
                          [&]<class T>() { return read<T>(variable, info.shape, first, rows); });
  }
  std::vector<std::int64_t> integers(const std::string& variable) const override {
    const io::VariableInfo& info = reader_.variable(variable);
    if (info.dtype != DType::int64) {
      throw Error(Code::data_loss, fmt::format("{}: variable {} has the dtype {}, expected int64", path(),
                                               variable, to_string(info.dtype)));
    }
    return read<std::int64_t>(variable, info.shape, 0, static_cast<std::int64_t>(info.shape.at(0)));
  }

 private:
  template <class T>
  std::vector<T> read(const std::string& variable, const std::vector<std::uint64_t>& shape,
                      std::int64_t first, std::int64_t rows) const {
    const std::uint64_t width =
        std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1}, std::multiplies<>());
    std::vector<T> out(static_cast<std::size_t>(rows) * width);
    reader_.read_rows(variable, io::kValue, static_cast<std::uint64_t>(first),
                      static_cast<std::uint64_t>(rows), out.data());
    return out;
  }

  io::CheckpointReader reader_;
};

class ModelRows final : public SavedRows {
 public:
  explicit ModelRows(std::shared_ptr<const capstan::Model> model) : model_(std::move(model)) {}

  std::string path() const override { return model_->file().string(); }
  std::int64_t step() const override { return model_->step(); }
  const std::string& user_state() const override { return model_->user_state(); }
  bool has(const std::string& variable) const override {
    return std::ranges::count(model_->variables(), variable) > 0;
  }
  Shape shape(const std::string& variable) const override { return model_->shape(variable); }
  std::vector<float> floats(const std::string& variable, std::int64_t first,
                            std::int64_t rows) const override {
    return read_as_floats(model_->dtype(variable), path(), variable, [&]<class T>() {
      const auto values = model_->read_rows<T>(variable, first, rows).values;
      return std::vector<T>(values.begin(), values.end());
    });
  }
  std::vector<std::int64_t> integers(const std::string& variable) const override {
    const auto values = model_->read<std::int64_t>(variable).values;
    return {values.begin(), values.end()};
  }

 private:
  std::shared_ptr<const capstan::Model> model_;
};

}  // namespace

std::unique_ptr<SavedRows> open_saved_rows(const std::filesystem::path& checkpoint) {
  return std::make_unique<CheckpointRows>(checkpoint);
}

std::unique_ptr<SavedRows> open_saved_rows(std::shared_ptr<const capstan::Model> model) {
  return std::make_unique<ModelRows>(std::move(model));
}

std::vector<float> lookup_floats(const capstan::Model& model, const std::string& variable,
                                 std::span<const std::int64_t> ids) {
  return read_as_floats(model.dtype(variable), model.file().string(), variable, [&]<class T>() {
    const auto values = model.lookup<T>(variable, ids).values;
    return std::vector<T>(values.begin(), values.end());
  });
}

}  // namespace capstan::train
