-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun note   "stars, names, tags and notes on sessions and events"

-- verb note star   appends note.starred   "give a session or an event a star"
--   SESSION    text     "the session, or SESSION:SEQ for an event"
--   --by NAME  text by  "who gives it"
--   says     {SESSION} has a star
--   about    'annal ls --starred' lists the sessions that have a star.
--   example  annal note star sess_1
--            annal note star sess_1:12

-- verb note unstar   appends note.unstarred   "remove the star"
--   SESSION    text     "the session, or SESSION:SEQ for an event"
--   --by NAME  text by  "who removes it"
--   says     {SESSION} has no star
--   about    Refused if the star does not exist.
--   example  annal note unstar sess_1

-- verb note name   appends note.named   "give a session a name"
--   SESSION    text       "the session"
--   NAME       text name  "the name, a line"
--   --by NAME  text by    "who gives it"
--   says     {SESSION} is called {name}
--   about    Lists show the name in the place of the title, which stays in --json.
--   example  annal note name sess_1 "the login bug"

-- verb note unname   appends note.named   "remove the name of a session"
--   SESSION    text     "the session"
--   --by NAME  text by  "who removes it"
--   name = null
--   says     {SESSION} has no name
--   about    Lists show its title again.
--   example  annal note unname sess_1

-- verb note tag   appends note.tagged   "tag a session or an event"
--   SESSION    text      "the session, or SESSION:SEQ for an event"
--   TAG        text tag  "a word"
--   --by NAME  text by   "who tags it"
--   says     {SESSION} has the tag {tag}
--   about    'annal ls --tag TAG' lists the sessions that have the tag, or an event with it.
--   example  annal note tag sess_1 flaky

-- verb note untag   appends note.untagged   "remove a tag"
--   SESSION    text      "the session, or SESSION:SEQ for an event"
--   TAG        text tag  "the tag"
--   --by NAME  text by   "who removes it"
--   says     {SESSION} no longer has the tag {tag}
--   about    Refused if the tag does not exist.
--   example  annal note untag sess_1 flaky

-- verb note add   appends note.written   "write a note on a session or an event"
--   SESSION         text         "the session, or SESSION:SEQ for an event"
--   TEXT            body text    "the note; - reads standard input"
--   --replace NOTE  number note  "number of the note whose text it replaces"
--   --by NAME       text by      "who writes it"
--   says     note {seq} is written
--   about    A note on an event contains the event's id and the hash of its line, so that it
--            can be shown later to be of this event. 'annal search' finds the words of notes.
--   example  annal note add sess_1 "here it gave up too early"
--            annal note add sess_1:12 "the wrong file" --by ada
--            annal note add sess_1 "here it was right" --replace 3

-- verb note remove   appends note.removed   "remove a note"
--   SESSION    text         "the session"
--   NOTE       number note  "number of the note; 'annal note ls' prints it"
--   --by NAME  text by      "who removes it"
--   says     note {note} is removed
--   about    Its text stays in the journal: 'annal note undo' restores it, and 'annal
--            delete notes_SESSION' deletes all notes on the session permanently.
--   example  annal note remove sess_1 3

-- verb note undo   appends note.undone   "undo a change of stars, names, tags or notes"
--   SESSION        text           "the session"
--   --change SEQ   number undoes  "number of the change (the last one)"
--   --by NAME      text by        "who undoes it"
--   says     change {undoes} is undone
--   about    Once more undoes the change before. 'annal note log' prints the changes.
--   example  annal note undo sess_1
--            annal note undo sess_1 --change 4

-- verb note ls   selects   "list what is noted"
--   [SESSION]  text  "the session, or its first letters (all)"
--   --tag TAG  text  "only what has this tag"
--   about    Stars, names, tags and notes, a row each: of a session, or of an event if
--            event_seq is not 0. note is the number of a note.
--   example  annal note ls
--            annal note ls sess_1 --json
SELECT t.session_id, nullif(t.event_seq, 0) AS event_seq, t.kind,
       CASE kind WHEN 'note' THEN CAST(t.item AS INTEGER) END AS note,
       CASE kind WHEN 'tag' THEN t.item WHEN 'star' THEN NULL ELSE t.value END AS text,
       t.by, t.changed_at
FROM annotations.note_things t
WHERE (?1 IS NULL OR t.session_id = ?1
       OR length(?1) >= 4 AND substr(t.session_id, 1, length(?1)) = ?1)
  AND (?2 IS NULL OR EXISTS (SELECT 1 FROM annotations.tags g WHERE g.session_id = t.session_id
                                                    AND g.event_seq = t.event_seq AND g.tag = ?2))
ORDER BY t.session_id, t.event_seq, t.kind <> 'star', t.kind <> 'name', t.kind <> 'tag', t.seq;

-- verb note log   selects   "list the changes, the last one first"
--   [SESSION]   text         "the session, or its first letters (all)"
--   --limit N   number = 50 (1..4294967295)  "maximum number of changes (50)"
--   about    change is the number for 'annal note undo --change'; undone is the number of the
--            event that undid the change.
--   example  annal note log sess_1
SELECT session_id, seq AS change, changed_at, kind, nullif(event_seq, 0) AS event_seq,
       CASE kind WHEN 'tag' THEN iif(value IS NULL, '- ', '+ ') || item
                 WHEN 'star' THEN iif(value IS NULL, '-', '+')
                 ELSE coalesce(value, '-') END AS what, by, undone
FROM annotations.note_changes
WHERE ?1 IS NULL OR session_id = ?1
   OR length(?1) >= 4 AND substr(session_id, 1, length(?1)) = ?1
ORDER BY changed_at DESC, session_id, seq DESC
LIMIT ?2;
