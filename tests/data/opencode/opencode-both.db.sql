CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
    time_created INTEGER, time_updated INTEGER);
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT NOT NULL, title TEXT, version TEXT,
    time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, time_updated INTEGER, data TEXT);
INSERT INTO session VALUES ('ses_b', 'p', NULL, '/home/ada', 'Sails', '1.17.11', 1789400000000, 1789400060000);
INSERT INTO session_v2 VALUES ('ses_b', 'p', NULL, '/home/ada', 'Sails', '2.0.1', 1789400000000, 1789400060000);
INSERT INTO message VALUES
    ('msg_1', 'ses_b', 1789400000000, 1789400000000, '{"role":"user","time":{"created":1789400000000}}'),
    ('msg_2', 'ses_b', 1789400001000, 1789400002000, '{"role":"assistant","parentID":"msg_1","modelID":"glm-5","finish":"stop","cost":0.5,"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":0}},"time":{"created":1789400001000,"completed":1789400002000}}'),
    ('msg_3', 'ses_b', 1789400010000, 1789400010000, '{"role":"user","time":{"created":1789400010000}}');
INSERT INTO part VALUES
    ('prt_1', 'msg_1', 'ses_b', 1, 1, '{"type":"text","text":"Hoist the sails."}'),
    ('prt_2', 'msg_2', 'ses_b', 1, 1, '{"type":"text","text":"Hoisted."}'),
    ('prt_3', 'msg_3', 'ses_b', 1, 1, '{"type":"text","text":"And strike them."}');
INSERT INTO session_message VALUES
    ('msg_1', 'ses_b', 'user', 1, 1789400000000, 1789400000000, '{"text":"Hoist the sails.","time":{"created":1789400000000}}'),
    ('evt_2', 'ses_b', 'assistant', 2, 1789400001200, 1789400002000, '{"model":{"id":"glm-5","providerID":"zai"},"content":[{"type":"text","text":"Hoisted."}],"finish":"stop","cost":0.5,"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":0}},"time":{"created":1789400001200,"completed":1789400002000}}'),
    ('evt_3', 'ses_b', 'user', 3, 1789400010300, 1789400010300, '{"text":"And strike them.","time":{"created":1789400010300}}'),
    ('evt_4', 'ses_b', 'assistant', 4, 1789400011000, 1789400012000, '{"model":{"id":"glm-5","providerID":"zai"},"content":[{"type":"text","text":"Struck."}],"finish":"stop","cost":0.5,"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":0}},"time":{"created":1789400011000,"completed":1789400012000}}');
