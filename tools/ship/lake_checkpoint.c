/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summarizes the first n manifests of a lake in one file, so that opening the lake does not read
 * them all:
 *
 *     {"annal_lake":1,"checkpoint":n,"events":…}
 *     {"file":"…","rows":…,"bytes":…,"hash":"…","replaced_us":…}    each file that was not removed
 *     {"session":"…","seq":…,"h":"…","at":…}                        each head
 *     {"pieces":…,"h":"…"}                                          as in manifests
 *
 * (1) It is written by a process that opened the lake for writing and had to read many manifests,
 *     and by compaction. The old one is removed first. It is never required: if it is missing for a
 *     moment, or after a crash, all manifests are read.
 * (2) If two processes write it at the same time, one of them creates the name; both contents are
 *     valid.
 * (3) The order of its lines is fixed, so that it can be compared with the manifests.
 */
#include "tools/ship/lake.h"

#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/ship/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char file_name[] = "_log/_checkpoint";

struct printing {
    struct buf text;
    size_t count;
};

static void print_file(const void *node, VISIT which, void *closure)
{
    struct printing *printing = closure;
    const struct lake_file *file = *(struct lake_file *const *)node;
    if ((which != postorder && which != leaf) || file->is_removed)
        return;
    must_printf(&printing->text,
                "{\"file\":\"%s\",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"hash\":\"%016" PRIx64
                "\",\"replaced_us\":%" PRId64 "}\n",
                file->name, file->rows, file->bytes, file->hash, file->replaced_us);
    printing->count++;
}

static int print_head(void *arg, struct shipment *shipment)
{
    struct printing *printing = arg;
    if (!shipment->has_head)
        return 0;
    must_printf(&printing->text,
                "{\"session\":\"%s\",\"seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\",\"at\":%" PRIu64
                "}\n",
                shipment->session, shipment->head.seq, shipment->head.h, shipment->head.at);
    printing->count++;
    return 0;
}

static struct buf print(struct ship_target *lake)
{
    struct printing printing = {0};
    must_printf(&printing.text,
                "{\"annal_lake\":%d,\"checkpoint\":%" PRIu64 ",\"events\":%" PRIu64 "}\n",
                LAKE_BATCH, lake->number, lake->events);
    twalk_r(lake->tree, print_file, &printing);
    (void)shipments_each(&lake->heads, print_head, &printing);
    lake_end_text(&printing.text, printing.count);
    return printing.text;
}

annal_status lake_checkpoint_write(struct ship_target *lake, annal_error *err)
{
    SCOPED_BUF text = print(lake);
    annal_status status = lake->kind->remove(lake->files, file_name, err);
    if (status >= 0)
        status = lake->kind->create(lake->files, file_name, annal__buf_slice(&text), err);
    if (status == ANNAL_ERR_CONFLICT) /* another process wrote the checkpoint first (rule 2) */
        return ANNAL_OK;
    if (status >= 0)
        lake->checkpoint = lake->number;
    return status;
}

static annal_status take_file(struct ship_target *lake, struct outside *line, annal_error *err)
{
    char name[NAME_BYTES];
    struct lake_file file = {.name = name};
    lake_take_name(line, name);
    outside_skip(line, "\",\"rows\":");
    file.rows = outside_number(line, OUTSIDE_COUNT_MAX);
    outside_skip(line, ",\"bytes\":");
    file.bytes = outside_number(line, OUTSIDE_BYTES_MAX);
    outside_skip(line, ",\"hash\":\"");
    file.hash = outside_hash(line);
    outside_skip(line, "\",\"replaced_us\":");
    file.replaced_us = outside_time(line);
    outside_skip(line, "}");
    return outside_end(line) && file.replaced_us >= 0 ? lake_add_file(lake, &file, err)
                                                      : ANNAL_ERR_CORRUPT;
}

