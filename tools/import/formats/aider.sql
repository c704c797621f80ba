-- importer aider   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: note
-- files: .aider.chat.history.md *aider.chat.history.md
-- beside: .aider.input.history .aider.llm.history .aider.chat.history.md.*
-- places: $AIDER_CHAT_HISTORY_FILE ./.aider.chat.history.md ~/.aider.chat.history.md
--
-- The chat history of Aider, .aider.chat.history.md in the root of a project: Markdown, to which each run
-- of the program appends. docs/events.md lists the resulting events; annal/import.h describes the tables
-- that an importer can read.
--
-- The form was learnt from the program: Aider-AI/aider 0.86.2 (Apache-2.0: aider/io.py, base_coder.py). Messages,
-- edits, tokens and costs were compared with the 1133 runs in its tests/fixtures/chat-history.md.
--
--  (1) A run, from a line "# aider chat started at", is a session, named after its time. A run without a
--      further line has no session. The log has no other times, so each event of the session gets the
--      time of its run, which is read in the zone of the reader (TZ).
--  (2) "#### " begins a line of the user, "> " a note of the program; the rest is the assistant's. The
--      program ends each line of the first two with two spaces, which distinguishes them from a heading
--      "#### " or a quotation in an answer. In a log without these spaces, which was edited or written
--      by another program, the beginning of a line decides alone.
--  (3) A note may have several lines: the last ends with two spaces.
--  (4) A block of lines of equal kind is an event, once another kind follows, or the log is at rest. The id
--      has the position in the run and a hash of the text.
--  (5) The words of the user begin a turn. "Applied edit to" is a call of edit and its result; a refused
--      answer is a failed one. "^C" cancels a turn that has not been paid for.
--  (6) "Tokens:" counts a message, rounded by the program: to 100 above 1,000, to 1,000 above 10,000.

-- detect
SELECT max(CASE WHEN text GLOB '# aider chat started at [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*' THEN 95
           ELSE 0 END) FROM lines

-- text

-- once
-- kind, first: the block of lines that is open. open: a note continues on the next line. marks: lines of
-- the user and notes end with two spaces; seen: whether a line of the user was seen. begins, started: the
-- run. command: the user's words were a command; paid: the program counted tokens, ever_paid: in any turn.
CREATE TABLE file (what TEXT, kind TEXT, first INTEGER, open INTEGER, marks INTEGER, seen INTEGER, begins INTEGER, started TEXT, ts INTEGER,
                   session TEXT, made INTEGER, turn TEXT, turns INTEGER, command INTEGER, answered INTEGER, paid INTEGER, ever_paid INTEGER,
                   failed TEXT, model TEXT);
INSERT INTO file VALUES (NULL, NULL, 0, 0, 1, 0, 0, NULL, 1, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL);
CREATE TABLE block (n INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);

CREATE TABLE parts (type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT f.session, f.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1) || CASE WHEN NEW.data = '{}' THEN '' ELSE ',' END
           || CASE WHEN f.turn IS NULL OR NEW.type GLOB 'session.*' THEN '' ELSE '"turn_id":' || json_text(f.turn) || ',' END
           || '"source":' || json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n) || '}', NEW.n
    FROM file f, source s;
    DELETE FROM parts;
END;

-- The session begins with the first line of its run; text: this line.
CREATE TABLE opens (text TEXT, n INTEGER);
CREATE TRIGGER opening AFTER INSERT ON opens BEGIN
    UPDATE file SET session = log_session('aider' || coalesce('-' || replace(replace(started, ' ', '-'), ':', ''), ''),
                                          text_hash(coalesce(started, '') || NEW.text))
    WHERE NOT made;
    INSERT INTO parts
    SELECT 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', '"aider"', 'status', '"idle"',
                       'working_directory', (SELECT json_text(substr(value, 1, length(value) - length(s.file) - 1)) FROM options
                                             WHERE name = ':path' AND s.file = '.aider.chat.history.md' AND length(value) > length(s.file) + 1),
                       'extra', json_fields('started', json_text(f.started))), NEW.n
    FROM file f, source s WHERE NOT made;
    UPDATE file SET made = 1;
    DELETE FROM opens;
