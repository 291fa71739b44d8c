// model.cpp -- names and defaults of the models.
#include "train/kge/model.hpp"

#include <fmt/format.h>

#include <array>

#include "base/assert.hpp"
#include "capstan/error.hpp"

namespace capstan::kge {
namespace {

struct Entry {
  ModelKind kind;
  std::string_view name;
  ModelDefaults defaults;
};

// In the order of the enumeration. Tuned on WN18RR for the MRR after about one minute on two cores: TransE
// gains more from epochs than from negatives; DistMult, whose rows hold half the information of ComplEx's,
// needs longer rows and a weaker penalty.
constexpr std::array<Entry, 3> kModels{{
    {.kind = ModelKind::transe,
     .name = "transe",
     .defaults = {.dim = 256,
                  .negatives = 256,
                  .batch = 512,
                  .epochs = 60,
                  .learning_rate = 0.15,
                  .n3 = 0,
                  .initial_stddev = 0.1F}},
    {.kind = ModelKind::distmult,
     .name = "distmult",
     .defaults = {.dim = 512,
                  .negatives = 1024,
                  .batch = 512,
                  .epochs = 12,
                  .learning_rate = 0.15,
                  .n3 = 0.06F,
                  .initial_stddev = 0.1F}},
    {.kind = ModelKind::complex,
     .name = "complex",
     .defaults = {.dim = 256,
                  .negatives = 1024,
                  .batch = 512,
                  .epochs = 24,
                  .learning_rate = 0.15,
                  .n3 = 0.1F,
                  .initial_stddev = 0.1F}},
}};

const Entry& entry(ModelKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  CAPSTAN_ASSERT(index < kModels.size());
  return kModels[index];
}

}  // namespace

std::string_view to_string(ModelKind kind) noexcept { return entry(kind).name; }

ModelKind parse_model(std::string_view name) {
  for (const Entry& model : kModels) {
    if (model.name == name) return model.kind;
  }
  throw Error(Code::invalid_argument,
              fmt::format("unknown model \"{}\", expected transe, distmult or complex", name));
}

const ModelDefaults& defaults_of(ModelKind kind) noexcept { return entry(kind).defaults; }

}  // namespace capstan::kge
