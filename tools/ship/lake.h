/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the files of a lake in a directory (lake_dir.c) or in a bucket (lake_s3.c). All names
 * are relative to LAKE/store=<name>. */
#pragma once

#include "tools/cli/outside.h"
#include "tools/ship/ship.h"

#include "journal/base/buf.h"

#include <annal/query.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 200 };

struct lake_files;

/* Receive a piece of a file. Return ANNAL_OK to continue; another status ends the reading. */
typedef annal_status (*piece_fn)(void *arg, const void *bytes, size_t len);

/* Operations on the files of a lake. ANNAL_ERR_BUSY: the failure may be temporary. directory is
 * store=<name>. */
struct lake_files_kind {
    annal_status (*open)(const struct ship_where *where, const char *directory, bool to_write,
                         struct lake_files **out_files, annal_error *err);
    void (*close)(struct lake_files *files); /* accepts NULL */

    /* Append a whole file to out. ANNAL_ERR_NOTFOUND: it does not exist. ANNAL_ERR_LIMIT: it is
     * longer than out's limit. */
    annal_status (*read)(struct lake_files *files, const char *name, struct buf *out,
                         annal_error *err);

    /* Create a complete, durable file atomically. ANNAL_ERR_CONFLICT: the name exists. */
    annal_status (*create)(struct lake_files *files, const char *name, annal_slice bytes,
                           annal_error *err);

    /*
     * Write a file of the lake with DuckDB in three steps. local() opens a local file for DuckDB to
     * write to; its descriptor is valid until the next call or close(). stage() stores this file
     * durably in the lake as <name>.tmp. settle() renames it to <name>, or does nothing if it was
     * already renamed. drop() removes what local() and stage() created.
     */
    annal_status (*local)(struct lake_files *files, const char *name, int *out_fd,
                          annal_error *err);
    annal_status (*stage)(struct lake_files *files, const char *name, annal_error *err);
    annal_status (*settle)(struct lake_files *files, const char *name, annal_error *err);
    void (*drop)(struct lake_files *files, const char *name);

    /* Remove a file. A missing file is not an error. */
    annal_status (*remove)(struct lake_files *files, const char *name, annal_error *err);

    /* Open a file, or an unnamed copy of it, for reading. ANNAL_ERR_NOTFOUND: it does not exist.
     * ANNAL_ERR_CORRUPT: it is longer than `most` bytes. */
    annal_status (*fetch)(struct lake_files *files, const char *name, uint64_t most, int *out_fd,
                          annal_error *err);

    /* Return the full name of a file for messages. Valid until the next call. */
    const char *(*place)(struct lake_files *files, const char *name);
};

extern const struct lake_files_kind lake_dir, lake_s3;

/* Read an open file from its first byte, and pass it to fn piece by piece; place is the name of the
 * file for messages. ANNAL_ERR_LIMIT: the file is longer than `most` bytes, or fn returned
 * ANNAL_ERR_LIMIT. */
annal_status lake_read_fd(int fd, const char *place, uint64_t most, piece_fn fn, void *arg,
                          annal_error *err);

/* Fail because a file is longer than annal writes such a file (lake_refuse_long()), or longer than
 * its manifest says (lake_refuse_longer()). */
annal_status lake_refuse_long(const char *place, uint64_t most, annal_error *err);
annal_status lake_refuse_longer(const char *place, uint64_t said, annal_error *err);

/* Print the path by which DuckDB can open the descriptor fd of this process. */
enum { FD_PATH_BYTES = 40 };
void lake_fd_path(char path[FD_PATH_BYTES], int fd);

/* Create an unnamed file in $TMPDIR or /tmp, which no other process can open. */
annal_status lake_unnamed(int *out_fd, annal_error *err);

/* A piece_fn: append the bytes to a struct buf. */
annal_status lake_add_text(void *arg, const void *bytes, size_t len);

/* ---- The lake: lake.c has the rules ---- */

enum { LAKE_BATCH = 1, LAKE_MERGE = 2, NUMBER_MAX = 99999999, CHECKPOINT_EVERY = 1000 };
#define MANIFEST_BYTES   ((size_t)64 << 20)
#define CHECKPOINT_BYTES ((size_t)256 << 20)

struct lake_file {
    const char *name;
    uint64_t rows, bytes, hash;
    int64_t
        replaced_us; /* time when the file was replaced, in us; 0 while the lake lists the file */
    bool is_removed;
    bool is_missing; /* whether a compaction found the file deleted */
    struct lake_file
        /* merged file that contains the rows of this file now; NULL if the file was not replaced */
        *replaced_by;
};

struct lake_row {
    const char *session;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    /* offset of the texts in ship_target.texts: type, id, cause, data, one after the other */
    size_t at;
    size_t lens[4];
};

/* The files that contain events of a session, according to the manifests (lake_history.c). */
struct lake_history {
    char *session;
    /* header of the journal; info.file is "" if the manifests do not have it */
    annal_session_info info;
    /* files as the manifests listed them; a later manifest may have replaced some */
    struct lake_file **files;
    size_t count;
};

struct ship_target {
    const struct lake_files_kind *kind;
    struct lake_files *files;
    /* the last event of each session in the lake, according to the manifests */
    struct shipments heads;
    void *tree;          /* struct lake_file by name; root of tsearch(3) */
    uint64_t number;     /* number of the last manifest that was read */
    uint64_t checkpoint; /* number of the last manifest in the checkpoint, or 0 */
    /* Parquet file of the last manifest, which may still have its temporary name; "" if it was
     * renamed */
    char last[NAME_BYTES];
    uint64_t events;
    bool to_write;
    char store[SHIP_STORE_BYTES_MAX];
    /* whether histories was filled for all sessions, from the first manifest on */
    bool has_histories;
    void *histories; /* struct lake_history by session; root of tsearch(3) */

