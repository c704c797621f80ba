PRAGMA journal_mode = WAL;
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
-- {"v":1,"ts":"2026-03-02T09:14:06Z","channel_values":{"messages":[ext 5 of ["m","HumanMessage",{"type":"human","content":"When is high water?","id":"h1"}]]}}
INSERT INTO checkpoints VALUES ('tides', '', '1f0a', NULL, 'msgpack',
    CAST(X'83A17601A27473B4323032362D30332D30325430393A31343A30365AAE6368616E6E656C5F76616C75657381A86D65737361' || 
    X'67657391C73E0593A16DAC48756D616E4D65737361676583A474797065A568756D616EA7636F6E74656E74B35768656E2069' || 
    X'7320686967682077617465723FA26964A26831' AS BLOB), '{"source":"input","step":-1}');
INSERT INTO checkpoints VALUES ('tides', '', '1f0b', '1f0a', 'json',
    '{"v":1,"ts":"2026-03-02T09:14:08Z","channel_values":{"messages":[{"type":"human","content":"When is high water?","id":"h1"},{"type":"ai","content":"I look.","id":"a1","tool_calls":[{"name":"tide","args":{"at":"Brest"},"id":"call_1"}],"usage_metadata":{"input_tokens":70,"output_tokens":8,"total_tokens":78,"input_token_details":{"cache_read":40}}},{"type":"tool","content":"14:05","id":"t1","tool_call_id":"call_1","status":"success"}]}}',
    '{"source":"loop","step":1}');
INSERT INTO checkpoints VALUES ('tides', 'sub', '1f0c', NULL, 'pickle', X'80049503000000000000004B012E', '{"source":"loop","step":2}');
INSERT INTO writes VALUES ('tides', '', '1f0b', 'task1', 0, 'messages', 'msgpack', X'A26F6B');
