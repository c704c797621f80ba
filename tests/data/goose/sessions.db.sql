CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT, created_at TIMESTAMP, provider_name TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, model TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL, created_timestamp INTEGER);
CREATE TABLE schema_version (version INTEGER);
INSERT INTO schema_version VALUES (7);
INSERT INTO sessions VALUES ('20260302_1', 'High water', '/home/ada', '2026-03-02 09:14:06', 'anthropic', '{"model_name":"claude-opus-4-5"}');
INSERT INTO messages VALUES
    (1, 'msg_a', '20260302_1', 'user', '[{"type":"text","text":"When is high water?"}]', 1772442846),
    (2, 'msg_b', '20260302_1', 'assistant', '[{"type":"text","text":"I look."},{"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"cat tides.txt"}}}}]', 1772442847000),
    (3, 'msg_c', '20260302_1', 'user', '[{"type":"toolResponse","id":"t1","toolResult":{"status":"error","error":"no such file"}}]', 1772442848),
    (4, 'msg_d', '20260302_1', 'assistant', 'broken [', 1772442849);
INSERT INTO usage_ledger VALUES (1, '20260302_1', 'claude-opus-4-5', 900, 30, 0.25, 1772442850);
