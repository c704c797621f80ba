/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/cursor.h"
#include "tools/export/export.h"
#include "tools/show/event_out.h"

#include <inttypes.h>

annal_status export_reader_open(struct export_reader *reader, struct export *export, bool last_pass,
                                annal_error *err)
{
    *reader = (struct export_reader){
        .export = export, .counts = last_pass, .says_damage = last_pass, .next_seq = 1};
    return annal_cursor_open(export->store, export->session, 1, &reader->cursor, err);
}

void export_reader_close(struct export_reader *reader)
{
    annal_cursor_close(reader->cursor);
    annal__buf_done(&reader->data);
}

/* Record that the session is damaged, which changes the exit status, and report the damage in the
 * last pass. */
static void meet_damage(struct export_reader *reader)
{
    annal_damage damage = annal_cursor_damage(reader->cursor);
    reader->export->damaged = true;
    if (!reader->says_damage)
        return;
    progress_hide(reader->export->progress);
    event_say_damage(annal__cursor_journal(reader->cursor), &damage);
}

static void count(struct export_reader *reader, const annal_event *event)
{
    struct export *export = reader->export;
    if (!reader->counts)
        return;
    *export->bytes_done += event->length;
    progress_set(export->progress, *export->bytes_done, NULL);
}

annal_status export_reader_next_head(struct export_reader *reader, annal_event *out_event,
                                     uint64_t *out_data_bytes, annal_error *err)
{
    if (reader->next_seq > reader->export->last_seq)
        return ANNAL_END;
    annal_status status = annal__cursor_next_head(reader->cursor, out_event, out_data_bytes, err);
    if (status == ANNAL_DAMAGE)
        meet_damage(reader);
    if (status != ANNAL_OK)
        return status;
    if (out_event->seq > reader->export->last_seq)
        return ANNAL_END;
    reader->next_seq = out_event->seq + 1;
    count(reader, out_event);
    return ANNAL_OK;
}

annal_status export_reader_next(struct export_reader *reader, annal_event *out_event,
                                annal_error *err)
{
    uint64_t data_bytes = 0;
    annal_status status = export_reader_next_head(reader, out_event, &data_bytes, err);
    if (status == ANNAL_OK && out_event->data.len < data_bytes)
        status = event_read_whole(reader->cursor, out_event, data_bytes, &reader->data, err);
    return status == ANNAL_OK ? event_mend(out_event, &reader->data, err) : status;
}
