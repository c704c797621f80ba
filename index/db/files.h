/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite database as files: the database itself, and the files that SQLite finds by its name
 * (-wal, -shm, -journal). Only the holder of the index lock calls these functions, while no
 * connection of ours is open.
 */
#pragma once

#include "journal/base/io.h"

/* Device and inode of a file. */
struct file_id {
    dev_t device;
    ino_t inode;
};

bool annal__file_is_there(const struct io *io, const char *path);

/*
 * Refuse a directory with the name of a database, and a symbolic link with that name or with the
 * name of a directory below the first root_bytes of its path: the target of a link is not ours to
 * write.
 */
annal_status annal__file_check(const struct io *io, const char *path, size_t root_bytes,
                               annal_error *err);

/* Return the identity of the file named database plus suffix; inode is 0 if it does not exist. */
struct file_id annal__file_id(const struct io *io, const char *database, const char *suffix);
bool annal__file_is_same(struct file_id a, struct file_id b);

/*
 * Create an empty file, which SQLite then fills, and the directories above it below the first
 * root_bytes of its name. Removes the remains of an older file.
 */
annal_status annal__files_make(const struct io *io, const char *database, size_t root_bytes,
                               annal_error *err);

/* Delete the database with its -wal, -shm, -journal and mark of damage. */
annal_status annal__files_remove(const struct io *io, const char *database, annal_error *err);

/*
 * Move the database, with its WAL or rollback journal, to the first free name of .foreign,
 * .foreign2, …
 */
annal_status annal__files_move_aside(const struct io *io, const char *database, annal_error *err);
