/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/lake_image.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

static annal_status read_image(struct lake_files *files, const char *name, struct buf *out,
                               annal_error *err)
{
    (void)err;
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->all[i].name, name) == 0)
            return annal__buf_append(out, files->all[i].text.ptr, files->all[i].text.len);
    return ANNAL_ERR_NOTFOUND;
}

/* A reader writes, renames and removes nothing. */
static annal_status never_create(struct lake_files *files, const char *name, annal_slice bytes,
                                 annal_error *err)
{
    (void)files, (void)name, (void)bytes, (void)err;
    abort();
}

static annal_status never(struct lake_files *files, const char *name, annal_error *err)
{
    (void)files, (void)name, (void)err;
    abort();
}

static const char *place(struct lake_files *files, const char *name)
{
    (void)files;
    return name;
}

static const struct lake_files_kind kind = {
    .read = read_image, .create = never_create, .settle = never, .remove = never, .place = place};

void lake_image_add(struct lake_files *files, const char *name, annal_slice lines)
{
    size_t count = 0;
    struct buf *text = &files->all[files->count].text;
    if (files->count == IMAGE_FILES_MAX)
        return;
    for (size_t i = 0; i + 1 < lines.len; i++)
        count += lines.ptr[i] == '\n';
    MUST(annal__buf_append_slice(text, lines) == ANNAL_OK);
    if (lines.len == 0 || lines.ptr[lines.len - 1] != '\n')
        MUST(annal__buf_append(text, "\n", 1) == ANNAL_OK);
    lake_end_text(text, count);
    files->all[files->count++].name = name;
}

void lake_image_begin(struct ship_target *lake, struct lake_files *files)
{
    *lake = (struct ship_target){.kind = &kind, .files = files};
    snprintf(lake->store, sizeof lake->store, "h1");
}

void lake_image_done(struct lake_files *files, struct ship_target *lake)
{
    lake_forget(lake);
    for (size_t i = 0; i < files->count; i++)
        annal__buf_done(&files->all[i].text);
}

static void check_file(const void *node, VISIT which, void *arg)
{
    const struct lake_file *file = *(struct lake_file *const *)node;
    const char *shape = "day=0000-00-00/00000000-xxxxxxxx.parquet", *at = file->name;
    (void)arg;
    if (which != postorder && which != leaf)
        return;
    MUST(strlen(at) == strlen(shape));
    for (; *at != '\0'; at++, shape++)
        MUST(*shape == '0'   ? *at >= '0' && *at <= '9'
             : *shape == 'x' ? strchr("0123456789abcdef", *at) != NULL
                             : *at == *shape);
    MUST(file->replaced_us >= 0);
}

static int check_shipment(void *arg, struct shipment *shipment)
{
    struct ship_target *lake = arg;
    struct ship_origin origin;
    annal_error err = {0};
    annal_slice session = annal_slice_of(shipment->session);
    MUST(annal_session_id_check(session, NULL) == ANNAL_OK);
    MUST(shipment->head.seq <= OUTSIDE_SEQ_MAX);
    if (lake->has_histories && lake_find(lake, session, &origin, &err) == ANNAL_OK) {
        MUST(strlen(origin.info.file) == 32);
        MUST(origin.info.last_seq == shipment->head.seq);
        MUST(origin.info.fork_session[0] == '\0' ||
             annal_session_id_check(annal_slice_of(origin.info.fork_session), NULL) == ANNAL_OK);
    }
    return 0;
}

void lake_image_check(struct ship_target *lake)
{
    twalk_r(lake->tree, check_file, NULL);
    (void)shipments_each(&lake->heads, check_shipment, lake);
}
