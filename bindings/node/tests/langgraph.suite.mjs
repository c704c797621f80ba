// SPDX-License-Identifier: Apache-2.0
// LangGraph's conformance suite, whole, with the tests of delta channels.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { deltaChannelHistoryTests, specTest } from '@langchain/langgraph-checkpoint-validation';
import * as annal from 'libannal';
import { AnnalSaver } from 'libannal/langgraph';

const initializer = {
  checkpointerName: 'libannal',
  async createCheckpointer() {
    return new AnnalSaver(await annal.open(await fs.mkdtemp(path.join(os.tmpdir(), 'annal-langgraph-'))));
  },
  async destroyCheckpointer(saver) {
    await saver.store.close();
    await fs.rm(saver.store.path, { recursive: true });
  },
};

specTest(initializer);
deltaChannelHistoryTests(initializer);
