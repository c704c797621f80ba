// SPDX-License-Identifier: Apache-2.0
// Annal: the event store for AI-agent sessions, in your process.
'use strict';

const { failure, ...errors } = require('./errors.cjs');
const { Args, now } = require('./native.cjs');
const { open, Store, Query, Rows } = require('./store.cjs');
const { Session, Artifact } = require('./session.cjs');
const { Event } = require('./event.cjs');
const { State } = require('./state.cjs');
const { Tail } = require('./tail.cjs');
const { name } = require('./names.cjs');
const { Run, run, currentRun, record } = require('./run.cjs');
const { StepFailed } = require('./step.cjs');

void failure;

module.exports = {
  ...errors,
  Artifact,
  Event,
  Query,
  Rows,
  Run,
  Session,
  State,
  StepFailed,
  Store,
  Tail,
  currentRun,
  name,
  open,
  record,
  run,
  /** The version of the library that is linked in. */
  version: now('version', new Args(8)).next(),
};
