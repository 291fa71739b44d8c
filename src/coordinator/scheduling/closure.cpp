// closure.cpp -- arguments that are results of other closures.
#include "coordinator/scheduling/closure.hpp"

#include <algorithm>
#include <utility>

namespace capstan::coordinator {

Result::Result(std::shared_ptr<ResultBoard> shared_board, std::unique_ptr<ClosureExtras> closure_extras)
    : board(std::move(shared_board)), extras(std::move(closure_extras)) {}
Result::~Result() = default;

bool Closure::ready() const {
  return !has_extras || std::none_of(extras()->inputs.begin(), extras()->inputs.end(),
                                     [](const auto& input) { return input.result->pending(); });
}

std::vector<std::byte> Closure::complete_arguments() const {
  std::vector<std::byte> complete;
  auto from = arguments.begin();
  const auto copy_until = [&](std::size_t at) {
    const auto to = arguments.begin() + static_cast<std::ptrdiff_t>(at);
    complete.insert(complete.end(), from, to);
    from = to;
  };
  for (const auto& input : extras()->inputs) {
    copy_until(input.at);
    const std::vector<std::byte>& made = input.result->bytes;
    if (input.convert == nullptr) {
      complete.insert(complete.end(), made.begin(), made.end());
    } else {
      const auto converted = input.convert(made);
      complete.insert(complete.end(), converted.begin(), converted.end());
    }
  }
  copy_until(arguments.size());
  return complete;
}

const Result* Closure::failed_input() const {
  if (!has_extras) return nullptr;
  for (const auto& input : extras()->inputs) {
    if (input.result->state.load(std::memory_order_acquire) == Result::State::failed)
      return input.result.get();
  }
  return nullptr;
}

int Closure::input_producer() const {
  return has_extras && !extras()->inputs.empty() ? extras()->inputs.front().result->producer : kAnyWorker;
}

}  // namespace capstan::coordinator
