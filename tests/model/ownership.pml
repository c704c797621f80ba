/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may write a session, and what every crash leaves: a model of the commit log's ownership rules for
 * SPIN. It is the protocol of journal/slot.h, recover.h, commit.h and replace.h without its bytes; rule
 * numbers are the commit log's.
 *
 * Two processes share one session. Each has a slot (a commit log with two regions, a lock, a held
 * list), appends at level sync or os, releases the session, closes, replaces or deletes the journal. At any moment
 * a process is killed, and its locks come free one after the other; or the power is cut, and of what
 * was not synced any part is kept. A sync of the log fails, and the group is voided.
 *
 * (1) A journal is a row of cells, one event each; 0 is a cell whose bytes do not prove themselves, and
 *     PIECE the beginning of a line. An event remembers the event before it, which stands for the hash
 *     chain.
 * (2) What the page cache has and what the disk has are kept apart: for cells and length, for names, for
 *     the one group that is being written.
 * (3) A step is one system call, or a row of them that nobody else can see between.
 * (4) After every taking of the session, check() asks: is every acknowledged event in its place, no
 *     refused one anywhere, no hole, and does every event stand behind the one that it was appended to?
 *
 * Sizes come from run.sh, as do the mutations: BREAK_* leaves one rule out, and then SPIN has to find
 * the way to lose an event. A model in which nothing can go wrong proves nothing.
 */

#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef CHANGES
#define CHANGES 0
#endif
#ifndef LEAVES
#define LEAVES 1
#endif

#define PROCESSES 2
#define FILES     4 /* ids; 0 is no file */
#define NO_SLOT   SLOTS
#define PIECE     254
#define GROUPS    4 /* of a slot: two regions of one group and one block kept for an empty group */
#define ZOMBIE    255

/* States of a slot, as its held list has them. */
#define UNKNOWN 0
#define EMPTY   1
#define OWNED   2

typedef Group {
    byte epoch; /* 0: does not verify */
    byte group;
    byte released;
    byte file;
    byte offset;
    byte count; /* of events; 0: an empty group, or a mark */
    byte first;
    byte second;
    byte before; /* the event before the first */
    bit mark     /* from offset on the journal may hold bytes that no sync covered */
}

typedef Slot {
    bit there;  /* the log has a name */
    bit thereD; /* the same, on the disk */
    byte lock;  /* 0, process + 1, or ZOMBIE: its process is dead and the kernel has not let go yet */
    byte state;
    bit bound; /* the held list speaks of this boot */
    bit alone; /* the log is of another boot, and was not recovered since */
    bit held;  /* it names the session */
    byte end_epoch;
    byte end_group;
    Group g[GROUPS];
    byte unsynced; /* index + 1 of the group that is written and not synced */
    bit failed;    /* its sync failed: the cache shows what the disk may not have */
    Group old;     /* what the disk has in its place */
    byte voidC;    /* groups >= this never happened; in the cache, on the disk */
    byte voidD
}

typedef File {
    byte c[EVENTS]; /* in the page cache */
    byte d[EVENTS]; /* on the disk */
    byte lenC;
    byte lenD
}

Slot slot[SLOTS];
File file[FILES];
byte nameC, nameD;                      /* the file that the journal's name stands for */
bit goneC[FILES], goneD[FILES];         /* tombstones */
bit freshC[FILES], freshD[FILES];       /* a second journal, until one name goes */
byte claim, recovery, structure;        /* locks: 0, process + 1, or ZOMBIE */
bit dead[PROCESSES];                    /* killed, and has not noticed yet */
byte next_event = 1;
byte next_file = 1;
byte acked[EVENTS + 1];                 /* place + 1, when the answer was "durable" */
bit refused[EVENTS + 1];
byte before[EVENTS + 1];                /* the event that it was appended to */
byte kills = KILLS, cuts = CUTS, fails = FAILS, changes = CHANGES, leaves = LEAVES;

/* ---- The disk ---- */

inline sync_file(f)
{
    i = 0;
    do
    :: i < EVENTS -> file[f].d[i] = file[f].c[i]; i++
    :: else -> break
    od;
    file[f].lenD = file[f].lenC;
    i = 0
}

inline sync_names()
{
    nameD = nameC;
    i = 1;
    do
    :: i < FILES -> goneD[i] = goneC[i]; freshD[i] = freshC[i]; i++
    :: else -> break
    od;
    i = 0
}