END;

-- The end of a turn: the next begins (next), the run is over, or the log is at rest.
CREATE TABLE ends (n INTEGER, next INTEGER);
CREATE TRIGGER ending AFTER INSERT ON ends BEGIN
    INSERT INTO parts
    SELECT CASE WHEN failed IS NULL THEN 'turn.completed' ELSE 'turn.failed' END, turn || '.ends',
           json_fields('reason', CASE WHEN failed IS NOT NULL THEN NULL WHEN answered THEN '"answered"' ELSE '"next_turn"' END,
                       'error', json_text(failed)), NEW.n
    FROM file WHERE turn IS NOT NULL AND (NEW.next OR answered OR failed IS NOT NULL);
    DELETE FROM ends;
END;

-- A note that tells of more. t: its text; i: its id; rest: the notes after it.
CREATE TABLE notes (n INTEGER, i TEXT, t TEXT, rest TEXT);
CREATE TRIGGER note AFTER INSERT ON notes BEGIN
    INSERT INTO parts
    SELECT 'session.updated', NEW.i, json_fields('set', json_fields('model', json_text(m))), NEW.n
    FROM (SELECT substr(t, 1, instr(t || ' ', ' ') - 1) AS m FROM (SELECT substr(NEW.t, instr(NEW.t, ': ') + 2) AS t)), file
    WHERE (NEW.t GLOB 'Main model: * with *' OR NEW.t GLOB 'Model: * with *' OR NEW.t GLOB 'Models: * with *') AND m IS NOT model;
    UPDATE file SET model = (SELECT substr(t, 1, instr(t || ' ', ' ') - 1) FROM (SELECT substr(NEW.t, instr(NEW.t, ': ') + 2) AS t))
    WHERE NEW.t GLOB 'Main model: * with *' OR NEW.t GLOB 'Model: * with *' OR NEW.t GLOB 'Models: * with *';
    INSERT INTO parts
    SELECT CASE k WHEN 0 THEN 'tool.called' ELSE CASE WHEN good THEN 'tool.returned' ELSE 'tool.failed' END END,
           NEW.i || CASE k WHEN 0 THEN '.call' ELSE '.result' END,
           json_fields('call_id', json_text(NEW.i), 'tool', CASE k WHEN 0 THEN '"edit"' END,
                       'input', CASE k WHEN 0 THEN json_fields('path', CASE WHEN good THEN json_text(substr(NEW.t, 17)) END) END,
                       'success', CASE k WHEN 1 THEN CASE WHEN good THEN 'true' ELSE 'false' END END,
                       'output', CASE k WHEN 1 THEN json_text(NEW.t || coalesce(char(10) || NEW.rest, '')) END), NEW.n
    FROM (SELECT 0 AS k UNION ALL SELECT 1), (SELECT NEW.t GLOB 'Applied edit to *' AS good)
    WHERE good OR NEW.t IN ('The LLM did not conform to the edit format.', 'Exception while updating files:');
    INSERT INTO parts
    SELECT 'agent.turn.usage', NEW.i || '.usage',
           json_fields('model', json_text(model), 'input_tokens', sum(CASE WHEN v GLOB '* sent' THEN number END),
                       'output_tokens', sum(CASE WHEN v GLOB '* received' THEN number END),
                       'cached_input_tokens', sum(CASE WHEN v GLOB '* cache hit' OR v GLOB '* cached' THEN number END),
                       'cache_write_tokens', sum(CASE WHEN v GLOB '* cache write' THEN number END),
                       'cost_usd', (SELECT substr(c, 1, instr(c, ' ') - 1) FROM (SELECT substr(NEW.t, instr(NEW.t, 'Cost: $') + 7) AS c)
                                    WHERE c GLOB '[0-9]*.[0-9]* *' AND CAST(c AS REAL) > 0 AND substr(c, 1, instr(c, ' ') - 1) NOT GLOB '*[^0-9.]*')), NEW.n
    FROM file, (SELECT v, CAST(round(CAST(replace(v, ',', '') AS REAL) * CASE WHEN v GLOB '[0-9.,]*k *' THEN 1000 ELSE 1 END) AS INTEGER) AS number
                FROM (SELECT e.value AS v
                      FROM json_each('["' || replace(substr(NEW.t, 9, instr(NEW.t, ' received') - 0), ', ', '","') || '"]') e))
    WHERE NEW.t GLOB 'Tokens: [0-9]* sent*[0-9] received*' OR NEW.t GLOB 'Tokens: [0-9]* sent*k received*'
    HAVING count(*) > 0;
    UPDATE file SET answered = 1, paid = 1, ever_paid = 1, failed = NULL WHERE NEW.t GLOB 'Tokens: [0-9]* sent* received*';
    UPDATE file SET failed = NEW.t
    WHERE turn IS NOT NULL AND (NEW.t GLOB '*litellm*Error: *' OR NEW.t GLOB 'Empty response received from LLM*');
    INSERT INTO parts
    SELECT 'turn.cancelled', turn || '.ends', json_fields('reason', '"interrupted"'), NEW.n FROM file
    WHERE turn IS NOT NULL AND NEW.t GLOB '^C *' AND NOT paid AND (ever_paid OR NOT answered);
    UPDATE file SET turn = NULL WHERE NEW.t GLOB '^C *' AND NOT paid AND (ever_paid OR NOT answered);
    DELETE FROM notes;
