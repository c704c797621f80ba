/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the files of a lake are: a directory (lake_dir.c) or a bucket (lake_s3.c). All names are
 * below LAKE/store=<name>.
 */
#ifndef TOOLS_SHIP_LAKE_H
#define TOOLS_SHIP_LAKE_H

#include "tools/cli/outside.h"
#include "tools/ship/ship.h"

#include "journal/base/buf.h"

#include <annal/query.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 200 };

struct lake_files;

/* Pieces of a file. Return 0 to continue. */
typedef annal_status (*piece_fn)(void *arg, const void *bytes, size_t len);

/* ANNAL_ERR_BUSY as in struct ship_kind. directory: store=<name>. */
struct lake_files_kind {
    annal_status (*open)(const struct ship_where *where, const char *directory, bool to_write,
                         struct lake_files **out_files, annal_error *err);
    void (*close)(struct lake_files *files); /* NULL is accepted */

    /* Append a whole file to out. ANNAL_ERR_NOTFOUND: there is none of this name. ANNAL_ERR_LIMIT:
     * it is longer than out's limit. */
    annal_status (*read)(struct lake_files *files, const char *name, struct buf *out,
                         annal_error *err);

    /* Make a file, complete and durable, of which only one caller gets the name: ANNAL_ERR_CONFLICT
     * if it is there. */
    annal_status (*create)(struct lake_files *files, const char *name, annal_slice bytes,
                           annal_error *err);

    /* A file that DuckDB writes: open, until the next call or close(); then it is put aside,
     * durable, as <name>.tmp; then it gets its name, unless it has it. drop() removes what local()
     * and stage() left. */
    annal_status (*local)(struct lake_files *files, const char *name, int *out_fd,
                          annal_error *err);
    annal_status (*stage)(struct lake_files *files, const char *name, annal_error *err);
    annal_status (*settle)(struct lake_files *files, const char *name, annal_error *err);
    void (*drop)(struct lake_files *files, const char *name);

    /* What is not there is no failure. */
    annal_status (*remove)(struct lake_files *files, const char *name, annal_error *err);

    /* Open a file, or a copy of it without a name. ANNAL_ERR_NOTFOUND: there is none of this name.
     * ANNAL_ERR_CORRUPT: it is longer than these bytes. */
    annal_status (*fetch)(struct lake_files *files, const char *name, uint64_t most, int *out_fd,
                          annal_error *err);

    /* For messages: where a file is. Valid until the next call. */
    const char *(*place)(struct lake_files *files, const char *name);
};

extern const struct lake_files_kind lake_dir, lake_s3;

/* An open file, from its first byte on; place is for messages. ANNAL_ERR_LIMIT: it is longer than
 * these bytes, or fn said so. */
annal_status lake_read_fd(int fd, const char *place, uint64_t most, piece_fn fn, void *arg,
                          annal_error *err);

/* The sentences for a file that is too long. */
annal_status lake_refuse_long(const char *place, uint64_t most, annal_error *err);
annal_status lake_refuse_longer(const char *place, uint64_t said, annal_error *err);

/* The path by which DuckDB opens an open file. */
enum { FD_PATH_BYTES = 40 };
void lake_fd_path(char path[FD_PATH_BYTES], int fd);

/* Create a file without a name in $TMPDIR, or /tmp: only this process can open it. */
annal_status lake_unnamed(int *out_fd, annal_error *err);

/* A piece_fn: add it to a struct buf. */
annal_status lake_add_text(void *arg, const void *bytes, size_t len);

/* ---- The lake: lake.c has its rules ---- */

enum { LAKE_BATCH = 1, LAKE_MERGE = 2, NUMBER_MAX = 99999999, CHECKPOINT_EVERY = 1000 };
#define MANIFEST_BYTES   ((size_t)64 << 20)
#define CHECKPOINT_BYTES ((size_t)256 << 20)

struct lake_file {
    const char *name;
    uint64_t rows, bytes, hash;
    int64_t replaced_us; /* 0: it is part of the lake */
    bool is_removed;
    bool is_missing;               /* compaction found that it was deleted */
    struct lake_file *replaced_by; /* the file that has its rows now; NULL: it is not replaced */
};

struct lake_row {
    const char *session;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t at; /* of its texts: type, id, cause, data, one after the other */
    size_t lens[4];
};

/* What the manifests say about a session: lake_read.c. */
struct lake_history;

