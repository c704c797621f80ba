/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events that SQLite and Turso have, and what is asked of it. */
#pragma once

#define EVENTS_TABLE                                                                               \
    "CREATE TABLE IF NOT EXISTS events (session TEXT NOT NULL, seq INTEGER NOT NULL, ts INTEGER "  \
    "NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (session, seq))"
#define EVENTS_INDEX  "CREATE INDEX IF NOT EXISTS by_type ON events (type, ts)"
#define EVENTS_INSERT "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)"
#define EVENTS_SELECT                                                                              \
    "SELECT seq, ts, type, data FROM events WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT "  \
    "?3"
#define EVENTS_FIND                                                                                \
    "SELECT session, seq, ts, data FROM events WHERE type = ?1 AND ts >= ?2 AND ts < ?3 ORDER BY " \
    "ts"
#define EVENTS_COUNT "SELECT count(*) FROM events WHERE type = ?1"
