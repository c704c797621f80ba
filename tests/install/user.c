/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses only the installed library: user STORE. */
#include <annal/journal.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    annal_error err = {0};
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    annal_draft draft = {.type = ANNAL_SLICE("note.added"), .data = ANNAL_SLICE("{\"n\":1}")};
    uint64_t seq = 0;
    if (annal_store_open(argc > 1 ? argv[1] : "store", &(annal_store_options){.create = true},
                         &store, &err) < 0 ||
        annal_writer_open(store, ANNAL_SLICE("s1"), NULL, &writer, &err) < 0 ||
        annal_writer_append(writer, &draft, 1, NULL, &seq, &err) < 0)
        fprintf(stderr, "%s\n", err.message);
    else
        printf("annal %s: durable at seq %llu\n", annal_version(), (unsigned long long)seq);
    annal_writer_close(writer);
    annal_store_close(store, NULL);
    return seq == 1 ? 0 : 1;
}
