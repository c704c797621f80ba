/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make a store to measure on.
 *
 *   bench_generate DIR [--sessions N] [--events N] [--largest N] [--one N] [--seed N]
 *                  [--longest N]
 *
 * Without options: 1,000,000 events in 100 sessions, of which sess_000 has 200,000. --one N is one
 * session, sess_000, of N events. --longest N shortens each text to N bytes, for stores of many
 * events. Prints one JSON object: sessions, events, bytes of the journals.
 */
#include "tests/bench/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct total {
    unsigned sessions;
    uint64_t bytes;
};

static int count(void *arg, annal_slice session, uint64_t bytes)
{
    struct total *total = arg;
    (void)session;
    total->sessions++;
    total->bytes += bytes;
    return 0;
}

static int usage(void)
{
    fputs("usage: bench_generate DIR [--sessions N] [--events N] [--largest N] [--one N] "
          "[--seed N] [--longest N]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct generate_options options = {.sessions = 100, .events = 1000000};
    if (argc < 2 || argc % 2 != 0)
        return usage();
    for (int i = 2; i < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--sessions") == 0)
            options.sessions = (unsigned)value;
        else if (strcmp(argv[i], "--events") == 0)
            options.events = value;
        else if (strcmp(argv[i], "--largest") == 0)
            options.largest = value;
        else if (strcmp(argv[i], "--seed") == 0)
            options.seed = value;
        else if (strcmp(argv[i], "--longest") == 0)
            options.longest = value;
        else if (strcmp(argv[i], "--one") == 0)
            options =
                (struct generate_options){.sessions = 1, .events = value, .seed = options.seed};
        else
            return usage();
    }

    annal_error err;
    annal_store *store = NULL;
    struct total total = {0};
    annal_status status =
        annal_store_open(argv[1], &(annal_store_options){.create = true}, &store, &err);
    if (status == ANNAL_OK)
        status = generate_store(store, &options, &err);
    if (status == ANNAL_OK)
        status = annal_session_each(store, count, &total, &err);
    if (status == ANNAL_OK) {
        status = annal_store_close(store, &err);
        store = NULL;
    }
    annal_store_close(store, NULL);
    if (status < 0) {
        fprintf(stderr, "bench_generate: %s\n", err.message);
        return 3;
    }
    printf("{\"sessions\":%u,\"events\":%llu,\"bytes\":%llu}\n", total.sessions,
           (unsigned long long)options.events, (unsigned long long)total.bytes);
    return 0;
}
