/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as an export request of OTLP in protobuf.
 *
 * (1) They are taken, or refused; if they are taken, each resource is JSON, an object.
 * (2) What is refused at its end was refused: a prefix of it never becomes another resource than
 *     the whole had in that place.
 */
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tools/otlp/wire.h"

#include <string.h>

#define DEPTH_MAX 512

struct seen {
    struct buf all;
    bool compares; /* with all, from at on */
    size_t at;
};

static annal_status take(void *arg, annal_slice json)
{
    struct seen *seen = arg;
    MUST(annal__json_check(json, DEPTH_MAX, NULL) == JSON_VALID);
    MUST(json.len >= 2 && json.ptr[0] == '{');
    if (!seen->compares)
        return annal__buf_append_slice(&seen->all, json);
    MUST(seen->at + json.len <= seen->all.len);
    MUST(memcmp(seen->all.ptr + seen->at, json.ptr, json.len) == 0);
    seen->at += json.len;
    return ANNAL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0)
        return 0;
    enum otlp_signal signal = (enum otlp_signal)(bytes[0] % OTLP_SIGNALS);
    const annal_slice body = {(const char *)bytes + 1, len - 1};
    struct seen seen = {0};
    annal_error err = {0};
    annal_status status = wire_each(body, signal, take, &seen, &err);
    MUST(status == ANNAL_OK || err.message[0] != '\0');
    if (status == ANNAL_OK && body.len > 0) {
        seen.compares = true;
        const annal_slice cut = {body.ptr, body.len - 1};
        (void)wire_each(cut, signal, take, &seen, &err);
    }
    annal__buf_done(&seen.all);
    return 0;
}
