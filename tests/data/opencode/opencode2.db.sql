PRAGMA journal_mode = WAL;
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT NOT NULL, title TEXT, version TEXT,
    cost REAL, tokens_input INTEGER, tokens_output INTEGER, agent TEXT, model TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, time_updated INTEGER, data TEXT);
INSERT INTO project VALUES ('p', '/home/ada/pier');
INSERT INTO session_v2 VALUES ('ses_2', 'p', NULL, '/home/ada/pier', 'Ropes', '2.0.3', 0.5, 60, 9, 'build',
    '{"id":"glm-5","providerID":"zai"}', 1789300000000, 1789300040000);
INSERT INTO session_message VALUES
    ('m1', 'ses_2', 'user', 1, 1789300000000, 1789300000000, '{"text":"Coil the ropes.","files":[{"uri":"file:///knot.png","mime":"image/png"}],"time":{"created":1789300000000}}'),
    ('m2', 'ses_2', 'assistant', 2, 1789300001000, 1789300002000, '{"model":{"id":"glm-5","providerID":"zai"},"content":[{"type":"reasoning","text":"Two ropes."},{"type":"tool","id":"t1","name":"bash","state":{"status":"error","input":{"command":"coil"},"error":{"type":"unknown","message":"no such rope"}},"time":{"created":1789300001100,"ran":1789300001200,"completed":1789300001700}}],"finish":"tool-calls","tokens":{"input":20,"output":3,"reasoning":1,"cache":{"read":10,"write":5}},"cost":0.25,"time":{"created":1789300001000,"completed":1789300002000}}'),
    ('m3', 'ses_2', 'model-switched', 3, 1789300003000, 1789300003000, '{"model":{"id":"glm-6","providerID":"zai"},"time":{"created":1789300003000}}'),
    ('m4', 'ses_2', 'shell', 4, 1789300004000, 1789300005000, '{"shellID":"sh1","command":"ls","status":"exited","exit":2,"output":{"text":"no pier"},"time":{"created":1789300004000,"completed":1789300005000}}'),
    ('m5', 'ses_2', 'compaction', 5, 1789300006000, 1789300007000, '{"status":"completed","reason":"auto","summary":"The ropes were looked for.","recent":"","tokens":{"input":7,"output":2,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1789300006000}}'),
    ('m6', 'ses_2', 'synthetic', 6, 1789300008000, 1789300008000, 'no json'),
    ('m7', 'ses_2', 'idle', 7, 1789300009000, 1789300009000, '{"outcome":"interrupted","time":{"created":1789300009000}}');