    struct lake_row *rows;
    size_t row_count, row_given;
    struct buf texts;
    annal_value values[8];
};

/* Read the name of a Parquet file, day=YYYY-MM-DD/NNNNNNNN-XXXXXXXX.parquet, from a line of a
 * manifest or of the checkpoint. */
void lake_take_name(struct outside *line, char name[NAME_BYTES]);

/* Open a file of the lake. The file of the last manifest may still be named <name>.tmp; readers do
 * not rename it. */
annal_status lake_fetch_file(struct ship_target *lake, const struct lake_file *file, int *out_fd,
                             annal_error *err);

/* Files that are open for DuckDB, as the paths by which it opens them. */
struct opened {
    const char **paths;
    size_t count;
};
annal_status lake_open_more(struct ship_target *lake, const struct lake_file *file,
                            struct opened *opened, annal_error *err);
void lake_close_all(struct opened *opened);

/* Read the manifests that were written since the last call; read the next one,
 * ANNAL_ERR_NOTFOUND if there are no more. */
annal_status lake_read_log(struct ship_target *lake, annal_error *err);
annal_status lake_read_next(struct ship_target *lake, annal_error *err);

/* Fail with ANNAL_ERR_CORRUPT because of what is wrong with a manifest. */
annal_status lake_fail_manifest(uint64_t number, const char *what, annal_error *err);

/* Compare a Parquet file with its size and its hash in the manifest. */
annal_status lake_prove_file(struct ship_target *lake, const struct lake_file *file,
                             annal_error *err);

/* Read a whole file of at most out->limit bytes, and append a 0 byte. */
annal_status lake_read_text(struct ship_target *lake, const char *name, struct buf *out,
                            annal_error *err);

/* lake_end_text() appends the last line of a manifest or checkpoint, which has a hash of the lines
 * before it. lake_check_text() returns false if these lines were changed; otherwise it cuts off the
 * last line. */
void lake_end_text(struct buf *text, size_t count);
bool lake_check_text(char *text, size_t len, size_t *out_count);

/* Forget all manifests, so that the next read begins with the first one. */
void lake_forget(struct ship_target *lake);

annal_status lake_add_file(struct ship_target *lake, const struct lake_file *file,
                           annal_error *err);

/* Defined in lake_checkpoint.c: load the checkpoint (a missing or damaged one is ignored); replace
 * it with one of the current state; check that it matches the manifests. */
annal_status lake_checkpoint_read(struct ship_target *lake, annal_error *err);
annal_status lake_checkpoint_write(struct ship_target *lake, annal_error *err);
annal_status lake_checkpoint_prove(struct ship_target *lake, annal_error *err);

/* Find a file by name; NULL if no manifest lists it. */
struct lake_file *lake_find_file(struct ship_target *lake, const char *name);

struct lake_manifest {
    int version;
    const char *name; /* name of the file */
    uint64_t rows, bytes, hash;
    struct buf lines; /* lines of the manifest after its first line */
    size_t count;     /* number of these lines */
};

/* Choose a file name that no file of the lake has. */
annal_status lake_new_name(const struct ship_target *lake, annal_slice day, char name[NAME_BYTES],
                           annal_error *err);

/* Append the entries of the sessions of a batch to its manifest. */
void lake_print_pieces(struct shipment **shipments, size_t count, struct lake_manifest *manifest);

/* Set the size and the hash of the Parquet file in its manifest, by reading the open file. */
annal_status lake_measure(struct lake_manifest *manifest, int fd, annal_error *err);

/* Write the manifest with the next number. ANNAL_ERR_CONFLICT: another process was first. */
annal_status lake_publish(struct ship_target *lake, const struct lake_manifest *manifest,
                          annal_error *err);

/* The entry of a session in a manifest. The first entry of a session contains the header of its
 * journal, unless an older annal wrote the entry. */
struct lake_piece {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t first, before; /* first seq in the file, and the hash of the event before that */
    struct place last;
    bool has_header;
    annal_session_info info;
};

/* The entries of sessions (lake_history.c): write the header of a journal into an entry, and read
 * it; note the file of an entry; find the history of a session, NULL if no manifest names it. */
void lake_print_header(const annal_session_info *info, struct buf *out);
bool lake_take_header(struct outside *line, annal_session_info *out);
void lake_note_piece(struct ship_target *lake, const struct lake_piece *piece,
                     struct lake_file *file);
struct lake_history *lake_find_history(const struct ship_target *lake, const char *session);
void lake_forget_histories(struct ship_target *lake);

/* Defined in lake_read.c and lake_compact.c. */
/* Parse a row as DuckDB prints it; false if it is not an event. */
bool lake_read_row(char *line, annal_event *out);
annal_status lake_find(struct ship_target *lake, annal_slice session, struct ship_origin *out,
                       annal_error *err);
annal_status lake_tree(struct ship_target *lake, annal_slice session, session_fn fn, void *arg,
                       annal_error *err);
annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err);

annal_status lake_compact(struct ship_target *lake, const struct ship_compact *options,
                          struct ship_compacted *out, annal_error *err);
