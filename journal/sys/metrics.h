/* SPDX-License-Identifier: Apache-2.0 */
/* Read the histograms of a store's metrics. */
#pragma once

#include <annal/metrics.h>

/* Return the largest value that a bucket counts; UINT64_MAX for the last bucket. Any thread. */
uint64_t annal__metrics_histogram_bound(size_t bucket);

/* Return the value that this share (0 to 1) of all values does not exceed, estimated within its
 * bucket: 0.5 is the median. 0 if no value was counted. Any thread. */
uint64_t annal__metrics_histogram_quantile(const annal_histogram *histogram, double share);
