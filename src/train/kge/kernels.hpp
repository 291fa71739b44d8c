// kernels.hpp -- vector arithmetic around the matrix products, compiled for several instruction sets.
//
// The best one is selected at run time. Pointers need no alignment; arguments must not overlap.
#pragma once

#include <cstddef>

#include "train/kge/model.hpp"

namespace capstan::kge {

/// Factor of the TransE distance in its logit. Distances between trained rows are of the order of one, and
/// the factor must let a softmax over them become sharp.
inline constexpr float kTransETemperature = 1.0F;

/// Angle in radians of a RotatE relation per unit of its row. With rows as small as those of entities, an
/// optimizer turns relations about as fast as it moves entities.
inline constexpr float kRotationScale = 10.0F;

/// Sharpness of the weights of negatives in the self-adversarial loss.
inline constexpr float kAdversarialTemperature = 0.5F;

/// query = f(entity, relation). The entity row and the query have `dim` floats, the relation row
/// relation_width(kind, dim).
void make_query(ModelKind kind, const float* entity, const float* relation, float* query, std::size_t dim);

/// Adds the gradients with respect to the two rows of a query, given the gradient with respect to the query.
void add_query_gradients(ModelKind kind, const float* entity, const float* relation,
                         const float* query_gradient, float* entity_gradient, float* relation_gradient,
                         std::size_t dim);

float dot(const float* a, const float* b, std::size_t size);
float squared_distance(const float* a, const float* b, std::size_t size);

/// y += factor * x
void add_scaled(float factor, const float* x, float* y, std::size_t size);

/// gradient += factor * |z| * z over the numbers z of a row: 3 * weight * |z| * z is the gradient of weight *
/// |z|^3.
void add_cubic_penalty(ModelKind kind, float factor, const float* row, float* gradient, std::size_t size);

/// scores[j] = -sum of |query_k - row_k| over the complex numbers of row j. `rows` has `count` rows of `dim`
/// floats.
void moduli_scores(const float* query, const float* rows, std::size_t count, float* scores, std::size_t dim);

/// The score of a candidate's row, or for distances minus their square, which has the same order.
float score(ModelKind kind, const float* query, const float* row, std::size_t dim);

/// Adds the gradients of sum weights[j] * moduli_scores[j] to those of the query and the rows.
void add_moduli_gradients(const float* weights, const float* query, const float* rows, std::size_t count,
                          float* query_gradient, float* row_gradients, std::size_t dim);

/// Results of a query in addition to the weights of its negatives.
struct SoftmaxResult {
  float loss;             // cross-entropy
  float positive_weight;  // weight of the answer (negative): d loss / d score, or, for distances, u of
                          // softmax_distances()
  float weight_sum;       // sum of the weights of the answer and the negatives
};

/// Replaces the scores of `size` negatives by d loss / d score. `positive` is the answer's score;
/// `correction` is added to each negative's.
SoftmaxResult softmax_scores(float* scores, std::size_t size, float positive, float correction);

/// The same for the self-adversarial loss (Sun et al., ICLR 2019) with this margin: log(1 + exp(-margin -
/// positive)) + the mean of log(1 + exp(margin + scores[j])), in which a negative has the weight of a softmax
/// of kAdversarialTemperature * scores[j]. These weights count as constants.
SoftmaxResult self_adversarial_scores(float* scores, std::size_t size, float positive, float margin);

/// The same for the logits -kTransETemperature * distance, where distance^2 = query_norm + norms[j] - 2 *
/// products[j]. Replaces the products by u = (d loss / d logit) * kTransETemperature / distance, so that d
/// loss / d query = sum u * (candidate - query) over all candidates, and d loss / d candidate = u * (query -
/// candidate). Adds u to `column_sums`, too. `positive` is the answer's distance.
SoftmaxResult softmax_distances(float* products, std::size_t size, const float* norms, float query_norm,
                                float positive, float correction, float* column_sums);

/// Numbers of scores that are not <= `high` and not < `low`; NaN counts in both.
struct ScoreCounts {
  std::size_t above_high;
  std::size_t from_low;
};
ScoreCounts count_scores(const float* scores, std::size_t size, float low, float high);

}  // namespace capstan::kge
