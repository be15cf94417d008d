// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/bounds.h"

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

// Boost reports trouble by throwing unless told otherwise; our arguments are checked before the
// call.
using NoThrow = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

}  // namespace

ProportionInterval ClopperPearson(std::int64_t successes, std::int64_t trials, double confidence) {
  FEDGEN_CHECK(0 <= successes && successes <= trials, "{} successes in {} trials", successes,
               trials);
  FEDGEN_CHECK(0 < confidence && confidence < 1, "confidence = {}", confidence);
  ProportionInterval interval;
  if (trials == 0) return interval;
  const double tail = (1 - confidence) / 2;
  const auto k = static_cast<double>(successes);
  const auto n = static_cast<double>(trials);
  // Where all or none succeeded the quantile has a closed form: p^n = tail, or (1 - p)^n = tail.
  if (successes > 0) {
    interval.low = successes == trials ? std::exp(std::log(tail) / n)
                                       : boost::math::ibeta_inv(k, n - k + 1, tail, NoThrow());
  }
  if (successes < trials) {
    interval.high = successes == 0 ? -std::expm1(std::log(tail) / n)
                                   : boost::math::ibetac_inv(k + 1, n - k, tail, NoThrow());
  }
  return interval;
}

ProportionInterval HoeffdingInterval(double mean, std::int64_t samples, double confidence) {
  FEDGEN_CHECK(0 <= mean && mean <= 1, "mean = {}", mean);
  FEDGEN_CHECK(samples >= 0, "{} samples", samples);
  FEDGEN_CHECK(0 < confidence && confidence < 1, "confidence = {}", confidence);
  if (samples == 0) return {};
  const double half_width =
      std::sqrt(std::log(2 / (1 - confidence)) / (2 * static_cast<double>(samples)));
  return {std::max(0.0, mean - half_width), std::min(1.0, mean + half_width)};
}

}  // namespace fedgen
