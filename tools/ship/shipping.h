/* SPDX-License-Identifier: Apache-2.0 */
/* What all verbs of shipping begin with. */
#ifndef TOOLS_SHIP_SHIPPING_H
#define TOOLS_SHIP_SHIPPING_H

#include "tools/cli/args.h"
#include "tools/cli/open.h"
#include "tools/ship/ship.h"

struct shipping {
    annal_store *store;
    struct ship_options options;
    char name[SHIP_STORE_BYTES_MAX]; /* of the store at the target */
};

/* Open the store, and read the operand TARGET and the options below. 0 or an exit status; the
 * caller closes the store in either case. */
int shipping_begin(const struct args *args, enum open_mode mode, struct shipping *shipping);

#define TARGET_OPERAND                                                                             \
    OPERAND("TARGET", FIELD_TEXT, NULL, "an address: postgresql://, file:///, s3:// or nats://")
#define TARGET_OPTIONS                                                                             \
    OPTION("session", "GLOB", FIELD_TEXT, NULL,                                                    \
           "only these sessions; it may have *, ? and [abc]"),                                     \
        STORE_OPTIONS
#define STORE_OPTIONS                                                                              \
    OPTION("as", "NAME", FIELD_TEXT, NULL, "what the store is called there (HOST:PATH)"),          \
        TIMEOUT_OPTION
#define TIMEOUT_OPTION                                                                             \
    OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL,                                           \
                "a target that is silent for so long is away (30)", .least = 1, .most = 3600)

#endif