END;

-- A block is complete.
CREATE TABLE closes (n INTEGER);
CREATE TRIGGER closing AFTER INSERT ON closes BEGIN
    INSERT INTO opens SELECT text, n FROM block ORDER BY n LIMIT 1;
    UPDATE block SET text = substr(text, 1, length(text) - 2) WHERE text GLOB '*  ' AND (SELECT f.kind FROM file f) <> 'assistant';
    UPDATE block SET text = substr(text, 6) WHERE (SELECT f.kind FROM file f) = 'user';
    INSERT INTO ends SELECT first, 1 FROM file WHERE kind = 'user';
    UPDATE file SET turn = NULL WHERE kind = 'user';
    INSERT INTO whole
    SELECT f.kind, 'l' || (f.first - f.begins) || '.' || text_hash(t), t, f.first
    FROM file f, (SELECT rtrim(group_concat(text, char(10)), ' ' || char(10)) AS t
                  FROM (SELECT CASE WHEN text GLOB '> *' AND (SELECT g.kind FROM file g) = 'note' THEN substr(text, 3) ELSE text END AS text
                        FROM block ORDER BY n));
    INSERT INTO notes
    SELECT n, i, t, rest
    FROM (SELECT b.n, 'l' || (b.n - f.begins) || '.' || text_hash(b.text) AS i,
                 rtrim(substr(b.text, 3) || coalesce((SELECT ' ' || c.text FROM block c WHERE c.n = b.n + 1 AND c.text GLOB 'Cost: *'), '')) AS t,
                 CASE WHEN b.text GLOB '> The LLM did not *' OR b.text GLOB '> Exception while *'
                      THEN (SELECT group_concat(text, char(10)) FROM (SELECT CASE WHEN c.text GLOB '> *' THEN substr(c.text, 3) ELSE c.text END AS text
                                                                     FROM block c WHERE c.n > b.n ORDER BY c.n)) END AS rest
          FROM block b, file f WHERE f.kind = 'note' AND b.text GLOB '> *')
    WHERE t GLOB 'Applied edit to *' OR t GLOB 'Main model: *' OR t GLOB 'Model*: *' OR t GLOB 'Tokens: *' OR t GLOB '^C *' OR t GLOB '*litellm*Error: *'
       OR t GLOB 'Empty response received *' OR t GLOB 'The LLM did not conform *' OR t GLOB 'Exception while updating files:*'
    ORDER BY n;
    UPDATE file SET kind = NULL;
    DELETE FROM block;
    DELETE FROM closes;
END;