struct ship_target {
    const struct lake_files_kind *kind;
    struct lake_files *files;
    struct lanes heads;    /* there: as the manifests say */
    void *tree;            /* struct lake_file by name, of tsearch(3) */
    uint64_t number;       /* of the last manifest that was read */
    uint64_t checkpoint;   /* of the last manifest that is in the checkpoint; 0: there is none */
    char last[NAME_BYTES]; /* the file of the last manifest; "": it has its name */
    uint64_t events;
    bool to_write;
    char store[SHIP_STORE_BYTES_MAX];
    bool has_histories; /* of all sessions, from the first manifest on */
    void *histories;    /* struct lake_history by session, of tsearch(3) */

    struct lake_row *rows;
    size_t row_count, row_room, row_given;
    struct buf texts;
    annal_value values[8];
};

/* The name of a file, day=YYYY-MM-DD/NNNNNNNN-XXXXXXXX.parquet, from a line of a manifest or of the
 * checkpoint. */
void lake_take_name(struct outside *line, char name[NAME_BYTES]);

/* Open a file of the lake. The last one may not have its name yet: a reader does not give it. */
annal_status lake_fetch_file(struct ship_target *lake, const struct lake_file *file, int *out_fd,
                             annal_error *err);

/* Files that are open, with the paths by which DuckDB opens them. */
struct opened {
    const char **paths;
    size_t count;
};
annal_status lake_open_more(struct ship_target *lake, const struct lake_file *file,
                            struct opened *opened, annal_error *err);
void lake_close_all(struct opened *opened);

/* Read the manifests that were written since. */
annal_status lake_read_log(struct ship_target *lake, annal_error *err);

/* A whole file, up to out->limit, and a 0 after it. */
annal_status lake_read_text(struct ship_target *lake, const char *name, struct buf *out,
                            annal_error *err);

/* The last line of a manifest and of a checkpoint proves those before it. check: false if they are
 * not what was written; else the last line is cut off. */
annal_status lake_end_text(struct buf *text, size_t count);
bool lake_check_text(char *text, size_t len, size_t *out_count);

/* Begin again, before the first manifest. */
void lake_forget(struct ship_target *lake);

annal_status lake_add_file(struct ship_target *lake, const struct lake_file *file,
                           annal_error *err);

/* lake_checkpoint.c. Read: nothing if there is none, or if it is damaged. Write: all that was
 * read, in the place of the one before. Prove: it says what the manifests say that were read. */
annal_status lake_read_checkpoint(struct ship_target *lake, annal_error *err);
annal_status lake_write_checkpoint(struct ship_target *lake, annal_error *err);
annal_status lake_prove_checkpoint(struct ship_target *lake, annal_error *err);

/* NULL: no manifest names it. */
struct lake_file *lake_find_file(struct ship_target *lake, const char *name);

struct lake_manifest {
    int version;
    const char *name; /* of the file */
    uint64_t rows, bytes, hash;
    struct buf lines; /* what it says besides */
    size_t count;     /* of them */
};

/* A name that no file has. */
annal_status lake_new_name(const struct ship_target *lake, annal_slice day, char name[NAME_BYTES],
                           annal_error *err);

/* Set bytes and hash to those of an open file. */
annal_status lake_measure(struct lake_manifest *manifest, int fd, annal_error *err);

/* Write it as the next one; ANNAL_ERR_CONFLICT: somebody else was first. */
annal_status lake_publish(struct ship_target *lake, const struct lake_manifest *manifest,
                          annal_error *err);

/* What a manifest says of a session. The first piece of a session has the header of its journal;
 * a lake that an older annal began lacks it. */
struct lake_piece {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t first, before; /* the first seq, and the hash before it */
    struct place last;
    bool has_header;
    annal_session_info info;
};

/* lake_read.c */
annal_status lake_print_header(const annal_session_info *info, struct buf *out);
bool lake_read_row(char *line, annal_event *out); /* a row as DuckDB printed it */
bool lake_take_header(struct outside *line, annal_session_info *out);
annal_status lake_note_piece(struct ship_target *lake, const struct lake_piece *piece,
                             struct lake_file *file, annal_error *err);
void lake_forget_histories(struct ship_target *lake);
annal_status lake_find(struct ship_target *lake, annal_slice session, struct ship_origin *out,
                       annal_error *err);
annal_status lake_tree(struct ship_target *lake, annal_slice session, session_fn fn, void *arg,
                       annal_error *err);
annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err);

annal_status lake_compact(struct ship_target *lake, const struct ship_compact *options,
                          struct ship_compacted *out, annal_error *err);

#endif
