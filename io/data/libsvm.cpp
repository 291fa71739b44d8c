// libsvm.cpp -- `label id:value id:value ...`, as single examples or as batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.hpp"
#include "capstan/hash_key.hpp"
#include "capstan/readers.hpp"
#include "io/data/line_cursor.hpp"
#include "io/data/numbers.hpp"

namespace capstan {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Calls label(value) once and feature(id, value) for each feature. Returns false for a blank or comment
/// line.
template <class Label, class Feature>
inline bool parse_line(std::string_view line, const LibsvmOptions& options, const io::LineReader& reader,
                       const Label& label, const Feature& feature) {
  const char* at = line.data();
  const char* const end = at + line.size();
  const auto word = [&](const char* from) {  // for error messages
    const char* to = from;
    while (to != end && !is_blank(*to)) ++to;
    return printable({from, static_cast<std::size_t>(to - from)});
  };
  while (at != end && is_blank(*at)) ++at;
  if (at == end || *at == '#') return false;
  float value = 0;
  const char* behind = io::parse_float(at, end, value);
  if (behind == nullptr || (behind != end && !is_blank(*behind) && *behind != '#')) {
    reader.throw_error("expected a number as the label, found " + word(at));
  }
  if (options.two_classes) {
    if (value != 0 && value != 1 && value != -1) {
      reader.throw_error("expected 0 or 1, or -1 or +1, as the label, found " + word(at));
    }
    value = std::max(value, 0.0F);
  }
  label(value);
  at = behind;
  while (true) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end || *at == '#') return true;
    std::int64_t id = 0;
    if (options.hash_ids) {
      behind = at;
      while (behind != end && *behind != ':' && !is_blank(*behind)) ++behind;
      id = hash_key({at, static_cast<std::size_t>(behind - at)}, options.salt);
    } else {
      behind = io::parse_integer(at, end, id);
    }
    if (behind == nullptr || behind == end || *behind != ':' || behind == at) {
      reader.throw_error("expected id:value, found " + word(at));
    }
    behind = io::parse_float(behind + 1, end, value);
    if (behind == nullptr || (behind != end && !is_blank(*behind) && *behind != '#')) {
      reader.throw_error("expected id:value, found " + word(at));
    }
    if (options.two_classes && !std::isfinite(value)) {
      reader.throw_error("expected a finite value, found " + word(at));
    }
    if (options.hash_ids) {
      feature(id, value);
      at = behind;
      continue;
    }
    if (id < options.first_id) {
      reader.throw_error(
          fmt::format("the id is {}; ids begin at {} (LibsvmOptions::first_id)", id, options.first_id));
    }
    id -= options.first_id;
    if (options.features != 0 && id >= options.features) {
      reader.throw_error(fmt::format("the id is {}; with {} features the last is {}", id + options.first_id,
                                     options.features, options.features - 1 + options.first_id));
    }
    feature(id, value);
    at = behind;
  }
}

struct ExampleParser {
  LibsvmOptions options;
  std::optional<SparseExample> next(io::LineReader& reader) const {
    std::string_view line;
    while (reader.next(line)) {
      SparseExample example;
      const auto features = static_cast<std::size_t>(std::count(line.begin(), line.end(), ':'));
      example.ids.reserve(features);
      example.values.reserve(features);
      const bool found = parse_line(
          line, options, reader, [&](float label) { example.label = label; },
          [&](std::int64_t id, float value) {
            example.ids.push_back(id);
            example.values.push_back(value);
          });
      if (found) return example;
    }
    return std::nullopt;
  }
};

struct BatchSettings {
  std::int64_t size = 0;
  bool drop_remainder = false;
  LibsvmOptions options;
};

/// Reads the files in turn; a batch may span files.
class BatchCursor final : public data::Cursor<SparseBatch> {
 public:
  BatchCursor(data::Paths files, BatchSettings settings) : files_(std::move(files)), settings_(settings) {}

