CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT, created_at TIMESTAMP, provider_name TEXT, model_config_json TEXT, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, model TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL, created_timestamp INTEGER);
INSERT INTO sessions VALUES ('20260302_1', 'High water', '/home/ada', '2026-03-02 09:14:06', 'anthropic', '{"model_name":"claude-opus-4-5"}', 700, 20),
    ('20260302_2', 'In the ledger', '/home/ada', '2026-03-02 10:14:06', 'anthropic', NULL, 900, 30),
    ('20260302_3', 'Nothing said', '/home/ada', '2026-03-02 11:14:06', 'anthropic', NULL, NULL, NULL);
INSERT INTO messages VALUES
    (1, 'msg_a', '20260302_1', 'user', '[{"type":"text","text":"When is high water?"}]', 1772442846);
INSERT INTO usage_ledger VALUES (1, '20260302_2', 'claude-opus-4-5', 900, 30, 0.25, 1772442850);
