#include "tests/support/runner.h"

Suite *suite_alloc(void);
Suite *suite_base64(void);
Suite *suite_bell(void);
Suite *suite_buf(void);
Suite *suite_catalogue(void);
Suite *suite_checkpoint(void);
Suite *suite_clock(void);
Suite *suite_codec(void);
Suite *suite_commit(void);
Suite *suite_context(void);
Suite *suite_convert(void);
Suite *suite_cursor(void);
Suite *suite_data(void);
Suite *suite_draft(void);
Suite *suite_error(void);
Suite *suite_event_at(void);
Suite *suite_failure(void);
Suite *suite_adopt(void);
Suite *suite_fork(void);
Suite *suite_format(void);
Suite *suite_frame_json(void);
Suite *suite_frame_msgpack(void);
Suite *suite_hash(void);
Suite *suite_held(void);
Suite *suite_ids(void);
Suite *suite_io(void);
Suite *suite_json(void);
Suite *suite_keeper(void);
Suite *suite_layout(void);
Suite *suite_limits(void);
Suite *suite_log(void);
Suite *suite_long(void);
Suite *suite_loose(void);
Suite *suite_metrics(void);
Suite *suite_msgpack(void);
Suite *suite_news(void);
Suite *suite_number(void);
Suite *suite_process(void);
Suite *suite_recover(void);
Suite *suite_repair(void);
Suite *suite_replace(void);
Suite *suite_scan(void);
Suite *suite_scenarios(void);
Suite *suite_seek(void);
Suite *suite_session(void);
Suite *suite_sha256(void);
Suite *suite_slot(void);
Suite *suite_store(void);
Suite *suite_time(void);
Suite *suite_unseen(void);
Suite *suite_verify(void);
Suite *suite_writer(void);

static Suite *(*const suites[])(void) = {
    suite_alloc,
    suite_base64,
    suite_bell,
    suite_buf,
    suite_catalogue,
    suite_checkpoint,
    suite_clock,
    suite_codec,
    suite_commit,
    suite_context,
    suite_convert,
    suite_cursor,
    suite_data,
    suite_draft,
    suite_error,
    suite_event_at,
    suite_failure,
    suite_fork,
    suite_adopt,
    suite_format,
    suite_frame_json,
    suite_frame_msgpack,
    suite_hash,
    suite_held,
    suite_ids,
    suite_io,
    suite_json,
    suite_keeper,
    suite_layout,
    suite_limits,
    suite_log,
    suite_long,
    suite_loose,
    suite_metrics,
    suite_msgpack,
    suite_news,
    suite_number,
    suite_process,
    suite_recover,
    suite_repair,
    suite_replace,
    suite_scan,
    suite_scenarios,
    suite_seek,
    suite_session,
    suite_sha256,
    suite_slot,
    suite_store,
    suite_time,
    suite_unseen,
    suite_verify,
    suite_writer,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
