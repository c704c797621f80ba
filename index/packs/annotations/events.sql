-- SPDX-License-Identifier: Apache-2.0
-- ---- Events and guards ----

-- on note.starred, note.unstarred, note.named, note.tagged, note.untagged, note.written, note.removed, note.undone   guarded "notes belong to a session notes_ID, where ID is the session that they are about"
SELECT 1 WHERE :session GLOB 'notes_?*';

-- on note.starred, note.unstarred, note.tagged, note.untagged, note.written   guarded "event_seq must be the seq of an event"
SELECT 1 WHERE json_type(:data, '$.event_seq') IS NULL
            OR json_type(:data, '$.event_seq') = 'integer' AND $event_seq > 0;

-- on note.starred, note.unstarred, note.named, note.tagged, note.untagged, note.written, note.removed, note.undone   guarded "by must be a text of at most 200 characters"
SELECT 1 WHERE coalesce(json_type(:data, '$.by'), 'null') = 'null'
            OR json_type(:data, '$.by') = 'text' AND length($by) <= 200;

-- on note.starred   guarded "it has a star already"
INSERT INTO note_changes
SELECT substr(:session, 7), :seq, :ts, 'star', annal_count($event_seq), '', '1', $event_id,
       $event_hash, $by, NULL
WHERE :session GLOB 'notes_?*'
  AND NOT EXISTS (SELECT 1 FROM stars WHERE session_id = substr(:session, 7)
                                        AND event_seq = annal_count($event_seq));

-- on note.unstarred   guarded "it has no star"
INSERT INTO note_changes
SELECT session_id, :seq, :ts, 'star', event_seq, '', NULL, NULL, NULL, $by, NULL
FROM stars WHERE session_id = substr(:session, 7) AND event_seq = annal_count($event_seq);

-- on note.named   guarded "a name is a line of 1 to 200 characters, without control characters"
SELECT 1 WHERE coalesce(json_type(:data, '$.name'), 'null') = 'null'
            OR json_type(:data, '$.name') = 'text' AND length($name) <= 200 AND trim($name) <> ''
               AND $name NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-'
                                  || char(159) || ']*';

-- on note.named   guarded "the session has this name already, or none"
INSERT INTO note_changes
SELECT substr(:session, 7), :seq, :ts, 'name', 0, '', substr($name, 1, 200), NULL, NULL, $by, NULL
WHERE :session GLOB 'notes_?*'
  AND $name IS NOT (SELECT name FROM names WHERE session_id = substr(:session, 7));

-- on note.tagged   guarded "a tag is 1 to 64 characters, without spaces and control characters"
SELECT 1 WHERE json_type(:data, '$.tag') = 'text' AND length($tag) BETWEEN 1 AND 64
           AND $tag NOT GLOB '*[' || char(1) || '-' || char(32) || char(127) || '-' || char(160)
                             || ']*';

-- on note.tagged   guarded "it has this tag already"
INSERT INTO note_changes
SELECT substr(:session, 7), :seq, :ts, 'tag', annal_count($event_seq), substr($tag, 1, 64), '1',
       $event_id, $event_hash, $by, NULL
WHERE :session GLOB 'notes_?*' AND $tag <> ''
  AND NOT EXISTS (SELECT 1 FROM tags WHERE session_id = substr(:session, 7)
                                       AND event_seq = annal_count($event_seq) AND tag = $tag);

-- on note.untagged   guarded "it does not have this tag"
INSERT INTO note_changes
SELECT session_id, :seq, :ts, 'tag', event_seq, tag, NULL, NULL, NULL, $by, NULL
FROM tags
WHERE session_id = substr(:session, 7) AND event_seq = annal_count($event_seq) AND tag = $tag;

-- on note.written   guarded "a note is a text of 1 to 65,536 characters"
SELECT 1 WHERE json_type(:data, '$.text') = 'text' AND length($text) <= 65536
           AND trim($text, char(9, 10, 13, 32)) <> '';

-- on note.written   guarded "the note does not exist"
SELECT 1 WHERE coalesce(json_type(:data, '$.note'), 'null') = 'null'
            OR EXISTS (SELECT 1 FROM notes WHERE session_id = substr(:session, 7) AND note = $note);

-- A note with the number of an older note replaces its text.

-- on note.written
INSERT INTO note_changes
SELECT substr(:session, 7), :seq, :ts, 'note', coalesce(o.event_seq, annal_count($event_seq)),
       coalesce(o.note, :seq), $text, coalesce(o.event_id, $event_id),
       coalesce(o.event_hash, $event_hash), $by, NULL
FROM (SELECT 1) LEFT JOIN notes o ON o.session_id = substr(:session, 7) AND o.note = $note
WHERE :session GLOB 'notes_?*' AND trim($text) <> '';

-- on note.removed   guarded "the note does not exist"
INSERT INTO note_changes
SELECT session_id, :seq, :ts, 'note', event_seq, note, NULL, event_id, event_hash, $by, NULL
FROM notes WHERE session_id = substr(:session, 7) AND note = $note;

-- Without a number, the last change is undone.

-- fill note.undone
SELECT max(seq) AS undoes FROM note_changes
WHERE session_id = substr(:session, 7) AND undone IS NULL;

-- on note.undone   guarded "the change does not exist, or it is undone already"
UPDATE note_changes SET undone = :seq
WHERE session_id = substr(:session, 7) AND seq = $undoes AND undone IS NULL;

-- forget
DELETE FROM note_changes WHERE session_id = substr(:session, 7);
