/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/slot_files.h"

#include "journal/base/error.h"
#include "journal/base/lock_holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int collect_number(void *arg, const char *name)
{
    struct slot_list *list = arg;
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return 0;
    unsigned long number = strtoul(name, &end, 10);
    if (strcmp(end, ".log") == 0 && number < SLOTS_MAX && list->count < SLOTS_MAX)
        list->numbers[list->count++] = (uint32_t)number;
    return 0;
}

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

annal_status annal__slots_list(const struct context *context, struct slot_list *out_list,
                               annal_error *err)
{
    SCOPED_BUF path = {0};
    out_list->count = 0;
    annal_status status = annal__context_path(context, &path, "commit", "", err);
    if (status == ANNAL_OK &&
        context->io->list(context->io->arg, path.ptr, collect_number, out_list) < 0)
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
    if (status == ANNAL_OK)
        qsort(out_list->numbers, out_list->count, sizeof *out_list->numbers, compare_numbers);
    return status;
}

annal_status annal__slot_path(const struct context *context, struct buf *out, const char *part,
                              uint32_t number, annal_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "%02" PRIu32 "%s", number,
             strcmp(part, "commit") == 0 ? ".log" : ".held");
    return annal__context_path(context, out, part, name, err);
}

uint32_t annal__slot_holder(const struct context *context, uint32_t number)
{
    SCOPED_BUF path = {0};
    struct stat file;
    uint32_t pid = 0;
    if (annal__slot_path(context, &path, "commit", number, NULL) == ANNAL_OK &&
        context->io->stat(context->io->arg, path.ptr, &file) == 0)
        pid = annal__lock_holder_of(&file, false);
    return pid;
}
