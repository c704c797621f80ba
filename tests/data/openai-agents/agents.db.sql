CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, message_data TEXT, created_at TIMESTAMP);
CREATE TABLE turn_usage (id INTEGER PRIMARY KEY, session_id TEXT, branch_id TEXT, user_turn_number INTEGER, requests INTEGER,
    input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, input_tokens_details TEXT, output_tokens_details TEXT, created_at TEXT);
CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, branch_id TEXT, sequence_number INTEGER);
INSERT INTO agent_sessions VALUES ('tides', '2026-03-02 09:14:06', '2026-03-02 09:15:00');
INSERT INTO agent_messages (session_id, message_data, created_at) VALUES
    ('tides', '{"role":"user","content":"When is high water?"}', '2026-03-02 09:14:07'),
    ('tides', '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"the table"}]}', '2026-03-02 09:14:08'),
    ('tides', '{"type":"function_call","id":"fc_1","call_id":"call_1","name":"tide","arguments":"{\"at\":\"Brest\"}","status":"completed"}', '2026-03-02 09:14:08'),
    ('tides', '{"type":"function_call_output","call_id":"call_1","output":"14:05"}', '2026-03-02 09:14:09'),
    ('tides', '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"At 14:05."}]}', '2026-03-02 09:14:10'),
    ('tides', '{"role":"assist', '2026-03-02 09:14:11');
INSERT INTO turn_usage VALUES (1, 'tides', 'main', 1, 2, 500, 40, 540, '{"cached_tokens":300}', '{}', '2026-03-02 09:14:12');
INSERT INTO message_structure VALUES (1, 'tides', 1, 'main', 1);
