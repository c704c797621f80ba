/*
 * Where the files of a lake are: a directory (lake_dir.c) or a bucket (lake_s3.c). All names are
 * below LAKE/store=<name>.
 */
#ifndef TOOLS_SHIP_LAKE_H
#define TOOLS_SHIP_LAKE_H

#include "tools/ship/ship.h"

#include "journal/base/buf.h"

enum { PATH_BYTES = 4096 };

struct lake_files;

/* Pieces of a file. Return 0 to continue. */
typedef annal_status (*piece_fn)(void *arg, const void *bytes, size_t len);

/* ANNAL_ERR_BUSY as in struct ship_kind. */
struct lake_files_kind {
    annal_status (*open)(const struct ship_where *where, bool to_write,
                         struct lake_files **out_files, annal_error *err);
    void (*close)(struct lake_files *files); /* NULL is accepted */

    /* ANNAL_ERR_NOTFOUND: there is none of this name. */
    annal_status (*read)(struct lake_files *files, const char *name, piece_fn fn, void *arg,
                         annal_error *err);

    /* Make a file, complete and durable, of which only one caller gets the name: ANNAL_ERR_CONFLICT
     * if it is there. */
    annal_status (*create)(struct lake_files *files, const char *name, annal_slice bytes,
                           annal_error *err);

    /* A file that is written by others: where; then it is put aside, durable, as <name>.tmp; then
     * it gets its name, unless it has it. drop() removes what local() and stage() left. */
    annal_status (*local)(struct lake_files *files, const char *name, char path[PATH_BYTES],
                          annal_error *err);
    annal_status (*stage)(struct lake_files *files, const char *name, const char *path,
                          annal_error *err);
    annal_status (*settle)(struct lake_files *files, const char *name, annal_error *err);
    void (*drop)(struct lake_files *files, const char *name, const char *path);

    /* For messages: where a file is. Valid until the next call. */
    const char *(*place)(struct lake_files *files, const char *name);
};

extern const struct lake_files_kind lake_dir, lake_s3;

/* store=<name>, with % for what a path cannot have. */
annal_status lake_store_name(const char *store, struct buf *out);

#endif
