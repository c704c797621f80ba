/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that prove themselves: a page of a derived database that was damaged on the disk is noticed
 * when it is read, before a row of it is in an answer.
 *
 * (1) Each page of 4,096 bytes ends in 8 bytes that SQLite leaves alone (its header says so: byte
 *     20 is 8). They are the hash of the bytes before them, seeded with the number of the page. Any
 *     program that is built on SQLite can read such a file.
 * (2) The hash is written when a page goes to the database file, and compared when it comes from
 *     there. The WAL has hashes of its own, and no page of it is older than the process that wrote
 *     it unless that process was killed.
 * (3) A page that does not match is SQLITE_CORRUPT for the statement that needs it, and the file
 *     gets a mark: an empty file with the suffix -damaged. A database with that mark is deleted and
 *     made again, from the journals, by the next process that opens it for writing, and no reader
 *     uses it.
 * (4) A program that writes the file by itself writes no hashes, so what it wrote is damage, too.
 *     Databases that other programs may write (derived.c, rule 8) have no hashes.
 * (5) A file without these 8 bytes is used as it is by this VFS; derived_file.c has it made again.
 */
#ifndef INDEX_DB_PAGE_PROOF_H
#define INDEX_DB_PAGE_PROOF_H

#include <sqlite3.h>
#include <stdbool.h>

#define PROOF_PAGE_BYTES 4096
#define PROOF_TAG_BYTES  8
#define PROOF_MARK       "-damaged"

/* Make room for the proof behind each file of a VFS that is a copy of "unix". */
void annal__page_proof_init(sqlite3_vfs *vfs);

/* After the VFS has opened a database file; name is kept. */
void annal__page_proof_begin(const sqlite3_vfs *vfs, sqlite3_file *file, const char *name);

/* Before the first page of a new database is written: its pages will have proofs. */
int annal__page_proof_reserve(sqlite3 *db);

/* Whether the pages of its main database have proofs, or there are none; true on another VFS. */
bool annal__page_proof_holds(sqlite3 *db);

#endif
