const { test } = require('node:test');
const assert = require('node:assert');
const express = require('express');

function served(app) {
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve([server, `http://127.0.0.1:${server.address().port}`]));
  });
}

test('answers JSON, and reads a body', async () => {
  const app = express();
  app.use(express.json());
  app.post('/sum', (request, response) => response.json({ sum: request.body.a + request.body.b }));
  const [server, at] = await served(app);
  const body = JSON.stringify({ a: 2, b: 3 });
  const answer = await fetch(`${at}/sum`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  assert.deepStrictEqual(await answer.json(), { sum: 5 });
  server.close();
});

test('serves the files of a directory', async () => {
  const app = express();
  app.use(express.static(__dirname));
  const [server, at] = await served(app);
  const answer = await fetch(`${at}/package.json`);
  assert.strictEqual((await answer.json()).name, 'uses-express');
  assert.strictEqual((await fetch(`${at}/none`)).status, 404);
  server.close();
});

test('an error becomes an answer', async () => {
  const app = express();
  app.get('/', () => { throw new Error('on purpose'); });
  app.use((error, request, response, next) => response.status(500).send(error.message));
  const [server, at] = await served(app);
  const answer = await fetch(at);
  assert.strictEqual(answer.status, 500);
  assert.strictEqual(await answer.text(), 'on purpose');
  server.close();
});