/* Macros, because a parameter of an inline cannot be taken apart. */
#define copy_group(to, from)                                                            \
    to.epoch = from.epoch;                                                              \
    to.group = from.group;                                                              \
    to.released = from.released;                                                        \
    to.file = from.file;                                                                \
    to.offset = from.offset;                                                            \
    to.count = from.count;                                                              \
    to.first = from.first;                                                              \
    to.second = from.second;                                                            \
    to.before = from.before;                                                            \
    to.mark = from.mark

#define clear_group(g_)                                                                 \
    g_.epoch = 0;                                                                       \
    g_.group = 0;                                                                       \
    g_.released = 0;                                                                    \
    g_.file = 0;                                                                        \
    g_.offset = 0;                                                                      \
    g_.count = 0;                                                                       \
    g_.first = 0;                                                                       \
    g_.second = 0;                                                                      \
    g_.before = 0;                                                                      \
    g_.mark = 0

/* What the disk has in the place of a group whose sync did not return 0: the new, the old, or neither. */
inline settle_group(s)
{
    if
    :: slot[s].unsynced > 0 ->
        if
        :: true
        :: copy_group(slot[s].g[slot[s].unsynced - 1], slot[s].old)
        :: clear_group(slot[s].g[slot[s].unsynced - 1])
        fi;
        slot[s].unsynced = 0;
        slot[s].failed = 0;
        clear_group(slot[s].old)
    :: else
    fi
}

inline group_is_synced(s)
{
    slot[s].unsynced = 0;
    slot[s].failed = 0;
    clear_group(slot[s].old)
}

/* ---- What must hold ---- */