static annal_status take_head(struct ship_target *lake, struct outside *line)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct place head;
    outside_skip(line, "{\"session\":\"");
    outside_session(line, session);
    outside_skip(line, "\",\"seq\":");
    head.seq = outside_number(line, OUTSIDE_SEQ_MAX);
    outside_skip(line, ",\"h\":\"");
    head.h = outside_hash(line);
    outside_skip(line, "\",\"at\":");
    head.at = outside_number(line, OUTSIDE_BYTES_MAX);
    outside_skip(line, "}");
    if (!outside_end(line))
        return ANNAL_ERR_CORRUPT;
    struct shipment *shipment = shipment_of(&lake->heads, annal_slice_of(session));
    if (shipment->has_head)
        return ANNAL_ERR_CORRUPT;
    shipment->has_head = true;
    shipment->head = head;
    return ANNAL_OK;
}

static bool take_begin(const char *text, uint64_t *number, uint64_t *events)
{
    struct outside line = {.at = text};
    outside_skip(&line, "{\"annal_lake\":");
    bool is_known = outside_number(&line, LAKE_MERGE) == LAKE_BATCH;
    outside_skip(&line, ",\"checkpoint\":");
    *number = outside_number(&line, NUMBER_MAX);
    outside_skip(&line, ",\"events\":");
    *events = outside_number(&line, OUTSIDE_BYTES_MAX);
    outside_skip(&line, "}");
    return outside_end(&line) && is_known;
}

/* Load the checkpoint. ANNAL_ERR_CORRUPT: it is damaged, or has another version. */
static annal_status take(struct ship_target *lake, struct buf *text, annal_error *err)
{
    size_t said = 0, count = 0;
    uint64_t number = 0;
    char *rest = NULL, *line = lake_check_text(text->ptr, text->len, &said)
                                   ? strtok_r(text->ptr, "\n", &rest)
                                   : NULL;
    if (line == NULL || !take_begin(line, &number, &lake->events))
        return ANNAL_ERR_CORRUPT;
    annal_status status = ANNAL_OK;
    for (; status >= 0 && (line = strtok_r(NULL, "\n", &rest)) != NULL; count++) {
        struct outside field = {.at = line};
        status = outside_has(&field, "{\"file\":\"") ? take_file(lake, &field, err)
                                                     : take_head(lake, &field);
    }
    if (status >= 0 && count != said)
        status = ANNAL_ERR_CORRUPT;
    if (status >= 0)
        lake->number = lake->checkpoint = number;
    return status;
}

annal_status lake_checkpoint_read(struct ship_target *lake, annal_error *err)
{
    SCOPED_BUF text = {.limit = CHECKPOINT_BYTES};
    annal_status status = lake_read_text(lake, file_name, &text, err);
    if (status >= 0)
        status = take(lake, &text, err);
    if (status != ANNAL_ERR_NOTFOUND && status != ANNAL_ERR_CORRUPT && status != ANNAL_ERR_LIMIT)
        return status;
    lake_forget(lake);
    return ANNAL_OK;
}

/* Check that the checkpoint matches the manifests. If another process replaced it in the meantime,
 * it is not checked. */
annal_status lake_checkpoint_prove(struct ship_target *lake, annal_error *err)
{
    SCOPED_BUF want = {0};
    SCOPED_BUF text = {.limit = CHECKPOINT_BYTES};
    char number[40];
    size_t count;
    snprintf(number, sizeof number, "\"checkpoint\":%" PRIu64 ",", lake->number);
    annal_status status = lake_read_text(lake, file_name, &text, err);
    if (status >= 0)
        want = print(lake);
    if (status >= 0 && (text.len != want.len || memcmp(text.ptr, want.ptr, want.len) != 0) &&
        (strstr(text.ptr, number) != NULL || !lake_check_text(text.ptr, text.len, &count)))
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "ship: the checkpoint '%s' of the lake differs from the manifests: "
                             "remove the checkpoint",
                             lake->kind->place(lake->files, file_name));
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}
