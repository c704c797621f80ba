// SPDX-License-Identifier: Apache-2.0
import annal from './index.cjs';

export default annal;
export const {
  Artifact,
  Busy,
  Closed,
  Conflict,
  Corrupt,
  Error,
  Event,
  IOFailed,
  Invalid,
  LimitExceeded,
  NoMemory,
  NotFound,
  Query,
  Refused,
  Rows,
  SQLError,
  Session,
  State,
  Store,
  Tail,
  Unknown,
  Unsupported,
  name,
  open,
  version,
} = annal;
