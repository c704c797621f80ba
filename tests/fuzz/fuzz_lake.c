/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the checkpoint of a lake, and as a row of it as DuckDB prints it.
 *
 * (1) A checkpoint is taken, or nothing of it is.
 * (2) What was taken names files of the lake, and sessions, alone.
 * (3) A row is an event with a seq, or none.
 */
#include "tests/fuzz/lake_image.h"

#include <string.h>

static void check_row(const uint8_t *bytes, size_t len)
{
    annal_event event;
    char *line = malloc(len + 1);
    MUST(line != NULL);
    if (len > 0)
        memcpy(line, bytes, len);
    line[len] = '\0';
    if (lake_read_row(line, &event)) {
        MUST(event.seq > 0);
        MUST(event.type.len + event.id.len + event.cause.len + event.data.len <= len);
    }
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct lake_files files = {0};
    struct ship_target lake;
    annal_error err = {0};
    check_row(bytes, len);
    lake_image_add(&files, "_log/_checkpoint", (annal_slice){(const char *)bytes, len});
    lake_image_begin(&lake, &files);
    annal_status status = lake_checkpoint_read(&lake, &err);
    MUST(status == ANNAL_OK);
    MUST(lake.number > 0 || lake.tree == NULL || lake.checkpoint == 0);
    lake_image_check(&lake);
    lake_image_done(&files, &lake);
    return 0;
}