-- t: the text of a complete block, i: its id.
CREATE TABLE whole (kind TEXT, i TEXT, t TEXT, n INTEGER);
CREATE TRIGGER whole_block AFTER INSERT ON whole BEGIN
    UPDATE file SET turn = NEW.i, turns = turns + 1, answered = 0, paid = 0, failed = NULL, command = NEW.t GLOB '[/!]*' WHERE NEW.kind = 'user';
    INSERT INTO parts
    SELECT 'turn.started', NEW.i || '.begins', json_fields('sequence', turns, 'status', '"running"', 'prompt_ref', json_text(NEW.i)), NEW.n
    FROM file WHERE NEW.kind = 'user';
    INSERT INTO parts
    SELECT CASE NEW.kind WHEN 'note' THEN 'import.record' ELSE 'message.added' END, NEW.i,
           CASE NEW.kind WHEN 'note' THEN json_fields('kind', '"note"', 'extra', json_fields('text', json_text(NEW.t)))
           ELSE json_fields('id', json_text(NEW.i), 'role', json_text(NEW.kind), 'content', json_text(NEW.t),
                            'model', CASE NEW.kind WHEN 'assistant' THEN json_text(model) END) END, NEW.n FROM file;
    UPDATE file SET answered = 1, failed = CASE NEW.kind WHEN 'assistant' THEN NULL ELSE failed END
    WHERE NEW.kind = 'assistant' OR NEW.kind = 'note' AND command;
    DELETE FROM whole;
END;

CREATE TRIGGER line AFTER INSERT ON lines WHEN NEW.text IS NOT NULL BEGIN
    UPDATE file SET what = CASE
        WHEN NEW.text GLOB '# aider chat started at [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*' THEN 'start'
        WHEN NEW.text GLOB '#### *' AND (NEW.text GLOB '*  ' OR NOT marks OR NOT seen AND NOT open) THEN 'user'
        WHEN trim(NEW.text, ' ' || char(9)) = '' AND NOT open THEN 'blank'
        WHEN NEW.text GLOB '> *' AND (NEW.text GLOB '*  ' OR NOT marks OR kind IS NOT 'assistant' OR NEW.text GLOB '> Tokens: [0-9]*') THEN 'note'
        WHEN open THEN 'more' ELSE 'assistant' END;
    INSERT INTO closes
    SELECT NEW.n FROM file
    WHERE kind IS NOT NULL AND (what = 'start' OR what = 'blank' AND kind = 'user' OR what IN ('user', 'note', 'assistant') AND what <> kind);
    INSERT INTO ends SELECT NEW.n, 0 FROM file WHERE what = 'start';
    UPDATE file SET begins = NEW.n, started = substr(NEW.text, 25, 19), session = NULL, made = 0, turn = NULL, turns = 0, answered = 0, command = 0, model = NULL,
        ts = coalesce(time_us(substr(NEW.text, 25, 19)) + 1000000 * coalesce(unixepoch(substr(NEW.text, 25, 19), 'utc') - unixepoch(substr(NEW.text, 25, 19)), 0), 1)
    WHERE what = 'start';
    UPDATE file SET kind = what, first = NEW.n WHERE kind IS NULL AND what IN ('user', 'note', 'assistant');
    INSERT INTO block SELECT NEW.n, NEW.text FROM file WHERE kind IS NOT NULL AND what <> 'start' AND NOT (what = 'blank' AND kind = 'note');
    UPDATE file SET marks = CASE WHEN what = 'user' THEN NEW.text GLOB '*  ' WHEN what = 'note' AND open THEN 0 ELSE marks END,
                    seen = seen OR what = 'user';
    UPDATE file SET open = what IN ('note', 'more') AND marks AND NEW.text NOT GLOB '*  ';
END;
CREATE TRIGGER unreadable AFTER INSERT ON lines WHEN NEW.unreadable IS NOT NULL BEGIN
    INSERT INTO opens VALUES ('', NEW.n);
    INSERT INTO parts VALUES ('import.unreadable', NEW.hash, NEW.unreadable, NEW.n);
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;

-- end
INSERT INTO closes SELECT first FROM file WHERE kind IS NOT NULL;
INSERT INTO ends SELECT first, 0 FROM file WHERE answered AND failed IS NULL;
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;
