/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts OTLP in protobuf, which exporters of OpenTelemetry send, to the JSON that OTLP defines.
 *
 * The schema is a table of the fields that are needed (opentelemetry-proto v1: trace, logs, common,
 * resource); other fields are skipped. A decoder that first builds a tree, such as protobuf-c,
 * recurses as deep as the sender nests values, and uses its stack for that. Here the depth is
 * limited, and no tree is built: a message is scanned once for each field that it may have. This is
 * cheap, because a scan skips the content of fields.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

enum otlp_signal { OTLP_TRACES, OTLP_LOGS, OTLP_SIGNALS };

/* Receive the JSON of one ResourceSpans or ResourceLogs, which is valid during the call. Return
 * ANNAL_OK to continue. */
typedef annal_status (*otlp_fn)(void *arg, annal_slice json);

/* Call fn with each resource in an export request. ANNAL_ERR_INVALID: the bytes are not a request
 * of this signal. */
annal_status wire_each(annal_slice wire, enum otlp_signal signal, otlp_fn fn, void *arg,
                       annal_error *err);
