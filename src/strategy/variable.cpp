// variable.cpp -- handles: shapes are checked here, bytes are moved by the client.
#include "capstan/variable.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

using strategy::BoundVariable;
using strategy::Context;
using strategy::Strategy;

Strategy& scope_strategy(const std::string& what) {
  Strategy* strategy = Strategy::current();
  if (strategy == nullptr) {
    throw Error(Code::failed_precondition, what +
                                               " is created outside of a strategy's scope: open one on the "
                                               "coordinator, auto scope = strategy.scope()");
  }
  return *strategy;
}

strategy::ClientUse client_of(const BoundVariable& bound) { return bound.context->use_client(); }

void check_elements(const BoundVariable& bound, std::size_t elements, std::size_t rows, const char* call) {
  const std::uint64_t width = bound.descriptor.width();
  if (elements == rows * width) return;
  throw Error(Code::invalid_argument,
              fmt::format("{} of variable \"{}\": {} rows of {} elements make {} elements, {} were given",
                          call, bound.descriptor.name, rows, width, rows * width, elements));
}

}  // namespace

AnyVariable::AnyVariable(std::string name, DType dtype, std::span<const std::int64_t> shape,
                         const Initializer& initializer, const VariableOptions& options)
    : bound_(scope_strategy("variable \"" + name + "\"")
                 .create_variable(name, dtype, shape, initializer, options.optimizer)) {}

const std::string& AnyVariable::name() const { return bound_->descriptor.name; }
DType AnyVariable::dtype() const { return bound_->descriptor.dtype; }
const std::vector<std::uint64_t>& AnyVariable::shape() const { return bound_->descriptor.shape; }
std::uint64_t AnyVariable::rows() const { return bound_->descriptor.rows(); }
std::uint64_t AnyVariable::width() const { return bound_->descriptor.width(); }
std::size_t AnyVariable::shards() const { return bound_->descriptor.shards.size(); }
std::uint32_t AnyVariable::id() const { return bound_->descriptor.id; }

void AnyVariable::flush() const { client_of(*bound_)->flush(); }

void AnyVariable::bind(std::uint32_t id, DType dtype) {
  bound_ = Context::current().find(id);
  CAPSTAN_ASSERT(bound_->descriptor.dtype == dtype);
}

void AnyVariable::lookup(std::span<const std::int64_t> ids, void* out, std::size_t room,
                         ReadMode mode) const {
  check_elements(*bound_, room, ids.size(), "lookup");
  client_of(*bound_)->lookup(bound_->descriptor, ids, out, mode);
}

void AnyVariable::pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const {
  const std::uint64_t rows = elements / width();
  check_elements(*bound_, elements, rows, "pull");
  client_of(*bound_)->pull(bound_->descriptor, first_row, rows, out, mode);
}

Pending AnyVariable::pull_async(std::uint64_t first_row, void* out, std::size_t elements) const {
  const std::uint64_t rows = elements / width();
  check_elements(*bound_, elements, rows, "pull_async");
  const client::Client::Lookup lookup{&bound_->descriptor, {}, out, first_row, rows};
  return {bound_->context, client_of(*bound_)->start({&lookup, 1})};
}

Pending AnyVariable::start_lookups(std::span<const Part> parts, ReadMode mode) {
  std::vector<client::Client::Lookup> lookups;
  for (const Part& part : parts) {
    check_elements(*part.variable->bound_, part.elements, part.ids.size(), "lookup");
    lookups.push_back({&part.variable->bound_->descriptor, part.ids, part.out});
  }
  strategy::Context* context = parts.front().variable->bound_->context;
  return {context, context->use_client()->start(lookups, mode)};
}

void AnyVariable::push_parts(std::span<const Part> parts) {
  std::vector<client::Client::Push> pushes;
  for (const Part& part : parts) {
    check_elements(*part.variable->bound_, part.elements, part.ids.size(), "push");
    pushes.push_back({&part.variable->bound_->descriptor, part.ids, part.gradient});
  }
  client_of(*parts.front().variable->bound_)->push(pushes);
}

Pending::~Pending() {
  if (reading_ != 0) context_->use_client()->cancel(reading_);
}

bool Pending::ready() const { return reading_ == 0 || context_->use_client()->ready(reading_); }

void Pending::wait() {
  if (const std::uint64_t reading = std::exchange(reading_, 0); reading != 0) {
    context_->use_client()->finish(reading);
  }
}

void AnyVariable::push(std::span<const std::int64_t> ids, const void* gradient, std::size_t elements) const {
  check_elements(*bound_, elements, ids.size(), "push");
  client_of(*bound_)->push(bound_->descriptor, ids, gradient);
}

void AnyVariable::push_dense(const void* gradient, std::size_t elements) const {
  check_elements(*bound_, elements, rows(), "push_dense");
  client_of(*bound_)->push_dense(bound_->descriptor, gradient);
}

void AnyVariable::assign(std::uint64_t first_row, const void* values, std::size_t elements) const {
  const std::uint64_t rows = elements / width();
  check_elements(*bound_, elements, rows, "assign");
  client_of(*bound_)->assign(bound_->descriptor, first_row, rows, values);
}

Counter::Counter(std::string name) {
  std::tie(ps_, index_) = scope_strategy("counter \"" + name + "\"").create_counter(name);
}

std::int64_t Counter::fetch_add(std::int64_t delta) const {
  return static_cast<std::int64_t>(
      Context::current().use_client()->fetch_add(ps_, index_, static_cast<std::uint64_t>(delta)));
}

}  // namespace capstan
