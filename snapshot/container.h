/* What one snapshot is made of, as bytes. The essay in container.c says what stands where. */
#ifndef SNAPSHOT_CONTAINER_H
#define SNAPSHOT_CONTAINER_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define SNAPSHOT_HEADER_BYTES  128
#define SNAPSHOT_RAW_BYTES_MAX ((size_t)1 << 30) /* a larger state is not kept */
#define SNAPSHOT_ROW_BYTES_MAX ((size_t)1 << 20) /* a larger frame goes to a file */
#define SNAPSHOT_FILE_ID_BYTES 32                /* hex digits */

struct snapshot_header {
    bool in_file;
    uint64_t seq;
    uint64_t offset; /* where event seq + 1 begins */
    uint64_t h;      /* of event seq */
    char file[SNAPSHOT_FILE_ID_BYTES + 1];
    uint64_t pack_version;
    uint64_t raw_bytes;
    uint64_t frame_bytes;
    uint64_t number;
    uint64_t base_seq; /* 0: none */
    uint64_t raw_hash;
    uint64_t base_hash; /* raw_hash of the base */
    int64_t created_us;
};

/* The number of the snapshot that snapshot number is stored against; 0: none. Rule (3). */
uint64_t annal__snapshot_base_number(uint64_t number);

/* Fills raw_bytes, raw_hash, frame_bytes and in_file of header, and appends the frame to out. */
annal_status annal__snapshot_pack(struct snapshot_header *header, annal_slice raw, annal_slice base,
                                  struct buf *out, annal_error *err);

/* The state again, appended to out. ANNAL_ERR_CORRUPT unless it is the state that was packed. */
annal_status annal__snapshot_unpack(const struct snapshot_header *header, annal_slice frame,
                                    annal_slice base, struct buf *out, annal_error *err);

void annal__snapshot_header_write(const struct snapshot_header *header,
                                  char out[SNAPSHOT_HEADER_BYTES]);

/* NULL, or in one phrase why this is no header of a snapshot. */
const char *annal__snapshot_header_read(annal_slice row, struct snapshot_header *out_header);

#endif
