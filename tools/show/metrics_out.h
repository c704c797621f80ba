/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the metrics of a store on stdout: as a table with small bars, or as one JSON object with
 * units in its names. */
#pragma once

#include <annal/metrics.h>

void metrics_print(const annal_metrics *metrics);
void metrics_print_json(const annal_metrics *metrics);