inline check()
{
    i = 0;
    do
    :: i < file[nameC].lenC && nameC != 0 ->
        assert(file[nameC].c[i] != 0 && file[nameC].c[i] != PIECE);
        assert(!refused[file[nameC].c[i]]);
        assert((i == 0 -> 0 : file[nameC].c[i - 1]) == before[file[nameC].c[i]]);
        i++
    :: else -> break
    od;
    i = 1;
    do
    :: i <= EVENTS ->
        if
        :: acked[i] > 0 ->
            assert(nameC != 0 && file[nameC].lenC >= acked[i] &&
                   file[nameC].c[acked[i] - 1] == i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* ---- Writing a group ---- */

/*
 * Into slot s at index at; the caller has filled `made`, in the same atomic. In pieces first: this step
 * ends, and the next one makes it whole.
 */
inline tear_group(s, at)
{
    copy_group(slot[s].old, slot[s].g[at]);
    slot[s].unsynced = at + 1;
    slot[s].g[at].epoch = 0
}

inline whole_group(s, at)
{
    slot[s].g[at].epoch = made_epoch;
    slot[s].g[at].group = made_group;
    slot[s].g[at].released = made_released;
    slot[s].g[at].file = made_file;
    slot[s].g[at].offset = made_offset;
    slot[s].g[at].count = made_count;
    slot[s].g[at].first = made_first;
    slot[s].g[at].second = made_second;
    slot[s].g[at].before = made_before;
    slot[s].g[at].mark = made_mark
}

inline make_empty(e, g, r)
{
    made_epoch = e;
    made_group = g;
    made_released = r;
    made_file = 0;
    made_offset = 0;
    made_count = 0;
    made_first = 0;
    made_second = 0;
    made_before = 0;
    made_mark = 0
}

/* One cell of the journal: a piece of it, then the whole. */
inline tear_cell(f, at)
{
    if
    :: at >= file[f].lenC -> file[f].c[at] = PIECE; file[f].lenC = at + 1
    :: else
    fi
}

/* ---- Recovery: journal/recover.h ---- */

inline find_released(s)
{
    top = 0;
    last = 0;
    i = 0;
    do
    :: i < GROUPS ->
        if
        :: slot[s].g[i].epoch > 0 &&
           !(slot[s].voidC > 0 && slot[s].g[i].group >= slot[s].voidC) ->
            if
            :: slot[s].g[i].released > top -> top = slot[s].g[i].released
            :: else
            fi;
            if
            :: last == 0 || slot[s].g[i].group > slot[s].g[last - 1].group -> last = i + 1
            :: else
            fi
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* Another boot: what the log names is held. */
inline hold_all(s)
{
    slot[s].held = 0;
    i = 0;
    do
    :: i < GROUPS ->
        if
        :: slot[s].g[i].epoch > top && slot[s].g[i].file > 0 &&
           !(slot[s].voidC > 0 && slot[s].g[i].group >= slot[s].voidC) -> slot[s].held = 1
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    slot[s].bound = 1;
    slot[s].state = OWNED
}

/* The place of the first group behind number n that is to be redone, or GROUPS; n moves to it. */
inline find_group(s)
{
    at = GROUPS;
    i = 0;
    do
    :: i < GROUPS ->
        if
        :: slot[s].g[i].group > n && slot[s].g[i].epoch > top && slot[s].g[i].file > 0 &&
           !(slot[s].voidC > 0 && slot[s].g[i].group >= slot[s].voidC) &&
           (at == GROUPS || slot[s].g[i].group < slot[s].g[at].group) -> at = i
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    if
    :: at < GROUPS -> n = slot[s].g[at].group
    :: else
    fi
}

/* The file of a record: 0 when it is to be skipped. Makes it when its record came first. */
inline find_file(s)
{
    f = slot[s].g[at].file;
    if
    :: nameC == f
    :: nameC != f && goneC[f] -> f = 0
    :: nameC == 0 && !goneC[f] ->
        assert(slot[s].g[at].offset == 0); /* else: the journal is missing */
        nameC = f;
        file[f].lenC = 0
    :: nameC != f && nameC != 0 && !goneC[f] -> f = 0
    fi
}

/* A mark is left: what stands behind the durable end is kept as far as it proves itself (rule 13). */
inline cut_unproven(f)
{
    i = cut;
    do
    :: i < file[f].lenC && file[f].c[i] != 0 && file[f].c[i] != PIECE &&
       before[file[f].c[i]] == (i == 0 -> 0 : file[f].c[i - 1]) -> i++
    :: else -> break
    od;
    if
    :: i < file[f].lenC -> file[f].lenC = i
    :: else
    fi;
    i = 0
}

/* Rule 12 half done: the old journal stands there and counts, so the new one goes. */
inline finish_replacement()
{
    i = 1;
    do
    :: i < FILES ->
        if
        :: freshC[i] -> assert(nameC != 0); freshC[i] = 0
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline forget_slot(s)
{
    i = 0;
    do
    :: i < GROUPS -> clear_group(slot[s].g[i]); i++
    :: else -> break
    od;
    i = 0;
    slot[s].voidC = 0;
    slot[s].voidD = 0;
    slot[s].held = 0;
    slot[s].state = UNKNOWN;
    slot[s].bound = 0;
    slot[s].alone = 0;
    slot[s].end_epoch = 0;
    slot[s].end_group = 0
}

/* What a record asks for, up to its first cell: k is its place, m how many cells are to be written. */
inline begin_redo(s)
{
    m = 0;
    find_group(s);
    if
    :: at < GROUPS ->
        find_file(s);
        k = slot[s].g[at].offset;
        printf("%d: redoes group %d of log %d, file %d, place %d\n", me, n, s, f, k + 1);
        if
        :: f > 0 && slot[s].g[at].mark -> cut = k
        :: f > 0 && !slot[s].g[at].mark ->
            m = slot[s].g[at].count;
            /* A gap, or another history: the session would be stopped. */
            assert(k <= file[f].lenC);
            assert(slot[s].g[at].before == (k == 0 -> 0 : file[f].c[k - 1]));
            if
            :: cut != 255 && cut < k + m -> cut = k + m
            :: else
            fi;
            tear_cell(f, k)
        :: else
        fi
    :: else
    fi
}

/* The caller holds the lock of slot s. */
inline recover(s)
{
    /* What it cannot sync it does not read: the cache is dropped. */
    atomic {
        if
        :: slot[s].failed -> settle_group(s)
        :: else -> group_is_synced(s)
        fi;
        slot[s].voidD = slot[s].voidC;
        find_released(s);
        if
        :: slot[s].bound
        :: !slot[s].bound -> hold_all(s)
        fi;
        cut = 255;
        n = 0;
        printf("%d: recovers log %d, held %d, released %d\n", me, s, slot[s].held, top)
    };
    do
    :: atomic { slot[s].held && at < GROUPS && m == 0 -> begin_redo(s) }
    :: atomic { m > 0 ->
        file[f].c[k] = (slot[s].g[at].count > 1 && m == 1 -> slot[s].g[at].second :
                                                            slot[s].g[at].first);
        k++;
        m--;
        if
        :: m > 0 -> tear_cell(f, k)
        :: else
        fi
    }
    :: atomic { m == 0 && (!slot[s].held || at == GROUPS) ->
        at = 0;
        if
        :: slot[s].held ->
#ifndef BREAK_NO_CUT
            if
            :: nameC != 0 && cut != 255 -> cut_unproven(nameC)
            :: else
            fi;
#endif
        :: else
        fi
    } -> break
    od;
    atomic {
        if
        :: nameC != 0 -> sync_file(nameC)
        :: else
        fi;
        sync_names();
        k = (last > 0 -> slot[s].g[last - 1].epoch : 0);
        n = (last > 0 -> slot[s].g[last - 1].group : 0);
        if
        :: slot[s].voidC > 0 -> slot[s].there = 0 /* its name goes first, the void file last */
        :: slot[s].voidC == 0 && last > 0 ->
            make_empty(k + 1, n + 1, k);
            at = (last <= 2 -> 2 : 0);
            tear_group(s, at)
        :: else
        fi
    };
    if
    :: d_step { slot[s].voidC > 0 -> slot[s].thereD = 0; forget_slot(s) }
    :: d_step { slot[s].voidC == 0 && last > 0 -> whole_group(s, at) };
        d_step { group_is_synced(s); is_empty(s, k + 1, n + 1) }
    :: d_step { slot[s].voidC == 0 && last == 0 -> is_empty(s, 0, 0) }
    fi
}

inline is_empty(s, e, g)
{
    printf("%d: log %d is empty\n", me, s);
    slot[s].held = 0;
    slot[s].end_epoch = e;
    slot[s].end_group = g;
    slot[s].alone = 0;
    slot[s].state = EMPTY
}

/* After recover(), in the same step as what the caller does next. */
inline forget_recovery()
{
    n = 0; k = 0; m = 0; at = 0; f = 0; cut = 0; last = 0; top = 0;
    make_empty(0, 0, 0)
}

/* ---- A process ---- */

inline unlock(s)
{
    slot[s].lock = 0
}

/* Redo what is in other, whose lock is ours; a log of another boot under locks/recovery, or else give
 * it back. */
inline recover_other()
{
    atomic { other != NO_SLOT ->
        if
        :: !slot[other].alone
#ifndef BREAK_NO_RECOVERY_LOCK
        :: slot[other].alone && recovery == 0 -> recovery = me + 1
        :: slot[other].alone && recovery != 0 -> unlock(other); other = NO_SLOT
#else
        :: slot[other].alone
#endif
        fi
    };
    if
    :: atomic { other != NO_SLOT -> skip };
        recover(other);
        d_step {
            forget_recovery();
            unlock(other);
            recovery = (recovery == me + 1 -> 0 : recovery);
            other = NO_SLOT
        }
    :: atomic { other == NO_SLOT -> skip }
    fi
}

/* Under locks/claim: the lowest slot that can be had, else a new one. mine, or other to recover. */
inline look_for_slot(moves_entry)
{
    i = 0;
    other = NO_SLOT;
    do
    :: i < SLOTS ->
        if
        :: other == NO_SLOT && slot[i].there && slot[i].lock == 0 -> other = i
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    if
    :: other == NO_SLOT ->
        do
        :: i < SLOTS && (slot[i].there || slot[i].lock != 0) -> i++
        :: else -> break
        od;
        if
        :: i < SLOTS -> /* else SLOTS is too small: try again */
            slot[i].there = 1;
            slot[i].thereD = 1;
            slot[i].state = EMPTY;
            slot[i].bound = 1;
            other = i
        :: else
        fi;
        i = 0
    :: else
    fi;
    if
    :: other != NO_SLOT -> slot[other].lock = me + 1
    :: else
    fi;
    if
    :: other != NO_SLOT && slot[other].state == EMPTY && slot[other].bound &&
       slot[other].voidC == 0 ->
        slot[other].state = OWNED;
        slot[other].held = moves_entry;
        epoch = slot[other].end_epoch;
        group = slot[other].end_group;
        released = epoch;
        /* The next group begins an epoch in the region that the last group is not in. */
        region = (slot[other].g[2].group == group || slot[other].g[3].group == group -> 1 : 0);
        used = 1;
        region_epoch[0] = 0;
        region_epoch[1] = 0;
        printf("%d: claims log %d\n", me, other);
        mine = other;
        other = NO_SLOT
    :: else
    fi
}

/* Rule 10. */
inline claim_slot(moves_entry)
{
    do
    :: atomic { mine == NO_SLOT && claim == 0 && other == NO_SLOT -> claim = me + 1 };
        atomic { look_for_slot(moves_entry); claim = 0 }
    :: recover_other()
    :: atomic { mine != NO_SLOT -> skip } -> break
    od
}

/* Rule 8, under locks/claim: our held list names the session now, or other has it. */
inline look_for_holder()
{
    i = 0;
    other = NO_SLOT;
    do
    :: i < SLOTS ->
        if
        :: other == NO_SLOT && i != mine && slot[i].there &&
           !(slot[i].bound && slot[i].state == EMPTY) && (slot[i].held || !slot[i].bound) ->
            other = i
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
#ifdef BREAK_HOLDER_NOT_RECOVERED
    if
    :: other != NO_SLOT && slot[other].lock == 0 ->
        slot[other].held = 0;
        other = NO_SLOT
    :: else
    fi;
#endif
    if
    :: other == NO_SLOT -> slot[mine].held = 1
    :: other != NO_SLOT && slot[other].lock == 0 -> slot[other].lock = me + 1
    :: other != NO_SLOT && slot[other].lock != 0 -> busy = 1; other = NO_SLOT
    fi
}

/* own is set when the session was taken; otherwise its owner is at work, or was recovered. */
inline take_session()
{
    atomic { mine != NO_SLOT && !own && claim == 0 -> claim = me + 1 };
    atomic { look_for_holder(); claim = 0 };
    if
    :: d_step { busy -> busy = 0 }
    :: recover_other()
    :: atomic { !busy && other == NO_SLOT -> read_journal() }
    fi
}

/* The end of the journal; what a killed writer left in pieces is cut (rule 13). */
inline read_journal()
{
    my_file = nameC;
    if
    :: my_file != 0 && file[my_file].lenC > 0 && file[my_file].c[file[my_file].lenC - 1] == PIECE ->
        file[my_file].lenC--
    :: else
    fi;
    check();
    tail = (my_file == 0 -> 0 : file[my_file].lenC);
    tail_event = (tail == 0 -> 0 : file[my_file].c[tail - 1]);
    logged = tail;
    logged_event = tail_event;
    marked = 0;
    printf("%d: takes the session, %d events\n", me, tail);
    own = 1
}

/* Rule 7: everything that was applied is synced; marks end with it. The names are the next step. */
inline sync_journal()
{
    if
    :: my_file != 0 -> sync_file(my_file)
    :: else
    fi;
#ifndef BREAK_MARK_OUTLIVES_CHECKPOINT
    marked = 0;
#endif
    logged = tail;
    logged_event = tail_event
}

/* Rules 5 and 7: room for one group, in a region that is durably released. */
inline make_room()
{
    if
    :: atomic { !used || (epoch > 0 && region_epoch[1 - region] <= released) || epoch == 0 -> skip }
    :: atomic {
            used && epoch > 0 && region_epoch[1 - region] > released ->
#ifndef BREAK_REUSE_WITHOUT_CHECKPOINT
            sync_journal()
#endif
        };
        atomic {
#ifndef BREAK_REUSE_WITHOUT_CHECKPOINT
            sync_names();
#endif
            make_empty(epoch, group + 1, region_epoch[1 - region]);
            tear_group(mine, 2 * region + 1)
        };
        d_step { whole_group(mine, 2 * region + 1) };
        d_step {
            group_is_synced(mine);
            group++;
            released = region_epoch[1 - region]
        }
    fi
}

inline choose_region()
{
    if
    :: used || epoch == 0 ->
        region = (epoch == 0 -> region : 1 - region);
        epoch++;
        region_epoch[region] = epoch;
        used = 0
    :: else
    fi
}

inline choose_file()
{
    if
    :: my_file == 0 -> my_file = next_file; next_file++
    :: else
    fi
}

/* A journal appears with its first durable bytes. */
inline make_journal()
{
    if
    :: nameC == 0 && !goneC[my_file] -> nameC = my_file
    :: else
    fi
}

/* Rule 11: void the group, say "refused", go on with another log. */
inline void_group()
{
#ifndef BREAK_NO_VOID
    d_step {
        printf("%d: voids group %d of log %d\n", me, group + 1, mine);
        slot[mine].voidC = group + 1
    };
#endif
    d_step {
#ifndef BREAK_NO_VOID
        slot[mine].voidD = slot[mine].voidC;
#endif
        if
        :: event > 0 -> refused[event] = 1; event = 0
        :: else
        fi;
        make_empty(0, 0, 0);
        old = mine;
        mine = NO_SLOT
    };
    claim_slot(1);
    atomic { sync_journal() };
    atomic { sync_names(); printf("%d: unlinks log %d\n", me, old); slot[old].there = 0 };
    d_step { slot[old].thereD = 0; forget_slot(old); unlock(old); old = NO_SLOT }
}

/* Level os: a mark is made durable first. */
inline mark_journal()
{
    make_room();
    atomic {
        choose_region();
        choose_file();
        make_empty(epoch, group + 1, released);
        made_file = my_file;
        made_offset = logged;
        made_before = logged_event;
        made_mark = 1;
        tear_group(mine, 2 * region);
        used = 1
    };
    d_step { whole_group(mine, 2 * region) };
    if
    :: d_step { group_is_synced(mine); group++; marked = 1; make_empty(0, 0, 0); make_journal() }
    :: d_step { fails > 0 -> fails--; slot[mine].failed = 1 };
        void_group()
    fi
}

inline append_os()
{
    atomic {
        event = next_event;
        next_event++;
        before[event] = tail_event;
        choose_file();
        make_journal();
        tear_cell(my_file, tail)
    };
    d_step {
        file[my_file].c[tail] = event;
        tail++;
        tail_event = event;
        printf("%d: event %d stands at %d, level os\n", me, event, tail);
        event = 0
    }
}

/* annal_store_sync() of what is too much to be carried: sync the journal, then say so with a new mark. */
inline sync_loose()
{
    d_step { own && tail > logged -> event = 0 };
    atomic { sync_journal() };
    atomic { sync_names() };
    mark_journal();
    d_step {
        n = logged;
        do
        :: n > 0 -> n--; acked[file[my_file].c[n]] = n + 1
        :: else -> break
        od;
        n = 0
    }
}

/* Level sync, rules 2 and 3: the record begins at the durable end and carries the loose event. */
inline append_sync()
{
    make_room();
    atomic {
        choose_region();
        choose_file();
        event = next_event;
        next_event++;
        before[event] = tail_event;
        make_empty(epoch, group + 1, released);
        made_file = my_file;
#ifdef BREAK_LOOSE_NOT_CARRIED
        made_offset = tail;
        made_before = tail_event;
        made_count = 1;
        made_first = event;
#else
        made_offset = logged;
        made_before = logged_event;
        made_count = tail - logged + 1;
        made_first = (tail > logged -> tail_event : event);
        made_second = (tail > logged -> event : 0);
#endif
        tear_group(mine, 2 * region);
        used = 1
    };
    d_step { whole_group(mine, 2 * region); make_empty(0, 0, 0) };
    if
    :: d_step { /* The earliest moment to answer: before the journal has it. */
            group_is_synced(mine);
            group++;
            printf("%d: event %d is durable at %d, group %d of log %d\n", me, event, tail + 1, group, mine);
            acked[event] = tail + 1;
            if
            :: tail > logged -> acked[tail_event] = tail
            :: else
            fi
        };
        atomic { make_journal(); tear_cell(my_file, tail) };
        d_step {
            file[my_file].c[tail] = event;
            tail++;
            tail_event = event;
            logged = tail;
            logged_event = event;
            marked = 0;
            event = 0
        }
    :: d_step { fails > 0 -> fails--; slot[mine].failed = 1 };
        void_group()
    fi
}

/* Rule 7, the keeper's: everything is released, by an empty group. */
inline checkpoint()
{
    atomic { own && used && epoch > released -> sync_journal() };
    atomic {
        sync_names();
        make_empty(epoch, group + 1, epoch);
        tear_group(mine, 2 * region + 1)
    };
    d_step { whole_group(mine, 2 * region + 1) };
    d_step {
        group_is_synced(mine);
        group++;
        released = epoch;
        make_empty(0, 0, 0)
    }
}

/* Rule 9. */
inline release_session()
{
#ifndef BREAK_RELEASE_WITHOUT_SYNC
    atomic { own -> sync_journal() };
    atomic { sync_names() };
#endif
    d_step {
        printf("%d: releases the session\n", me);
        own = 0;
        slot[mine].held = 0;
        my_file = 0;
        tail = 0;
        tail_event = 0;
        logged = 0;
        logged_event = 0;
        marked = 0
    }
}

inline leave_slot()
{
    d_step {
        mine != NO_SLOT && !own && leaves > 0 ->
        printf("%d: leaves log %d\n", me, mine);
        leaves--;
        slot[mine].end_epoch = epoch;
        slot[mine].end_group = group;
        slot[mine].state = EMPTY
    };
    d_step {
        unlock(mine);
        mine = NO_SLOT;
        epoch = 0;
        group = 0;
        released = 0;
        region = 0;
        used = 0;
        region_epoch[0] = 0;
        region_epoch[1] = 0
    }
}

/* Rule 12: the tombstone first, then the same events in a new file, or none. */
inline change_journal()
{
    atomic {
        own && my_file != 0 && changes > 0 && structure == 0 ->
        structure = me + 1;
        changes--;
        sync_journal()
    };
    atomic { sync_names() };
#ifndef BREAK_NO_TOMBSTONE
    atomic { goneC[my_file] = 1 };
    atomic { sync_names() };
#endif
    if
    :: replace_journal()
    :: delete_journal()
    fi;
    d_step {
        own = 0;
        slot[mine].held = 0;
        my_file = 0;
        tail = 0;
        tail_event = 0;
        logged = 0;
        logged_event = 0;
        marked = 0;
        structure = 0
    }
}

/* It gets its name beside the old one's; the switch is one change of a name. */
inline replace_journal()
{
    atomic {
        next_file < FILES ->
        new_file = next_file;
        next_file++;
        printf("%d: writes file %d in the place of %d\n", me, new_file, my_file);
        do
        :: i < EVENTS -> file[new_file].c[i] = file[my_file].c[i]; i++
        :: else -> break
        od;
        i = 0;
        file[new_file].lenC = file[my_file].lenC;
        sync_file(new_file);
        freshC[new_file] = 1
    };
    atomic { sync_names() };
    d_step { nameC = new_file; freshC[new_file] = 0 };
    atomic { sync_names(); new_file = 0 }
}

/* What is deleted must not come back: from the answer on it counts as refused. */
inline delete_journal()
{
    d_step {
        do
        :: i <= EVENTS -> acked[i] = 0; i++
        :: else -> break
        od;
        i = 0;
        nameC = 0
    };
    atomic {
        sync_names();
        printf("%d: has deleted the journal\n", me);
        do
        :: i < file[my_file].lenC -> refused[file[my_file].c[i]] = 1; i++
        :: else -> break
        od;
        i = 0
    }
}

/* Opening a store: every slot that nobody lives in, but for those that others keep us from; then what
 * rule 12 left half done. */
inline sweep()
{
    do
    :: atomic { s < SLOTS && other == NO_SLOT ->
        do
        :: s < SLOTS && !(slot[s].there && slot[s].lock == 0 &&
                          !(slot[s].bound && slot[s].state == EMPTY)) -> s++
        :: else -> break
        od;
        if
        :: s < SLOTS -> slot[s].lock = me + 1; other = s; s++
        :: else
        fi
    }
    :: recover_other()
    :: atomic { s == SLOTS && other == NO_SLOT ->
        s = 0;
        if
        :: structure == 0 -> finish_replacement(); sync_names()
        :: else
        fi
    } -> break
    od
}

proctype Process(byte me)
{
    byte mine, other, old, s, i, n, k, m, f, at, cut, top, last;
    byte epoch, group, released, region, region_epoch[2];
    bit used; /* the region has its group */
    byte my_file, new_file, tail, tail_event, logged, logged_event, event;
    bit own, marked, busy;
    byte made_epoch, made_group, made_released, made_file, made_offset, made_count, made_first,
        made_second, made_before;
    bit made_mark;

begin:
    skip; /* SPIN jumps to no d_step */
    d_step {
        dead[me] = 0;
        mine = NO_SLOT; other = NO_SLOT; old = NO_SLOT;
        s = 0; i = 0; epoch = 0; group = 0; released = 0; region = 0; region_epoch[0] = 0;
        region_epoch[1] = 0; used = 0; my_file = 0; new_file = 0; tail = 0; tail_event = 0;
        logged = 0; logged_event = 0; event = 0; own = 0; marked = 0; busy = 0;
        forget_recovery()
    };
    {
        sweep();
        claim_slot(0);
        do
        :: take_session()
        :: leave_slot();
            claim_slot(0)
        :: atomic { own && next_event <= EVENTS && tail < EVENTS && tail < logged + 2 &&
                    (my_file != 0 || next_file < FILES) -> skip };
            append_sync()
#ifdef OS
        :: sync_loose()
        :: checkpoint()
        :: atomic { own && next_event <= EVENTS && tail < EVENTS && tail < logged + 2 &&
                    (my_file != 0 || next_file < FILES) -> skip };
#ifndef BREAK_NO_MARK
            if
            :: atomic { !marked -> skip };
                mark_journal()
            :: else
            fi;
#endif
            append_os()
#endif
        :: release_session()
#if CHANGES > 0
        :: change_journal()
#endif
        od
    } unless { dead[me] };
    goto begin
}

/* ---- What happens to them ---- */

inline kill_process(p)
{
    printf("kill %d\n", p);
    dead[p] = 1;
    i = 0;
    do
    :: i < SLOTS ->
        if
        :: slot[i].lock == p + 1 -> slot[i].lock = ZOMBIE
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    if
    :: claim == p + 1 -> claim = ZOMBIE
    :: else
    fi;
    if
    :: recovery == p + 1 -> recovery = ZOMBIE
    :: else
    fi;
    if
    :: structure == p + 1 -> structure = ZOMBIE
    :: else
    fi
}

/* Any part of what was not synced is kept. */
inline cut_power_of_slot(s)
{
    settle_group(s);
    if
    :: slot[s].voidC != slot[s].voidD ->
        if
        :: slot[s].voidC = slot[s].voidD
        :: slot[s].voidD = slot[s].voidC
        fi
    :: else
    fi;
    if
    :: slot[s].there != slot[s].thereD ->
        if
        :: slot[s].there = slot[s].thereD
        :: slot[s].thereD = slot[s].there; forget_slot(s)
        fi
    :: else
    fi;
    slot[s].lock = 0;
    slot[s].state = UNKNOWN;
    slot[s].bound = 0;
    slot[s].alone = slot[s].there;
    slot[s].held = 0;
    slot[s].end_epoch = 0;
    slot[s].end_group = 0
}

inline cut_power_of_file(f)
{
    k = file[f].lenD;
    do
    :: k < file[f].lenC -> k++
    :: break
    od;
    if
    :: file[f].lenC < file[f].lenD ->
        if
        :: k = file[f].lenC
        :: k = file[f].lenD
        fi
    :: else
    fi;
    i = 0;
    do
    :: i < EVENTS ->
        if
        :: i >= k -> file[f].c[i] = 0; file[f].d[i] = 0
        :: i < k && file[f].c[i] != file[f].d[i] ->
            if
            :: i < file[f].lenD -> file[f].c[i] = file[f].d[i]
            :: i >= file[f].lenD -> file[f].c[i] = 0; file[f].d[i] = 0
            :: file[f].d[i] = file[f].c[i]
            fi
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    file[f].lenC = k;
    file[f].lenD = k;
    k = 0
}

inline cut_power()
{
    printf("power cut\n");
    p = 0;
    do
    :: p < SLOTS -> cut_power_of_slot(p); p++
    :: else -> break
    od;
    if
    :: true ->
        nameC = nameD;
        p = 1;
        do
        :: p < FILES -> goneC[p] = goneD[p]; freshC[p] = freshD[p]; p++
        :: else -> break
        od
    :: true ->
        nameD = nameC;
        p = 1;
        do
        :: p < FILES -> goneD[p] = goneC[p]; freshD[p] = freshC[p]; p++
        :: else -> break
        od
    fi;
    p = 1;
    do
    :: p < FILES -> cut_power_of_file(p); p++
    :: else -> break
    od;
    claim = 0;
    recovery = 0;
    structure = 0;
    dead[0] = 1;
    dead[1] = 1;
    p = 0
}

active proctype Fate()
{
    byte p, i, k;
    atomic { run Process(0); run Process(1) };
    do
    :: atomic { kills > 0 && !dead[0] -> kills--; kill_process(0) }
    :: atomic { kills > 0 && !dead[1] -> kills--; kill_process(1) }
    :: atomic { slot[0].lock == ZOMBIE -> slot[0].lock = 0 }
    :: atomic { slot[1].lock == ZOMBIE -> slot[1].lock = 0 }
#if SLOTS > 2
    :: atomic { slot[2].lock == ZOMBIE -> slot[2].lock = 0 }
#endif
    :: atomic { claim == ZOMBIE -> claim = 0 }
    :: atomic { recovery == ZOMBIE -> recovery = 0 }
    :: atomic { structure == ZOMBIE -> structure = 0 }
    :: atomic { cuts > 0 -> cuts--; cut_power() }
    od
}
