/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the OpenTelemetry SDK for Node exports becomes sessions with the right tokens: protobuf and JSON, with gzip and
 * without, spans of GenAI and the logs of Claude Code. exporters.mjs ANNAL, after npm ci.
 */
import { context, diag, DiagConsoleLogger, DiagLogLevel, trace } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const warnings = [];
const warn = (...words) => warnings.push(words.join(' '));
diag.setLogger({ ...new DiagConsoleLogger(), error: warn, warn }, DiagLogLevel.WARN);

const named = (attributes) => Object.fromEntries(Object.entries(attributes).map(([k, v]) => [`gen_ai.${k}`, v]));

/* The SDK says the begin of a span in whole milliseconds, its end more exactly. */
const aWhile = () => new Promise((done) => setTimeout(done, 3));

async function spans(url, headers, conversation, Exporter, compression) {
  const exporter = new Exporter({ url: `${url}/v1/traces`, headers, compression });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'planner' }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('test');
  const begin = (name, attributes, above) =>
    tracer.startSpan(name, { attributes: named({ 'conversation.id': conversation, ...attributes }) }, above);
  const agent = begin('invoke_agent Planner', { 'operation.name': 'invoke_agent', 'agent.name': 'Planner' });
  const below = trace.setSpan(context.active(), agent);
  const said = [{ role: 'user', parts: [{ type: 'text', content: 'What of the tide?' }] }];
  const first = {
    'operation.name': 'chat',
    'provider.name': 'openai',
    'request.model': 'gpt-4o',
    'usage.input_tokens': 100,
    'usage.output_tokens': 20,
    'usage.cache_read.input_tokens': 30,
    'usage.cache_creation.input_tokens': 10,
    'input.messages': JSON.stringify(said),
  };
  begin('chat gpt-4o', first, below).end();
  const tool = { 'operation.name': 'execute_tool', 'tool.name': 'tides', 'tool.call.id': 'c1' };
  await aWhile();
  begin('execute_tool tides', tool, below).end();
  await aWhile();
  const older = {
    'operation.name': 'chat',
    system: 'openai',
    'request.model': 'gpt-4o',
    'usage.prompt_tokens': 150,
    'usage.completion_tokens': 25,
  };
  const chat = begin('chat gpt-4o', older, below);
  const message = JSON.stringify({ role: 'assistant', content: 'Low water at noon.' });
  chat.addEvent('gen_ai.choice', { index: 0, finish_reason: 'stop', message });
  chat.end();
  await aWhile();
  agent.end();
  await provider.forceFlush();
  await provider.shutdown();
}

async function logs(url, headers) {
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': 'claude-code' }),
    processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${url}/v1/logs`, headers }) })],
  });
  const logger = provider.getLogger('com.anthropic.claude_code.events');
  const emit = (name, attributes) =>
    logger.emit({
      body: `claude_code.${name}`,
      attributes: { 'session.id': 'logged', 'event.name': name, ...attributes },
    });
  emit('user_prompt', { prompt: 'What of the tide?', prompt_length: 17 });
  emit('api_request', {
    model: 'claude-sonnet-4-5',
    input_tokens: '10',
    output_tokens: '20',
    cache_read_tokens: '5',
    cache_creation_tokens: '7',
    cost_usd: '0.01',
  });
  await provider.forceFlush();
  await provider.shutdown();
}

const directory = mkdtempSync(path.join(tmpdir(), 'annal-otel-'));
const store = path.join(directory, 'store');
const server = spawn(process.argv[2], ['--store', store, 'serve', '--listen', '127.0.0.1:0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const line = await new Promise((done) => server.stdout.once('data', (text) => done(String(text))));
  const url = /http:\/\/[^/\s]+/.exec(line)[0];
  const token = readFileSync(path.join(store, 'serve.token'), 'utf8').trim().split(/\s+/).pop();
  const headers = { Authorization: `Bearer ${token}` };
  const get = async (route) => (await fetch(`${url}/api/v1/sessions/${route}`, { headers })).json();
  for (const [kind, Exporter] of Object.entries({ protobuf: ProtoExporter, json: JsonExporter })) {
    for (const compression of ['none', 'gzip']) {
      const name = `${kind}-${compression}`;
      await spans(url, headers, name, Exporter, compression);
      const session = await get(name);
      assert.deepEqual(
        [session.input_tokens, session.output_tokens, session.cached_input_tokens, session.cache_write_tokens],
        [250, 45, 30, 10],
        name,
      );
      const { events } = await get(`${name}/events`);
      const types = events.map((event) => event.type).filter((type) => /^(turn|tool)\./.test(type));
      assert.deepEqual(types, ['turn.started', 'tool.called', 'tool.returned', 'turn.completed'], name);
      const said = JSON.stringify(events.filter((event) => event.type === 'message.added').map(({ data }) => data));
      assert.match(said, /What of the tide\?/);
      assert.match(said, /Low water at noon\./);
    }
  }
  await logs(url, headers);
  const session = await get('logged');
  assert.deepEqual(
    [session.output_tokens, session.cached_input_tokens, session.cache_write_tokens, session.total_cost_usd],
    [20, 5, 7, 0.01],
  );
  assert.deepEqual(warnings, []);
  console.log('protobuf and JSON, with gzip and without, and logs: the tokens are right');
} finally {
  server.kill();
  await new Promise((done) => server.once('exit', done));
  rmSync(directory, { recursive: true, force: true });
}
