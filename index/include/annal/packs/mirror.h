/*
 * A project's memory as files, for people and agents who look into its workspace, and proposals
 * that they wrote there back. The tables are what counts; files are a mirror of them.
 */
#ifndef ANNAL_PACKS_MIRROR_H
#define ANNAL_PACKS_MIRROR_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Out ---- */

typedef struct annal_mirror_file {
    const char *path; /* below the directory; lives until the callback returns */
    bool deleted;     /* else written */
} annal_mirror_file;

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_mirror_file_fn)(void *arg, const annal_mirror_file *file);

typedef struct annal_mirror_counts {
    uint64_t written;
    uint64_t deleted;
    uint64_t unchanged; /* their bytes were right already: not touched */
} annal_mirror_counts;

/*
 * Write a project's decisions, pending proposals, memories and current session below directory,
 * which is made if it is missing: .squad/decisions.md, .squad/decisions/inbox/SLUG.md,
 * .squad/agents/AGENT/history.md, .squad/identity/now.md, .agentweaver/context/boundaries.md and
 * patterns.md there. The same tables give the same bytes. First the files of proposals that are
 * pending no more are deleted; nothing else is. A reader finds a file's old bytes or its new ones;
 * they are not synced. Nothing outside directory is written or deleted, whatever slugs and agents
 * are called, and whatever symbolic links are put below it: none is followed.
 *
 * fn is called for each file that was written or deleted; fn and out_counts may be NULL. It catches
 * up first, as annal_sql(), and fn must not close the index. Any thread; two at the same directory
 * at once are not kept apart.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not on; or there is no such project
 * ANNAL_ERR_IO        a file cannot be written or deleted, for instance because a symbolic link is
 *                     in the way (the message names it); what was done before stays
 * and those of annal_sql().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_mirror_export(annal_index *index, annal_slice project,
                                                            const char *directory,
                                                            annal_mirror_file_fn fn, void *arg,
                                                            annal_mirror_counts *out_counts,
                                                            annal_error *err);

/* ---- In ---- */

typedef enum annal_mirror_outcome {
    ANNAL_MIRROR_TAKEN = 1,     /* a proposal more, by one event */
    ANNAL_MIRROR_REFUSED = 2,   /* a guard said no: message */
    ANNAL_MIRROR_UNREADABLE = 3 /* it is no proposal: message */
} annal_mirror_outcome;

/* What became of one file. It lives until the callback returns. */
typedef struct annal_mirror_proposal {
    annal_mirror_outcome outcome;
    const char *file;    /* its path, directory and all */
    annal_slice slug;    /* empty when unreadable */
    const char *message; /* NULL when taken */
    uint64_t seq;        /* of the event decision.proposed, when taken, */
    annal_slice data;    /* and its data, with what the packs put in */
} annal_mirror_proposal;

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal_mirror_proposal_fn)(void *arg, const annal_mirror_proposal *proposal);

typedef struct annal_mirror_import_options {
    annal_slice cause; /* of the events; may be empty */
    uint32_t wait_ms;  /* for a session that another process writes; as annal_writer_options */
} annal_mirror_import_options;

typedef struct annal_mirror_imported {
    uint64_t files; /* that were looked at */
    uint64_t taken;
} annal_mirror_imported;

/*
 * Take the proposals of directory/.squad/decisions/inbox/ (each *.md, in the order of their names)
 * that the project does not have: an event decision.proposed each, in session proj_PROJECT, through
 * annal_pack_append(). A slug that the project has, whatever became of it, is passed over, and fn
 * hears nothing of it; no file is changed. A proposal is front matter with agent, slug, type and
 * title, then the content, with what follows **Rationale:** apart. Whatever else has such a name, a
 * symbolic link, a directory, a file that is too long, is unreadable, and the others are taken. A
 * directory without inbox has no files. When it fails, what was taken before stays, and the next
 * call takes the rest.
 *
 * options, fn and out_imported may be NULL. Any thread; it keeps no lock while fn runs.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver or memory is not on
 * ANNAL_ERR_INVALID   the inbox cannot be read, or is behind a symbolic link, or no session can be
 *                     called proj_PROJECT
 * and those of annal_sql() and annal_pack_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_mirror_import(annal_index *index, annal_slice project, const char *directory,
                    const annal_mirror_import_options *options, annal_mirror_proposal_fn fn,
                    void *arg, annal_mirror_imported *out_imported, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
