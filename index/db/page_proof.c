/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/page_proof.h"

#include "journal/base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES 100
#define MAGIC        "SQLite format 3"

enum pages { UNKNOWN, PROVEN, PLAIN };

/* The check of one open file's page hashes. It is placed in memory after the file of the VFS. */
struct proof {
    sqlite3_io_methods methods; /* methods of the VFS, except for xRead and xWrite */
    const sqlite3_io_methods *own;
    const char *name;
    /* whether the pages of the file have hashes, according to its header; while the header is
     * unknown, a page must match its hash */
    enum pages pages;
};

static struct proof *proof_of(const sqlite3_file *file)
{
    /* the cast is valid because methods is the first member of struct proof */
    return (struct proof *)(void *)(uintptr_t)file->pMethods;
}

static void put_tag(char tag[PROOF_TAG_BYTES], const char *page, sqlite3_int64 at)
{
    uint64_t hash =
        annal__hash(page, PROOF_PAGE_BYTES - PROOF_TAG_BYTES, (uint64_t)at / PROOF_PAGE_BYTES + 1);
    for (int i = 0; i < PROOF_TAG_BYTES; i++)
        tag[i] = (char)(hash >> (8 * i));
}

static bool proves(const char *page, sqlite3_int64 at)
{
    char tag[PROOF_TAG_BYTES];
    put_tag(tag, page, at);
    return memcmp(tag, page + PROOF_PAGE_BYTES - PROOF_TAG_BYTES, sizeof tag) == 0;
}

/* Read from the first page of a file whether its pages have hashes. If the page does not begin as
 * SQLite's do, the file is damaged or not a database, and nothing is noted. */
static void note_header(struct proof *proof, const char *header)
{
    bool fits =
        header[16] == PROOF_PAGE_BYTES >> 8 && header[17] == 0 && header[20] == PROOF_TAG_BYTES;
    if (memcmp(header, MAGIC, sizeof MAGIC) == 0)
        proof->pages = fits ? PROVEN : PLAIN;
}

/*
 * Mark the file as damaged: rule (3). On a read-only medium no mark can be written, and each reader
 * finds the damage again.
 */
static void mark(const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s" PROOF_MARK, name);
    int fd =
        len < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd >= 0)
        close(fd);
}

/*
 * Return whether a file whose header is unknown is not a database of ours: its second page does not
 * match its hash. SQLite itself then finds that the file is not a database.
 */
static bool is_foreign(const struct proof *proof, sqlite3_file *file)
{
    char page[PROOF_PAGE_BYTES];
    return proof->own->xRead(file, page, sizeof page, sizeof page) != SQLITE_OK ||
           !proves(page, sizeof page);
}

static int read_page(sqlite3_file *file, void *bytes, int count, sqlite3_int64 at)
{
    struct proof *proof = proof_of(file);
    int rc = proof->own->xRead(file, bytes, count, at);
    if (rc != SQLITE_OK)
        return rc;
    if (at == 0 && count >= HEADER_BYTES)
        note_header(proof, bytes);
    if (count != PROOF_PAGE_BYTES || proof->pages == PLAIN || proves(bytes, at) ||
        (proof->pages == UNKNOWN && is_foreign(proof, file)))
        return SQLITE_OK;
    mark(proof->name);
    return SQLITE_CORRUPT;
}

static int write_page(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    struct proof *proof = proof_of(file);
    char page[PROOF_PAGE_BYTES];
    if (at == 0 && count >= HEADER_BYTES)
        note_header(proof, bytes);
    if (count != PROOF_PAGE_BYTES || proof->pages != PROVEN)
        return proof->own->xWrite(file, bytes, count, at);
    memcpy(page, bytes, sizeof page - PROOF_TAG_BYTES);
    put_tag(page + sizeof page - PROOF_TAG_BYTES, page, at);
    return proof->own->xWrite(file, page, count, at);
}

static size_t room_before(const sqlite3_vfs *vfs)
{
    return (size_t)vfs->szOsFile - sizeof(struct proof);
}

void annal__page_proof_init(sqlite3_vfs *vfs)
{
    const size_t aligned = _Alignof(struct proof);
    size_t room = ((size_t)vfs->szOsFile + aligned - 1) / aligned * aligned;
    vfs->szOsFile = (int)(room + sizeof(struct proof));
}

void annal__page_proof_begin(const sqlite3_vfs *vfs, sqlite3_file *file, const char *name)
{
    struct proof *proof = (struct proof *)(void *)((char *)file + room_before(vfs));
    *proof = (struct proof){.methods = *file->pMethods, .own = file->pMethods, .name = name};
    /* version 2 of the methods has no pages mapped into memory, which would bypass xRead */
    proof->methods.iVersion = 2;
    proof->methods.xRead = read_page;
    proof->methods.xWrite = write_page;
    file->pMethods = &proof->methods;
}

int annal__page_proof_reserve(sqlite3 *db)
{
    int bytes = PROOF_TAG_BYTES;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

bool annal__page_proof_holds(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
           file == NULL || file->pMethods == NULL || file->pMethods->xRead != read_page ||
           proof_of(file)->pages != PLAIN;
}
