// sources.hpp -- sources of a pipeline: a vector, a range, a function, files.
#pragma once

#include <functional>
#include <utility>

#include "capstan/data/operator.hpp"

namespace capstan::data {

template <class T>
class VectorNode : public Node<T> {
 public:
  VectorNode(std::vector<T> elements, Kind kind)
      : elements_(std::make_shared<const std::vector<T>>(std::move(elements))), kind_(kind) {}
  Kind kind() const noexcept override { return kind_; }
  Paths files() const override {
    if constexpr (std::is_same_v<T, std::filesystem::path>) {
      if (kind_ == Kind::file_names) return *elements_;
    }
    return {};
  }
  OperatorPointer with_files(Paths files) const override {
    if constexpr (std::is_same_v<T, std::filesystem::path>) {
      return std::make_shared<VectorNode>(std::move(files), kind_);
    }
    return nullptr;
  }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(elements_, kind_); }
  const std::shared_ptr<const std::vector<T>>& elements() const noexcept { return elements_; }

 private:
  class Reading final : public Cursor<T> {
   public:
    Reading(std::shared_ptr<const std::vector<T>> elements, Kind kind)
        : elements_(std::move(elements)), kind_(kind) {}
    std::optional<T> next() override {
      if (at_ >= elements_->size()) return std::nullopt;
      return (*elements_)[at_++];
    }
    void rewind() override { at_ = 0; }

   private:
    Kind kind() const noexcept override { return kind_; }
    void write_state(Writer& out) const override { capstan::write(out, at_); }
    void read_state(Reader& in) override { at_ = capstan::read<std::uint64_t>(in); }
    std::shared_ptr<const std::vector<T>> elements_;
    Kind kind_;
    std::uint64_t at_ = 0;
  };

  std::shared_ptr<const std::vector<T>> elements_;
  Kind kind_;
};

template <class T>
class RangeNode : public Node<T> {
 public:
  RangeNode(T start, T stop, T step) : start_(start), step_(step) {
    if (step == 0) throw Error(Code::invalid_argument, "range: the step is 0, expected another value");
    // Computed in unsigned arithmetic: a difference of two T may not fit in T.
    const auto distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                   : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
    const auto stride =
        step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const bool empty = step > 0 ? stop <= start : start <= stop;
    count_ = empty ? 0 : (distance - 1) / stride + 1;
  }
  Kind kind() const noexcept override { return Kind::range; }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(*this); }

 private:
  class Reading final : public Cursor<T> {
   public:
    explicit Reading(const RangeNode& node) : start_(node.start_), step_(node.step_), count_(node.count_) {}
    std::optional<T> next() override {
      if (at_ >= count_) return std::nullopt;
      return static_cast<T>(static_cast<std::uint64_t>(start_) + at_++ * static_cast<std::uint64_t>(step_));
    }
    void rewind() override { at_ = 0; }

   private:
    Kind kind() const noexcept override { return Kind::range; }
    void write_state(Writer& out) const override { capstan::write(out, at_); }
    void read_state(Reader& in) override { at_ = capstan::read<std::uint64_t>(in); }
    T start_, step_;
    std::uint64_t count_, at_ = 0;
  };

  T start_, step_;
  std::uint64_t count_;
};

/// A function that returns elements, then nullopt.
template <class T>
using Next = std::function<std::optional<T>()>;

/// Calls `make` at the start of each iteration, and the returned function once per element. A position is the
/// number of these calls; restoring it repeats them.
template <class T>
class GeneratorNode : public Node<T> {
 public:
  explicit GeneratorNode(std::function<Next<T>()> make) : make_(std::move(make)) {}
  Kind kind() const noexcept override { return Kind::generator; }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(make_); }

 private:
  class Reading final : public Cursor<T> {
   public:
    explicit Reading(std::function<Next<T>()> make) : make_(std::move(make)) {}
    std::optional<T> next() override {
      if (ended_) return std::nullopt;
      if (!next_) next_ = make_();
      ++calls_;
      auto value = next_();
      ended_ = !value;
      return value;
    }
    void rewind() override {
      next_ = nullptr;
      calls_ = 0;
      ended_ = false;
    }

   private:
    Kind kind() const noexcept override { return Kind::generator; }
    void write_state(Writer& out) const override { capstan::write(out, calls_); }
    void read_state(Reader& in) override {
      rewind();
      this->pass(capstan::read<std::uint64_t>(in));
    }
    std::function<Next<T>()> make_;
    Next<T> next_;
    std::uint64_t calls_ = 0;
    bool ended_ = false;
  };

  std::function<Next<T>()> make_;
};

/// Opens one file as a cursor. Throws Error if the file cannot be read.
template <class T>
using OpenFile = std::function<std::unique_ptr<Cursor<T>>(const std::filesystem::path&)>;

/// The elements of files, one file after another.
template <class T>
class FilesNode : public Node<T> {
 public:
  FilesNode(Paths files, OpenFile<T> open) : files_(std::move(files)), open_(std::move(open)) {}
  Kind kind() const noexcept override { return Kind::files; }
  Paths files() const override { return files_; }
  OperatorPointer with_files(Paths files) const override {
    return std::make_shared<FilesNode>(std::move(files), open_);
  }
  std::unique_ptr<Cursor<T>> open() const override { return std::make_unique<Reading>(files_, open_); }

 private:
  class Reading final : public Cursor<T> {
   public:
    Reading(Paths files, OpenFile<T> open) : files_(std::move(files)), open_(std::move(open)) {}
    std::optional<T> next() override {
      while (at_ < files_.size()) {
        if (!file_) file_ = open_(files_[at_]);
        if (auto value = file_->next()) return value;
        file_.reset();
        ++at_;
      }
      return std::nullopt;
    }
    void rewind() override {
      file_.reset();
      at_ = 0;
    }

   private:
    Kind kind() const noexcept override { return Kind::files; }
    void write_state(Writer& out) const override {
      capstan::write(out, at_);
      capstan::write(out, file_ != nullptr);
      if (file_) file_->save(out);
    }
    void read_state(Reader& in) override {
      rewind();
      at_ = capstan::read<std::uint64_t>(in);
      if (!capstan::read<bool>(in)) return;
      if (at_ >= files_.size()) {
        throw Error(Code::invalid_argument, "cannot restore a position: found file number " +
                                                std::to_string(at_ + 1) + ", expected at most " +
                                                std::to_string(files_.size()) +
                                                "; the list of files has changed");
      }
      file_ = open_(files_[at_]);
      file_->load(in);
    }
    Paths files_;
    OpenFile<T> open_;
    std::uint64_t at_ = 0;
    std::unique_ptr<Cursor<T>> file_;
  };

  Paths files_;
  OpenFile<T> open_;
};

}  // namespace capstan::data
