/* SPDX-License-Identifier: Apache-2.0 */
/* A lake whose files are in memory: a fuzzer's bytes, with a last line that proves them. */
#pragma once

#include "tests/fuzz/fuzz.h"
#include "tools/ship/lake.h"

enum { IMAGE_FILES_MAX = 8 };

struct lake_files {
    struct {
        const char *name;
        struct buf text;
    } all[IMAGE_FILES_MAX];
    size_t count;
};

/* Add lines under this name, and the line that proves them. */
void lake_image_add(struct lake_files *files, const char *name, annal_slice lines);
void lake_image_done(struct lake_files *files, struct ship_target *lake);
void lake_image_begin(struct ship_target *lake, struct lake_files *files);

/* What was taken from the manifests and the checkpoint is what the rules of the lake allow. */
void lake_image_check(struct ship_target *lake);
