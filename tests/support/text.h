/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text for callbacks, and asserting that a call succeeds. */
#pragma once

#include <annal/base.h>

#include <check.h>

struct text {
    char *ptr; /* NULL until something is added; free() it */
    size_t len;
};
void text_add(struct text *text, const char *bytes, size_t len);
int text_write(void *arg, const char *bytes, size_t len); /* an annal_write_fn */

#define ck_ok(call)                                                                                \
    do {                                                                                           \
        annal_error err_ = {0}, *err = &err_;                                                      \
        annal_status got_status_ = (call);                                                         \
        ck_assert_msg(got_status_ == ANNAL_OK, "%s: %s", annal_status_name(got_status_),           \
                      err_.message);                                                               \
    } while (0)
