/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/snapshot/plant.h"

#include "index/db/db.h"
#include "index/state/state.h"
#include "index/sys/state.h"
#include "snapshot/storage.h"
#include "snapshot/sys/snapshot.h"
#include "tests/index/fixture.h"

const char *const plants[PLANTS] = {
    "CREATE TRIGGER evil AFTER UPDATE ON sessions BEGIN DELETE FROM turns; END",
    "CREATE TRIGGER evil AFTER DELETE ON _state BEGIN UPDATE turns SET status = 'evil'; END",
    "ALTER TABLE turns RENAME TO evil; CREATE VIEW turns AS SELECT * FROM evil WHERE 0",
    "ALTER TABLE _state RENAME TO evil; CREATE VIEW _state AS SELECT * FROM evil",
    "CREATE VIEW evil AS SELECT 1",
    "CREATE INDEX evil ON turns(abs(sequence))",
    "CREATE TABLE evil (a)",
    PLANT_EDIT("sessions", "total_turns", "total_turns AS (7), t"),
    PLANT_EDIT("turns", "sequence", "sequence CHECK (sequence < 2)"),
};

static void pack_image(annal_state *state, struct snapshot_header *header, struct buf *body)
{
    struct body_writer *writer = NULL;
    uint64_t count = 0;
    ck_ok(annal__state_page_count(state, &count, err));
    ck_ok(annal__container_body_writer_new(&writer, err));
    for (uint64_t page = 1; page <= count; page++) {
        char bytes[SNAPSHOT_PAGE_BYTES];
        ck_ok(annal__state_page(state, page, bytes, err));
        ck_ok(annal__container_body_writer_whole(writer, (uint32_t)page - 1, bytes, err));
    }
    header->raw_bytes = count * SNAPSHOT_PAGE_BYTES;
    header->base_seq = header->base_hash = 0;
    ck_ok(annal__container_body_writer_end(writer, header, body, err));
    annal__container_body_writer_free(writer);
}

void plant_snapshot(annal_index *index, annal_slice session, uint64_t seq, const char *sql)
{
    struct storage shelf;
    struct shelf_row row;
    struct buf body = {0};
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    ck_ok(annal__storage_init(&shelf, index, session, NULL, 0, err));
    ck_ok(annal__storage_row(&shelf, seq, &row, err));
    ck_assert_uint_eq(row.seq, seq);
    ck_ok(annal__load_begin(index, session, seq, NULL, 0, &state, &cursor, err));
    ck_assert_uint_eq(annal_state_seq(state), seq);
    ck_assert_int_eq(sqlite3_db_config(state->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL), SQLITE_OK);
    ck_ok(annal__db_exec(state->db, sql, err));
    pack_image(state, &row.header, &body);
    ck_ok(annal__storage_put(&shelf, &row.header, NULL, annal__buf_slice(&body), 1000, err));
    annal__buf_done(&body);
    annal__storage_row_done(&row);
    annal_cursor_close(cursor);
    annal_state_free(state);
}
