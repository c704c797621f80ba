/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the verbs of annal ship. */
#pragma once

#include "tools/cli/args.h"
#include "tools/cli/store_open.h"
#include "tools/ship/ship.h"

struct shipping {
    annal_store *store;
    struct ship_options options;
    char name[SHIP_STORE_BYTES_MAX]; /* name of the store at the target */
};

/* Open the store; read the operand TARGET and the options below it. Returns 0 or an exit status; in
 * both cases the caller closes the store. */
int ship_begin(const struct args *args, enum open_mode mode, struct shipping *shipping);

#define TARGET_OPERAND                                                                             \
    OPERAND("TARGET", FIELD_TEXT, NULL, "postgresql://, file:///, s3:// or nats:// address")
#define TARGET_OPTIONS                                                                             \
    OPTION("session", "GLOB", FIELD_TEXT, NULL,                                                    \
           "pattern of session names, with *, ? and [abc] (all)"),                                 \
        STORE_OPTIONS
#define STORE_OPTIONS                                                                              \
    OPTION("as", "NAME", FIELD_TEXT, NULL, "name of the store at the target (HOST:PATH)"),         \
        TIMEOUT_OPTION
#define TIMEOUT_OPTION                                                                             \
    OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL, "limit for an answer of the target (30)", \
                .least = 1, .most = 3600)
