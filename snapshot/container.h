/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one snapshot. The comment at the top of container.c describes them. */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

#define SNAPSHOT_HEADER_BYTES 144
#define SNAPSHOT_PAGE_BYTES   4096
/* maximum size of a state in pages, 64 GiB; larger states get no snapshots */
#define SNAPSHOT_PAGES_MAX ((uint64_t)1 << 24)
/* maximum number of pages in a frame of whole pages */
#define SNAPSHOT_BLOCK_PAGES 4
#define SNAPSHOT_BASES_MAX   3 /* maximum number of bases of a delta */
/* maximum number of frames to unpack for one page */
#define SNAPSHOT_COST_MAX 16
/* Limits of snapshots that this program writes; it also reads snapshots that exceed them, up to the
 * limits above. */
#define SNAPSHOT_PACK_COST 8
/* a larger body is stored in a file instead of the row */
#define SNAPSHOT_ROW_BYTES_MAX   ((size_t)1 << 20)
#define SNAPSHOT_FILE_ID_BYTES   32 /* digits of a file id as text */
#define SNAPSHOT_RADIX           4
#define SNAPSHOT_BODY_BYTES_MAX  ((size_t)1 << 32)
#define SNAPSHOT_FRAME_BYTES_MAX ((size_t)SNAPSHOT_BLOCK_PAGES * SNAPSHOT_PAGE_BYTES + 1024)

struct snapshot_header {
    bool in_file;
    uint64_t seq;
    uint64_t offset; /* offset in the journal at which event seq + 1 begins */
    uint64_t h;      /* hash of event seq */
    char file[SNAPSHOT_FILE_ID_BYTES + 1];
    uint64_t pack_version;
    /*
     * size of the image (the uncompressed state) in bytes; its last page may be shorter than a page
     */
    uint64_t raw_bytes;
    uint64_t body_bytes;
    uint64_t directory_bytes; /* size in bytes of the directory of pages, at the end of the body */
    uint64_t number;
    uint64_t stride;   /* difference between the numbers of this snapshot and of the previous one */
    uint64_t base_seq; /* seq of the snapshot on which this snapshot is based; 0: none */
    uint64_t base_hash; /* header_hash of the snapshot on which this snapshot is based */
    uint64_t body_hash;
    int64_t created_us;
    /* hash of the header; set by annal__container_header_write() and _read() */
    uint64_t header_hash;
};

/* Return the number of the base of snapshot `number`, or 0 if it has none (container.c, rule 3). */
uint64_t annal__container_base_number(uint64_t number);

uint64_t annal__container_pages(const struct snapshot_header *header);

void annal__container_header_write(struct snapshot_header *header, char out[SNAPSHOT_HEADER_BYTES]);

/* Read a header. Returns NULL, or a phrase that says why the row is not a valid snapshot. */
const char *annal__container_header_read(annal_slice row, struct snapshot_header *out_header);

/* ---- Writing a body ---- */

struct body_writer;

annal_status annal__container_body_writer_new(struct body_writer **out_packer, annal_error *err);
void annal__container_body_writer_free(struct body_writer *packer);

/* A page from which the delta of another page is computed. */
struct packer_base {
    const char *bytes;
    uint32_t page;
    uint32_t cost; /* number of frames that must be decompressed for the page */
};

/*
 * Add a page of SNAPSHOT_PAGE_BYTES bytes as a delta against bases (up to SNAPSHOT_BASES_MAX; the
 * base that shares most with the page should be last). If the delta would take more than `most`
 * bytes, or more than SNAPSHOT_PACK_COST frames to unpack, nothing is added and *out_added is
 * false. Do not add a page twice.
 */
annal_status annal__container_body_writer_delta(struct body_writer *packer, uint32_t page,
                                                const char *bytes, const struct packer_base *bases,
                                                size_t count, size_t most, bool *out_added,
                                                annal_error *err);

/* Add a page that is not stored as differences from other pages, in a separate frame. */
annal_status annal__container_body_writer_whole(struct body_writer *packer, uint32_t page,
                                                const char *bytes, annal_error *err);

/* Append the body to out, and set body_bytes, directory_bytes, body_hash and in_file of the
 * header. */
annal_status annal__container_body_writer_end(struct body_writer *packer,
                                              struct snapshot_header *header, struct buf *out,
                                              annal_error *err);

/* ---- Reading a body ---- */

/* One zstd frame of a body: whole pages, or one delta. */
struct snapshot_frame {
    uint64_t offset; /* offset in the body */
    uint32_t bytes;
    /* index in directory.bases of the first page on which this frame is based */
    uint32_t first_base;
    uint8_t pages; /* number of pages in this frame */
    uint8_t bases; /* number of bases of a delta; 0: whole pages */
    /* number of frames to unpack for a page of this frame: 1 plus the costs of the bases */
    uint8_t cost;
};

struct snapshot_entry {
    uint32_t page;
    uint32_t frame;
    uint32_t at; /* index of the page in the frame */
};

/* The directory of a snapshot's body: which pages the body contains, and in which frame each is. */
struct snapshot_directory {
    struct snapshot_frame *frames;
    size_t frame_count;
    struct snapshot_entry *entries; /* sorted by page */
    size_t entry_count;
    uint32_t *bases; /* page numbers of the bases, in the snapshot that is the base */
    size_t base_count;
};

/* Read the directory from `bytes`, the last directory_bytes of the body. */
annal_status annal__container_directory_read(const struct snapshot_header *header,
                                             annal_slice bytes,
                                             struct snapshot_directory *out_directory,
                                             annal_error *err);
void annal__container_directory_done(struct snapshot_directory *directory);

/* Find a page; NULL if the body does not contain it. */
const struct snapshot_entry *
annal__container_directory_find(const struct snapshot_directory *directory, uint32_t page);

struct body_reader;

annal_status annal__container_body_reader_new(struct body_reader **out_unpacker, annal_error *err);
void annal__container_body_reader_free(struct body_reader *unpacker);

/* Unpack the pages of a frame from its bytes to out; prefix is the content of its bases, one after
 * the other. ANNAL_ERR_CORRUPT unless the result has the right length and checksum. */
annal_status annal__container_body_read_frame(struct body_reader *unpacker,
                                              const struct snapshot_frame *frame, const char *bytes,
                                              const char *prefix, char *out, annal_error *err);
