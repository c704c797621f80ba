/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP in protobuf, as JSON: what an exporter of OpenTelemetry sends, in the JSON that OTLP
 * defines.
 *
 * The schema is a table of the fields that this needs (opentelemetry-proto v1: trace, logs, common,
 * resource); others are skipped. A decoder that builds a tree first, as protobuf-c does, follows
 * values that are nested in values as deep as a sender likes, on its stack. Here depth is limited,
 * and nothing is built: a message is scanned once for each field that it may have, which costs
 * little, for scanning skips what is in fields.
 */
#ifndef TOOLS_OTLP_WIRE_H
#define TOOLS_OTLP_WIRE_H

#include "journal/base/buf.h"

#include <annal/base.h>

enum otlp_signal { OTLP_TRACES, OTLP_LOGS, OTLP_SIGNALS };

/* Called with the JSON of one ResourceSpans or ResourceLogs. Valid until it returns. */
typedef annal_status (*otlp_fn)(void *arg, annal_slice json);

/* Call fn for each in a request. ANNAL_ERR_INVALID: it is not that message. */
annal_status otlp_wire_each(annal_slice wire, enum otlp_signal signal, otlp_fn fn, void *arg,
                            annal_error *err);

#endif
