/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project's memory as files, for people and agents that look into its workspace; and proposals
 * that they wrote there, back into the tables. The tables are what counts; files are a mirror of
 * them.
 */
#ifndef ANNAL_PACKS_MIRROR_H
#define ANNAL_PACKS_MIRROR_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Out ---- */

typedef struct annal_mirror_file {
    const char *path; /* below the directory; valid until the callback returns */
    bool deleted;     /* else written */
} annal_mirror_file;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_mirror_file_fn)(void *arg, const annal_mirror_file *file);

typedef struct annal_mirror_counts {
    uint64_t written;
    uint64_t deleted;
    uint64_t unchanged; /* their bytes were already right: not touched */
} annal_mirror_counts;

/*
 * Write a project's decisions, pending proposals, memories and current session below directory,
 * which is created if it is missing: .squad/decisions.md, .squad/decisions/inbox/SLUG.md,
 * .squad/agents/AGENT/history.md, .squad/identity/now.md, .agentweaver/context/boundaries.md and
 * patterns.md there. The same tables yield the same bytes. First the files of proposals that are
 * not pending any more are deleted; nothing else is. A reader finds a file's old bytes or its new
 * ones; they are not synced. Nothing outside directory is written or deleted, whatever the names of
 * slugs and agents, and whatever symbolic links are created below it: none is followed.
 *
 * fn is called for each file that was written or deleted; fn and out_counts may be NULL. It catches
 * up first, as annal_sql() does, and fn must not close the index. Any thread; two calls for the
 * same directory at once are not kept apart.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not on; or the project does not exist
 * ANNAL_ERR_IO        a file cannot be written or deleted, for instance because a symbolic link is
 *                     in the way (the message names it); what was done before stays
 * and the statuses of annal_sql().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_mirror_export(annal_index *index, annal_slice project,
                                                            const char *directory,
                                                            annal_mirror_file_fn fn, void *arg,
                                                            annal_mirror_counts *out_counts,
                                                            annal_error *err);

/* ---- In ---- */

typedef enum annal_mirror_outcome {
    ANNAL_MIRROR_TAKEN = 1,     /* a new proposal was appended as one event */
    ANNAL_MIRROR_REFUSED = 2,   /* a guard refused: message */
    ANNAL_MIRROR_UNREADABLE = 3 /* not a valid proposal: see message */
} annal_mirror_outcome;

/* The result for a file. It is valid until the callback returns. */
typedef struct annal_mirror_proposal {
    annal_mirror_outcome outcome;
    const char *file;    /* path of the file, with the directory */
    annal_slice slug;    /* empty if unreadable */
    const char *message; /* NULL if taken */
    uint64_t seq;        /* seq of the event decision.proposed, if one was appended, */
    annal_slice data;    /* and its data, as the packs completed it */
} annal_mirror_proposal;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_mirror_proposal_fn)(void *arg, const annal_mirror_proposal *proposal);

typedef struct annal_mirror_import_options {
    annal_slice cause; /* cause of the events; may be empty */
    uint32_t wait_ms;  /* for a session that another process writes; as annal_writer_options */
} annal_mirror_import_options;

typedef struct annal_mirror_imported {
    uint64_t files; /* number of files that were read */
    uint64_t taken;
} annal_mirror_imported;

/*
 * Take the proposals of directory/.squad/decisions/inbox/ (each *.md, in the order of their names)
 * that the project does not have: by an event decision.proposed each, in session proj_PROJECT,
 * through annal_pack_append(). A slug that the project has, whatever became of it, is skipped
 * without a call of fn; no file is changed. A proposal is front matter with agent, slug, type and
 * title, then the content, and apart from it what follows **Rationale:**. Anything else with such a
 * name (a symbolic link, a directory, a file that is too long) is unreadable, and the others are
 * taken. A directory without inbox has no files. If it fails, what was taken before stays, and the
 * next call takes the rest.
 *
 * options, fn and out_imported may be NULL. Any thread; it holds no lock while fn runs.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not on
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
