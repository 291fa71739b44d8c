// steps.hpp -- operators that produce one element for each replica of a worker.
#pragma once

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "capstan/data/batch_of.hpp"
#include "capstan/data/operator.hpp"
#include "capstan/detail/per_replica.hpp"

namespace capstan::data {

/// Gives an empty batch to each replica that has no element in a step. Returns nullopt if no replica has an
/// example, or if elements are not batches.
template <class T>
std::optional<PerReplica<T>> filled(std::vector<std::optional<T>> parts) {
  if constexpr (Batch<T>) {
    std::optional<T> empty;
    bool any = false;
    for (const auto& part : parts) {
      if (!part) continue;
      if (!empty) empty = BatchOf<T>::slice(*part, 0, 0);
      any = any || BatchOf<T>::size(*part) > 0;
    }
    if (!any) return std::nullopt;
    PerReplica<T> step;
    for (auto& part : parts) step.values.push_back(part ? std::move(*part) : *empty);
    return step;
  } else {
    return std::nullopt;
  }
}

/// Groups `size` elements, one per replica. At the end, replicas without an element get an empty batch. If
/// elements are not batches, or batches are always full, an incomplete last group is dropped instead. A last
/// step that has only empty batches is omitted.
template <class T>
class GroupNode : public OneInput<GroupNode<T>, T, PerReplica<T>> {
 public:
  GroupNode(NodePointer<T> input, std::int64_t size)
      : OneInput<GroupNode, T, PerReplica<T>>(std::move(input)), size_(size) {
    require_at_least(size, 1, "the number of replicas");
  }
  Kind kind() const noexcept override { return Kind::group; }
  std::unique_ptr<Cursor<PerReplica<T>>> open() const override {
    return std::make_unique<Reading>(this->input_->open(), static_cast<std::size_t>(size_),
                                     !this->input_->batches().always_full);
  }

 private:
  class Reading final : public OneInputCursor<T, PerReplica<T>> {
   public:
    Reading(std::unique_ptr<Cursor<T>> input, std::size_t size, bool fill)
        : OneInputCursor<T, PerReplica<T>>(std::move(input)), size_(size), fill_(fill) {}
    std::optional<PerReplica<T>> next() override {
      std::vector<T> group;
      group.reserve(size_);
      while (group.size() < size_) {
        auto value = this->input_->next();
        if (!value) return partial(std::move(group));
        group.push_back(std::move(*value));
      }
      return PerReplica<T>{std::move(group)};
    }

   private:
    Kind kind() const noexcept override { return Kind::group; }
    std::optional<PerReplica<T>> partial(std::vector<T> group) const {
      std::vector<std::optional<T>> parts(std::make_move_iterator(group.begin()),
                                          std::make_move_iterator(group.end()));
      parts.resize(size_);
      return fill_ ? filled(std::move(parts)) : std::nullopt;
    }
    std::size_t size_;
    bool fill_;
  };

  std::int64_t size_;
};

/// One element of each input, with one pipeline per replica. Ends when all inputs have ended, or, if batches
/// are always full, when any input has ended.
template <class T>
class SideBySideNode : public ManyInputs<SideBySideNode<T>, T, PerReplica<T>> {
 public:
  using ManyInputs<SideBySideNode, T, PerReplica<T>>::ManyInputs;
  Kind kind() const noexcept override { return Kind::side_by_side; }
  std::unique_ptr<Cursor<PerReplica<T>>> open() const override {
    return std::make_unique<Reading>(this->inputs_);
  }

 private:
  class Reading final : public Cursor<PerReplica<T>> {
   public:
    explicit Reading(const std::vector<NodePointer<T>>& nodes) {
      for (const auto& node : nodes) {
        inputs_.push_back(node->open());
        fill_ = fill_ && !node->batches().always_full;
      }
    }
    std::optional<PerReplica<T>> next() override {
      if (ended_) return std::nullopt;
      std::vector<std::optional<T>> parts;
      std::exception_ptr error;  // the other inputs advance nevertheless, so that later elements match
      for (auto& input : inputs_) {
        parts.emplace_back();
        try {
          parts.back() = input->next();
        } catch (...) {
          if (!error) error = std::current_exception();
        }
      }
      if (error) std::rethrow_exception(error);
      if (!std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.has_value(); })) {
        auto step = fill_ ? filled(std::move(parts)) : std::nullopt;
        ended_ = !step;
        return step;
      }
      PerReplica<T> step;
      for (auto& part : parts) step.values.push_back(std::move(*part));
      return step;
    }
    void rewind() override {
      for (auto& input : inputs_) input->rewind();
      ended_ = false;
    }

   private:
    Kind kind() const noexcept override { return Kind::side_by_side; }
    void write_state(Writer& out) const override {
      capstan::write(out, ended_);
      for (const auto& input : inputs_) input->save(out);
    }
    void read_state(Reader& in) override {
      ended_ = capstan::read<bool>(in);
      for (auto& input : inputs_) input->load(in);
    }
    std::vector<std::unique_ptr<Cursor<T>>> inputs_;
    bool fill_ = true;
    bool ended_ = false;
  };
};

}  // namespace capstan::data
