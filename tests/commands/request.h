/* SPDX-License-Identifier: Apache-2.0 */
/* What annal.c sends to test_commands.c in one message, and what it receives. */
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

/* The descriptor to send to, a SOCK_SEQPACKET; both inherit it. */
#define REQUEST_VARIABLE "ANNAL_TEST_REQUESTS"

enum {
    REQUEST_BYTES = 100000,
    REQUEST_FILES = 5,   /* standard streams, directory, and the other end of the answers */
    REQUEST_FAILED = 126 /* exit status that no verb returns */
};

/*
 * The message: this head, the words and the environment, each with its NUL. The sender then writes
 * a byte for each signal that it gets, and receives an int, the status of waitpid().
 */
struct request_head {
    int words;
    mode_t umask;
    struct rlimit file_bytes;
};
