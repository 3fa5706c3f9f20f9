// Exact nearest neighbours: a matrix product finds the candidates, a plain loop in double precision decides among them,
// so that the answer is that of the double loop whatever the BLAS does in its last bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace galvani {

double squared_distance(const float* a, const float* b, std::int64_t width);

// For every row: whether some row of `stored` ([n, width], one after the other) is within `radius` (squared distance).
std::vector<char> rows_within(const std::vector<const float*>& rows, const std::vector<float>& stored,
                              std::int64_t width, double radius);

struct Nearest {
  std::int64_t index = -1;      // -1: there was no row to choose from
  double squared_distance = 0;  // exact
};

// Rows to be searched: kept centred, which makes products small and candidates few.
class NearestSearch {
 public:
  explicit NearestSearch(const at::Tensor& rows);  // [n, width] float

  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;  // [begin, end) of rows
  // The nearest row of those in `ranges` for each query, [m, width] float; of equally near ones the first. m should be
  // small (a few hundred); call it from several workers for more.
  std::vector<Nearest> nearest(const at::Tensor& queries, const Ranges& ranges) const;
  // The k nearest of all rows for each query, the nearest first, of equally near ones those that come first; fewer if
  // there are not as many rows.
  std::vector<std::vector<Nearest>> nearest_k(const at::Tensor& queries, std::int64_t k) const;

  const at::Tensor& rows() const { return rows_; }

 private:
  struct Candidate {
    std::int64_t index;
    float least;  // the squared distance cannot be smaller
  };
  // Calls bound(query) for what the distance may be at most, and offer(query, candidate, most) with each row that may
  // be that near; its distance is between `candidate.least` and `most`.
  template <class Bound, class Offer>
  void scan(const at::Tensor& queries, const Ranges& ranges, const Bound& bound, const Offer& offer) const;
  // Of rows that are narrow: offer_row(query, its squared norm, row, product).
  template <class Bound, class OfferRow>
  void scan_narrow(const at::Tensor& centred, const at::Tensor& query_norms, std::int64_t begin, std::int64_t end,
                   const Bound& bound, const OfferRow& offer_row) const;

  at::Tensor rows_;     // as given
  at::Tensor mean_;     // [width]
  at::Tensor centred_;  // [n, width] float
  at::Tensor norms_;    // [n] float: squared, of the centred rows
  bool finite_;         // none of them is too large
  at::Tensor columns_;  // [groups, width, 16]: the centred rows once more, where they are narrow
  at::Tensor lowered_;  // [groups x 16]: their norms, lowered by what rounding may do
};

}  // namespace galvani
