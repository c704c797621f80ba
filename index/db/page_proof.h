/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages with hashes: if a page of a derived database was damaged on the disk, the damage is found
 * when the page is read, before a row of it is in an answer.
 *
 * (1) Each page of 4,096 bytes ends in 8 bytes that SQLite does not use (byte 20 of its header is
 *     8). They contain the hash of the bytes before them, seeded with the number of the page. Any
 *     program that is built on SQLite can read such a file.
 * (2) The hash is written when a page is written to the database file, and compared when the page
 *     is read from the file. The WAL has hashes of its own, and no page of it is older than the
 *     process that wrote it unless that process was killed.
 * (3) A page that does not match its hash is SQLITE_CORRUPT for the statement that needs it, and
 *     the file is marked by an empty file with the suffix -damaged. The next process that opens a
 *     marked database for writing deletes it and rebuilds it from the journals, and no reader uses
 *     it.
 * (4) Another program that writes the file writes no hashes, so its pages count as damaged, too.
 *     Databases that other programs may write (derived.c, rule 8) have no hashes.
 * (5) This VFS also opens a file without these 8 bytes; derived_file.c deletes such a file, and it
 *     is rebuilt.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#define PROOF_PAGE_BYTES 4096
#define PROOF_TAG_BYTES  8
#define PROOF_MARK       "-damaged"

/* Reserve space for a struct proof after each file of a VFS that is a copy of "unix". */
void annal__page_proof_init(sqlite3_vfs *vfs);

/* Begin to check a database file that the VFS has opened; name is kept. */
void annal__page_proof_begin(const sqlite3_vfs *vfs, sqlite3_file *file, const char *name);

/* Reserve the bytes for hashes in the pages of a new database, before its first page is written.
 * Returns a result code of SQLite. */
int annal__page_proof_reserve(sqlite3 *db);

/*
 * Return whether the pages of the database of db have hashes, or it has no pages; true on a VFS
 * without hashes.
 */
bool annal__page_proof_holds(sqlite3 *db);
