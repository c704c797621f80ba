/*
 * Where the files of a lake are: a directory (lake_dir.c) or a bucket (lake_s3.c). All names are
 * below LAKE/store=<name>.
 */
#ifndef TOOLS_SHIP_LAKE_H
#define TOOLS_SHIP_LAKE_H

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

    /* What is not there is no failure. */
    annal_status (*remove)(struct lake_files *files, const char *name, annal_error *err);

    /* A local copy of a file, or itself: *out_is_copy says whether to unlink(2) it.
     * ANNAL_ERR_NOTFOUND: there is none of this name. */
    annal_status (*fetch)(struct lake_files *files, const char *name, char path[PATH_BYTES],
                          bool *out_is_copy, annal_error *err);

    /* For messages: where a file is. Valid until the next call. */
    const char *(*place)(struct lake_files *files, const char *name);
};

extern const struct lake_files_kind lake_dir, lake_s3;

/* A file of this machine. ANNAL_ERR_NOTFOUND: it is not there. */
annal_status lake_read_path(const char *path, piece_fn fn, void *arg, annal_error *err);

/* A piece_fn: add it to a struct buf. */
annal_status lake_add_text(void *arg, const void *bytes, size_t len);

/* ---- The lake: lake.c has its rules ---- */

enum { LAKE_BATCH = 1, LAKE_MERGE = 2, NUMBER_MAX = 99999999, CHECKPOINT_EVERY = 1000 };

struct lake_file {
    const char *name;
    uint64_t rows, bytes, hash;
    int64_t replaced_us; /* 0: it is part of the lake */
    bool is_removed;
    bool is_missing; /* compaction found that it was deleted */
    bool has_events; /* of the session that is looked for */
};

struct lake_row {
    const char *session;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t at; /* of its texts: type, id, cause, data, one after the other */
    size_t lens[4];
};

/* A session that belongs to another one: a fork or a sub-agent. */
struct lake_link {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char of[ANNAL_SESSION_ID_BYTES_MAX + 1];
    bool is_given;
};

struct lake_links {
    struct lake_link *all;
    size_t count;
};

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
    struct ship_origin
        *found; /* the session that is looked for, while manifests are read, or NULL */
    struct lake_links *links; /* where forks are noted while manifests are read, or NULL */
    char looked_for[ANNAL_SESSION_ID_BYTES_MAX +
                    1]; /* of which files say whether they have events */

    struct lake_row *rows;
    size_t row_count, row_room, row_given;
    struct buf texts;
    annal_value values[8];
};

/* Read the manifests that were written since. */
annal_status lake_read_log(struct ship_target *lake, annal_error *err);

/* A whole file, and a 0 after it. */
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

/* Set bytes and hash to those of the file at path. */
annal_status lake_measure(struct lake_manifest *manifest, const char *path, annal_error *err);

/* Write it as the next one; ANNAL_ERR_CONFLICT: somebody else was first. */
annal_status lake_publish(struct ship_target *lake, const struct lake_manifest *manifest,
                          annal_error *err);

/* lake_read.c. The first piece of a session has the header of its journal; a lake that an older
 * annal began lacks it. */
annal_status lake_print_header(const annal_session_info *info, struct buf *out);
void lake_take_piece(struct ship_target *lake, const char *line, struct lake_file *file);
annal_status lake_find(struct ship_target *lake, annal_slice session, struct ship_origin *out,
                       annal_error *err);
annal_status lake_note_fork(struct ship_target *lake, const char *line, annal_error *err);
annal_status lake_tree(struct ship_target *lake, annal_slice session, session_fn fn, void *arg,
                       annal_error *err);
annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err);

/* A path in $TMPDIR, or /tmp, that nobody has: annal-<what>-<random><end>. */
annal_status lake_temporary_name(char path[PATH_BYTES], const char *what, const char *end,
                                 annal_error *err);

annal_status lake_compact(struct ship_target *lake, const struct ship_compact *options,
                          struct ship_compacted *out, annal_error *err);

#endif
