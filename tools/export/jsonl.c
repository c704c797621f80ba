/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints lines in the form that 'annal append' and 'annal import jsonl' read. data keeps its bytes,
 * except for halves of surrogate pairs without --raw.
 */
#include "tools/cli/out.h"
#include "tools/export/export.h"
#include "tools/show/event_out.h"

/* Print a member whose text needs no escapes: the journal refuses characters that JSON escapes in
 * all texts but data. */
static void print_member(const char *name, annal_slice text)
{
    if (text.len > 0)
        printf("\"%s\":\"%.*s\",", name, ANNAL_FMT(text));
}

static bool print_event(struct export_reader *reader, const annal_event *event, uint64_t data_bytes,
                        annal_error *err)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    fputc('{', stdout);
    if (reader->export->many)
        print_member("session", reader->export->session);
    printf("\"ts\":\"%s\",", ts);
    print_member("type", event->type);
    print_member("id", event->id);
    print_member("cause", event->cause);
    fputs("\"data\":", stdout);
    if (!event_print_data(reader->cursor, event, data_bytes, err))
        return false;
    fputs("}\n", stdout);
    return true;
}

int jsonl_export(struct export *export)
{
    struct export_reader reader;
    annal_event event;
    uint64_t data_bytes = 0;
    annal_error err = {0};
    annal_status status = export_reader_open(&reader, export, true, &err);
    while (status >= 0 && status != ANNAL_END && out_wanted()) {
        status = export_reader_next_head(&reader, &event, &data_bytes, &err);
        if (status == ANNAL_OK && !print_event(&reader, &event, data_bytes, &err))
            status = err.status;
    }
    export_reader_close(&reader);
    return status < 0 ? fail_error(&err) : 0;
}