  std::optional<SparseBatch> next() override {
    SparseBatch batch;
    const auto wanted = static_cast<std::size_t>(settings_.size);
    // Reserves an eighth more features than the previous batch had.
    batch.labels.reserve(std::min<std::size_t>(wanted, 65536));
    batch.offsets.reserve(std::min<std::size_t>(wanted, 65536) + 1);
    batch.ids.reserve(features_ + features_ / 8);
    batch.values.reserve(features_ + features_ / 8);
    std::string_view line;
    while (batch.labels.size() < wanted) {
      if (!reader_) {
        if (at_ == files_.size()) break;
        reader_.emplace(files_[at_]);
      }
      if (!reader_->next(line)) {
        reader_.reset();
        ++at_;
        continue;
      }
      const bool found = parse_line(
          line, settings_.options, *reader_, [&](float label) { batch.labels.push_back(label); },
          [&](std::int64_t id, float value) {
            batch.ids.push_back(id);
            batch.values.push_back(value);
          });
      if (found) batch.offsets.push_back(static_cast<std::int64_t>(batch.ids.size()));
    }
    features_ = batch.ids.size();
    if (batch.labels.empty() || (settings_.drop_remainder && batch.labels.size() < wanted))
      return std::nullopt;
    return batch;
  }
  void rewind() override {
    reader_.reset();
    at_ = 0;
  }

 private:
  data::Kind kind() const noexcept override { return data::Kind::files; }
  void write_state(Writer& out) const override {
    capstan::write(out, at_);
    capstan::write(out, reader_.has_value());
    if (reader_) reader_->write_position(out);
  }
  void read_state(Reader& in) override {
    rewind();
    at_ = capstan::read<std::uint64_t>(in);
    if (!capstan::read<bool>(in)) return;
    if (at_ >= files_.size()) {
      throw Error(Code::invalid_argument,
                  fmt::format("the position is in file {}, expected at most {}; restore it with the list of "
                              "files with which it was saved",
                              at_ + 1, files_.size()));
    }
    reader_.emplace(files_[at_]);
    reader_->read_position(in);
  }

  data::Paths files_;
  BatchSettings settings_;
  std::uint64_t at_ = 0;
  std::optional<io::LineReader> reader_;
  std::size_t features_ = 0;
};

class BatchNode final : public data::Node<SparseBatch> {
 public:
  BatchNode(data::Paths files, BatchSettings settings) : files_(std::move(files)), settings_(settings) {}
  data::Kind kind() const noexcept override { return data::Kind::files; }
  data::BatchInfo batches() const override { return {settings_.size, settings_.drop_remainder}; }
  data::Paths files() const override { return files_; }
  data::OperatorPointer with_files(data::Paths files) const override {
    return std::make_shared<BatchNode>(std::move(files), settings_);
  }
  std::unique_ptr<data::Cursor<SparseBatch>> open() const override {
    return std::make_unique<BatchCursor>(files_, settings_);
  }

 private:
  data::Paths files_;
  BatchSettings settings_;
};

void check(const LibsvmOptions& options) {
  data::require_at_least(options.first_id, 0, "libsvm: the first id");
  data::require_at_least(options.features, 0, "libsvm: the number of features");
}

}  // namespace

SparseBatch BatchOf<SparseBatch>::slice(const SparseBatch& batch, std::int64_t from, std::int64_t to) {
  SparseBatch part;
  const std::int64_t first = batch.offsets[static_cast<std::size_t>(from)];
  const std::int64_t last = batch.offsets[static_cast<std::size_t>(to)];
  part.labels.assign(batch.labels.begin() + from, batch.labels.begin() + to);
  part.offsets.assign(batch.offsets.begin() + from, batch.offsets.begin() + to + 1);
  for (std::int64_t& offset : part.offsets) offset -= first;
  part.ids.assign(batch.ids.begin() + first, batch.ids.begin() + last);
  part.values.assign(batch.values.begin() + first, batch.values.begin() + last);
  return part;
}

void BatchOf<SparseBatch>::append(SparseBatch& batch, SparseBatch part) {
  const auto base = static_cast<std::int64_t>(batch.ids.size());
  batch.labels.insert(batch.labels.end(), part.labels.begin(), part.labels.end());
  for (std::size_t i = 1; i < part.offsets.size(); ++i) batch.offsets.push_back(base + part.offsets[i]);
  batch.ids.insert(batch.ids.end(), part.ids.begin(), part.ids.end());
  batch.values.insert(batch.values.end(), part.values.begin(), part.values.end());
}

Dataset<SparseExample> libsvm(data::Paths files, LibsvmOptions options) {
  check(options);
  return io::line_dataset<&libsvm, SparseExample>(std::move(files), ExampleParser{options}, options);
}

Dataset<SparseBatch> libsvm_batches(data::Paths files, std::int64_t size, LibsvmOptions options,
                                    bool drop_remainder) {
  check(options);
  data::require_at_least(size, 1, "libsvm_batches: the size");
  return Dataset<SparseBatch>(detail::reader_with_recipe<&libsvm_batches>(
      std::make_shared<BatchNode>(std::move(files), BatchSettings{size, drop_remainder, options}), size,
      options, drop_remainder));
}

}  // namespace capstan
