/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/slice.h"
#include "journal/sys/cursor.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/show/event_line.h"
#include "tools/show/event_out.h"

#include <annal/journal.h>

#include <inttypes.h>

/* Which events to print, and how. */
struct range {
    bool for_people;
    uint64_t from_seq;
    bool has_last;
    uint64_t last;       /* number of events to print from the end of the session, if has_last */
    bool leaves_records; /* whether to omit import.record */
};

static annal_status open_cursor(annal_store *store, annal_slice session, const struct range *range,
                                annal_cursor **out_cursor, annal_error *err)
{
    annal_status status = annal_cursor_open(store, session, range->from_seq, out_cursor, err);
    if (status == ANNAL_OK && range->has_last)
        status = annal_cursor_last(*out_cursor, range->last, err);
    return status;
}

/* Print an event as a line for people. If data is too long to be read, print its size instead. */
static annal_status print_line(annal_cursor *cursor, annal_slice session, annal_event *event,
                               uint64_t data_bytes, struct event_lines *lines, annal_error *err)
{
    SCOPED_BUF data = {0};
    annal_status status = event_read_data(cursor, event, data_bytes, &data, err);
    if (status == ANNAL_OK && event->data.len > 0)
        event_line_print(lines, session, event);
    else if (status == ANNAL_OK)
        event_line_print_long(lines, session, event, data_bytes);
    return status;
}

static int print_all(annal_store *store, annal_slice session, const struct range *range)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t data_bytes;
    annal_error err = {0};
    struct event_lines lines = {0};
    uint64_t left = 0;
    int exit_status = EXIT_DONE;
    annal_status status = open_cursor(store, session, range, &cursor, &err);
    while (status >= 0 && out_wanted()) {
        status = annal__cursor_next_head(cursor, &event, &data_bytes, &err);
        if (status == ANNAL_END) {
            int waits = 0;
            int at_end = event_check_end(store, session, annal_cursor_position(cursor), &waits);
            exit_status = at_end != EXIT_DONE ? at_end : exit_status;
            break;
        }
        if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_cursor_damage(cursor);
            event_say_damage(annal__cursor_journal(cursor), &damage);
            exit_status = EXIT_REFUSED;
        } else if (status == ANNAL_OK && range->leaves_records &&
                   annal__slice_is(event.type, "import.record")) {
            left++;
        } else if (status == ANNAL_OK && range->for_people) {
            status = print_line(cursor, session, &event, data_bytes, &lines, &err);
        } else if (status == ANNAL_OK &&
                   !event_print_head(cursor, &event, (annal_slice){0}, data_bytes, &err)) {
            status = err.status;
        }
    }
    annal_cursor_close(cursor);
    if (left > 0)
        say("%" PRIu64 " import.record events are left out; --all prints them", left);
    return status < 0 ? fail_error(&err) : exit_status;
}

static int run(const struct args *args)
{
    const bool for_people = event_lines_wanted(args);
    event_keep_bytes(args_has(args, "raw"));
    const struct range range = {.for_people = for_people,
                                .leaves_records = for_people && !args_has(args, "all"),
                                .from_seq = fields_count(args, "from", 1),
                                .has_last = args_has(args, "last"),
                                .last = fields_count(args, "last", 0)};
    annal_store *store = NULL;
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = print_all(store, fields_text(args, "SESSION"), &range);
    return store_close(store, exit_status);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPTION("from", "N", FIELD_COUNT, NULL, "first event to print"),
    OPTION_WITH("last", "N", FIELD_COUNT, NULL, "number of last events to print",
                .without = "from"),
    FLAG("all", NULL, "include import.record on a terminal"),
    RAW_OPTION,
    FIELDS_END};

const struct command cmd_cat = {
    COMMAND("cat", "print the events of a session, straight from its journal", cat, fields, run)};
