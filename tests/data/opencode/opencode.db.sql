PRAGMA journal_mode = WAL;
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
    time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
INSERT INTO project VALUES ('global', '/');
INSERT INTO session VALUES ('ses_a', 'global', NULL, '/home/ada', 'High water', '1.17.11', 1772442846000, 1772442900000),
    ('ses_b', 'global', 'ses_a', '/home/ada', 'its helper', '1.17.11', 1772442850000, 1772442900000);
INSERT INTO message VALUES
    ('msg_1', 'ses_a', 1772442846100, 1772442846100, '{"role":"user","time":{"created":1772442846100}}'),
    ('msg_2', 'ses_b', 1772442850100, 1772442850100, '{"role":"user","time":{"created":1772442850100}}'),
    ('msg_3', 'ses_b', 1772442851000, 1772442852000, '{"role":"assistant","parentID":"msg_2","modelID":"glm-5","cost":0.5,"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":0}},"time":{"created":1772442851000,"completed":1772442852000}}'),
    ('msg_4', 'ses_b', 1772442853000, 1772442853000, 'no json');
INSERT INTO part VALUES
    ('prt_1', 'msg_1', 'ses_a', 1, 1, '{"type":"text","text":"When is high water?"}'),
    ('prt_2', 'msg_2', 'ses_b', 1, 1, '{"type":"text","text":"Read the table."}'),
    ('prt_3', 'msg_3', 'ses_b', 1, 1, '{"type":"tool","tool":"bash","callID":"c1","state":{"status":"running","input":{"command":"ls"},"time":{"start":1772442851100}}}');
