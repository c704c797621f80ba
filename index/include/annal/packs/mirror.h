/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporting a project's memory from the tables to files, for people and agents that read the
 * project's workspace, and importing proposals that they wrote there as files.
 */
#ifndef ANNAL_PACKS_MIRROR_H
#define ANNAL_PACKS_MIRROR_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Out ---- */

typedef struct annal_mirror_file {
    const char *path; /* path of the file below the directory; valid until the callback returns */
    bool deleted;     /* whether the file was deleted; if not, the file was written */
} annal_mirror_file;

/* A function that is called for each file that was written or deleted. It returns 0 to continue;
 * any other value ends the calls, and is returned to the caller. */
typedef int (*annal_mirror_file_fn)(void *arg, const annal_mirror_file *file);

typedef struct annal_mirror_counts {
    uint64_t written;
    uint64_t deleted;
    uint64_t unchanged; /* number of files that already had the right bytes, and were not written */
} annal_mirror_counts;

/*
 * Write a project's decisions, pending proposals, memories and current session below directory,
 * which is created if it is missing: .squad/decisions.md, .squad/decisions/inbox/SLUG.md,
 * .squad/agents/AGENT/history.md, .squad/identity/now.md, .agentweaver/context/boundaries.md and
 * .agentweaver/context/patterns.md. Equal tables yield equal bytes. First the files of proposals
 * that are no longer pending are deleted; no other file is deleted. A reader sees the old bytes of
 * a file or its new bytes, never a mixture; files are not synced. Nothing outside directory is
 * written or deleted, whatever the names of slugs and agents are: symbolic links below directory
 * are not followed.
 *
 * The tables are caught up first, as by annal_sql(). fn is called for each file that was written or
 * deleted, and must not close the index. fn and out_counts may be NULL. Any thread; the caller must
 * prevent two simultaneous calls for one directory.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not enabled; or the project does not exist
 * ANNAL_ERR_IO        a file cannot be written or deleted, for instance because its path contains a
 *                     symbolic link (the message names it); files written before are not undone
 * and the statuses of annal_sql().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_mirror_export(annal_index *index, annal_slice project,
                                                            const char *directory,
                                                            annal_mirror_file_fn fn, void *arg,
                                                            annal_mirror_counts *out_counts,
                                                            annal_error *err);

/* ---- In ---- */

typedef enum annal_mirror_outcome {
    ANNAL_MIRROR_TAKEN = 1,   /* the file is a new proposal, which was appended as an event */
    ANNAL_MIRROR_REFUSED = 2, /* a guard refused the proposal; message is its sentence */
    /* the file is not a valid proposal, or cannot be read; message says why */
    ANNAL_MIRROR_UNREADABLE = 3
} annal_mirror_outcome;

/* The result for one file of the inbox. It is valid until the callback returns. */
typedef struct annal_mirror_proposal {
    annal_mirror_outcome outcome;
    const char *file; /* path of the file, beginning with the directory that the caller gave */
    annal_slice slug; /* slug of the proposal; empty if the file is not a valid proposal */
    /* why the proposal was refused or is unreadable; NULL if it was appended */
    const char *message;
    uint64_t seq;     /* seq of the event decision.proposed, if it was appended */
    annal_slice data; /* data of this event, with the values that the packs added */
} annal_mirror_proposal;

/* A function that is called for each proposal that was appended, refused or unreadable. It returns
 * 0 to continue; any other value ends the calls, and is returned to the caller. */
typedef int (*annal_mirror_proposal_fn)(void *arg, const annal_mirror_proposal *proposal);

typedef struct annal_mirror_import_options {
    annal_slice cause; /* cause of the events; may be empty */
    /* time in ms to wait for another process that writes the session, as in annal_writer_options */
    uint32_t wait_ms;
} annal_mirror_import_options;

typedef struct annal_mirror_imported {
    uint64_t files; /* number of files *.md in the inbox */
    uint64_t taken;
} annal_mirror_imported;

/*
 * Append the proposals in directory/.squad/decisions/inbox/ (files *.md, in the order of their
 * names) whose slugs the project does not have yet: for each an event decision.proposed in the
 * session proj_PROJECT, with annal_pack_append(). A proposal whose slug the project has, with any
 * status, is skipped without a call of fn. No file is changed. A proposal consists of front matter
 * with agent, slug, type and title, the content, and optionally **Rationale:** and the rationale.
 * Anything else with such a name (a symbolic link, a directory, a file that is too long) is
 * reported as unreadable, and all other proposals are imported. If the directory has no inbox,
 * there are no proposals. After a failure the events that were appended stay, and the next call
 * imports the remaining proposals.
 *
 * options, fn and out_imported may be NULL. Any thread; no lock is held while fn runs.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not enabled
 * ANNAL_ERR_INVALID   the inbox cannot be read, or is reached through a symbolic link, or no
 *                     session can have the id proj_PROJECT
 * and the statuses of annal_sql() and annal_pack_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_mirror_import(annal_index *index, annal_slice project, const char *directory,
                    const annal_mirror_import_options *options, annal_mirror_proposal_fn fn,
                    void *arg, annal_mirror_imported *out_imported, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
