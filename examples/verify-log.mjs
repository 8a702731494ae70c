// SPDX-License-Identifier: Apache-2.0
//
// Checks an audit log by docs/audit-log.md, with nothing but Node (18 or newer); short enough to be read.
//   node verify-log.mjs AUDIT_DIR KEY [ANCHORS]
// KEY is the verifier's line or a file with it, ANCHORS a file of all that were kept. A log that was put
// aside (ended-ID) is checked by itself. Exit: 0 as signed · 8 broken or cut off · 5 key or anchor of
// another log · 2 usage · 1 can't be read. It stops at the first problem.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
const sha = (...parts) => parts.reduce((h, p) => h.update(p), createHash('sha256')).digest();
const fail = (exit, text) => { throw Object.assign(new Error(text), { exit }); };
const ascii = (v) => JSON.stringify(v).replace(/[^ -~]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const base64 = (s) => { const b = Buffer.from(s, 'base64'); return b.toString('base64') === s ? b : fail(8, 'base64 in another form'); };
// The tree of RFC 6962 by its right edge: the roots of the perfect subtrees, the largest first.
class Tree {
  constructor(size = 0, roots = []) { Object.assign(this, { size, roots }); }
  add(leaf) {
    for (let n = this.size; n % 2 === 1; n = (n - 1) / 2) leaf = sha(Buffer.of(1), this.roots.pop(), leaf);
    this.roots.push(leaf);
    this.size++;
  }
  root() { return this.size ? this.roots.reduceRight((right, left) => sha(Buffer.of(1), left, right)) : sha(); }
  is(c) { return this.size === c.size && this.root().toString('base64') === c.root; }
}

function parseVerifier(given) { // a line, or a file that has one
  const m = /^(postern\/[0-9a-f]{32})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)\s*$/m.exec(existsSync(given) ? readFileSync(given, 'utf8') : given);
  const key = m && Buffer.from(m[3], 'base64');
  if (!m || key.length !== 33 || key[0] !== 1 || sha(m[1], '\n', key).toString('hex').slice(0, 8) !== m[2]) fail(2, "that is not a verifier's line");
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.subarray(1)]); // SPKI of Ed25519
  return { origin: m[1], hash: m[2], key: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}
const noteForm = /^((postern\/[0-9a-f]{32})\n(0|[1-9]\d{0,14})\n([A-Za-z0-9+/]{43}=)\n(?:previous ([A-Za-z0-9+/]{43}=)\n)?)\n\u2014 (\S+) ([A-Za-z0-9+/]+=*)\n$/;
function open(verifier, note) {
  const m = noteForm.exec(note) ?? fail(8, 'not a checkpoint');
  const sig = base64(m[7]);
  if (m[2] !== verifier.origin || m[6] !== verifier.origin || sig.subarray(0, 4).toString('hex') !== verifier.hash) fail(5, 'a checkpoint of another key');
  if (!verify(null, Buffer.from(m[1]), verifier.key, sig.subarray(4))) fail(8, 'the signature is wrong');
  return { note, size: Number(m[3]), root: base64(m[4]).toString('base64'), previous: m[5] };
}
function notesIn(file) { // each ends with its signature; blank lines may be between
  const text = readFileSync(file, 'utf8').replace(/\r\n/g, '\n').replace(/\n*$/, '\n').replace(/^\n+/, '');
  const all = text.split(/(?<=^\u2014 .*\n)\n*/m).filter((n) => n);
  if (!all.length || !all.every((n) => noteForm.test(n))) fail(2, 'that is not a file of anchors');
  return [...new Set(all)];
}
const names = ['t', 'agent', 'op', 'decision', 'reason', 'source', 'session', 'corr', 'policy', 'level', 'event'];
function parseRecord(line) {
  try {
    const r = /^\{"t":"[ -~]*\}$/.test(line.toString('latin1')) && JSON.parse(line), keys = Object.keys(r);
    return names.every((n, i) => keys[i] === n && typeof r[n] === 'string') ? r : null;
  } catch { return null; }
}
const starts = (line, text) => line.subarray(0, text.length).equals(Buffer.from(text));
function split(data) {
  let lines = [], from = 0;
  for (let to; (to = data.indexOf(10, from)) >= 0; from = to + 1) lines.push(data.subarray(from, to));
  return { lines, torn: data.length - from };
}
function check(dir, verifier, anchors) {
  const files = existsSync(dir) ? readdirSync(dir).filter((f) => /^\d{6,9}\.(jsonl|hashes)$/.test(f)) : [];
  const count = files.reduce((n, f) => Math.max(n, parseInt(f, 10)), 0);
  let tree = new Tree(), last = null, prior = null, hashed = false, events = [], bad = [], where = dir, signed = 0;
  const tails = [], notes = new Set(), notesOut = [], at = new Map(anchors.map((a) => [a.size, null]));
  const has = (event, resource) => events.some((e) => e.event === event && e.resource === resource);
  const root = () => ({ root: tree.root().toString('base64'), hashed });
  const add = (leaf) => { tree.add(leaf); if (at.has(tree.size)) at.set(tree.size, root()); };
  const opened = (note) => { const c = open(verifier, note); signed++; notes.add(note); return c; };
  const head = (line, n, tail) => {
    const h = JSON.parse(line), c = opened(h.checkpoint), roots = h.edge.map(base64);
    if (ascii({ segment: n, t: h.t, checkpoint: h.checkpoint, edge: h.edge }) !== line.toString('latin1') || !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(h.t)) fail(8, 'the head is another one');
    if (!new Tree(c.size, roots).is(c)) fail(8, 'the edge in the head is not that of its root');
    if (n === 1 ? c.size !== 0 || c.previous : hashed ? !tree.is(c) : ![last, prior].some((l) => l?.note === c.note)) fail(8, 'the head does not go on from the segment before');
    if (tail && (tail.open || c.note !== last.note)) { // what follows the checkpoint in a segment that was given up
      tails.push(tail);
      [events, bad] = [events, bad].map((all) => all.filter((e) => e.leaf <= c.size));
      for (const size of at.keys()) if (size > c.size) at.set(size, null);
    }
    tree = new Tree(c.size, roots);
    return c;
  };
  const step = (line, n, i, tail) => {
    if (i === 0) {
      if (!starts(line, '{"segment":')) fail(8, 'no head');
      [last, prior, hashed] = [head(line, n, tail), null, false];
    } else if (starts(line, '{"checkpoint":"')) {
      const c = opened(JSON.parse(line).checkpoint);
      if (ascii({ checkpoint: c.note }) !== line.toString('latin1')) fail(8, 'a checkpoint in another form');
      if (c.size <= last.size || !tree.is(c)) fail(8, `not the checkpoint of the ${tree.size} records before it`);
      if (c.previous !== sha(last.note).toString('base64')) fail(8, 'a checkpoint before this one is gone');
      [prior, last] = [last, c];
    } else {
      add(sha(Buffer.of(0), line));
      const r = parseRecord(line);
      if (!r) bad.push({ place: where, leaf: tree.size });
      else if (r.op === 'log') events.push({ event: r.event, resource: r.resource, leaf: tree.size });
    }
  };
  const ours = () => files.some((f) => f.endsWith('.jsonl') && split(readFileSync(join(dir, f))).lines.some((l) => {
    try { return starts(l, '{"checkpoint":"') || starts(l, '{"segment":') ? open(verifier, JSON.parse(l).checkpoint) : false; } catch { return false; }
  }));
  try {
    let tail = null, pruned = 0;
    for (let n = 1; n <= count; n++) {
      const name = String(n).padStart(6, '0');
      where = `${name}.jsonl`;
      if (files.includes(where)) {
        const { lines, torn } = split(readFileSync(join(dir, where)));
        if (lines.length === 0) fail(8, 'no head');
        lines.forEach((line, i) => { where = `${name}.jsonl:${i + 1}`; step(line, n, i, tail); });
        tail = { name: `${name}.jsonl`, open: tree.size > last.size || torn > 0 };
        if (n === count && torn) notesOut.push(`${torn} bytes without a line end`);
      } else if (files.includes(`${name}.hashes`)) {
        const data = readFileSync(join(dir, where = `${name}.hashes`));
        if (data.length % 32 || pruned !== n - 1 || n === count) fail(8, 'hashes where there should be none');
        [hashed, pruned] = [true, n];
        for (let i = 0; i < data.length; i += 32) add(data.subarray(i, i + 32));
      } else fail(8, 'a segment is missing');
    }
    where = dir;
    for (const b of bad) if (!has('garbage', b.place)) fail(8, `${b.place} is not a record`);
    for (const t of tails) if (!has('segment_abandoned', t.name)) fail(8, `${t.name} goes on after its last checkpoint`);
    if (pruned && !has('pruned', `${String(pruned).padStart(6, '0')}.jsonl`)) fail(8, 'no event for the segments that are only hashes');
    if (count === 0) fail(8, 'cut off: there is no log');
    for (const a of anchors) {
      if (a.size > tree.size) fail(8, `cut off: ${tree.size} records, the anchor is of ${a.size}`);
      if (a.size && at.get(a.size)?.root !== a.root) fail(8, `the first ${a.size} records are not those of the anchor`);
      if (!(a.size ? at.get(a.size).hashed : pruned) && !notes.has(a.note)) fail(8, 'the anchor is no longer among the checkpoints');
    }
  } catch (e) {
    fail(e.exit === 5 && !signed && !ours() ? 5 : e.code ? 1 : 8, `${where}: ${e.message}`); // e.code: can't be read
  }
  if (tree.size > last.size) notesOut.push(`${tree.size - last.size} records after the newest checkpoint`);
  return { last, notesOut };
}
try {
  const [dir, key, anchorFile] = process.argv.slice(2);
  if (!key) fail(2, 'usage: verify-log.mjs AUDIT_DIR KEY [ANCHORS]');
  const verifier = parseVerifier(key), anchors = [], not = [];
  for (const note of anchorFile ? notesIn(anchorFile) : []) try { anchors.push(open(verifier, note)); } catch (e) { not.push(`${note.split('\n')[0]}: ${e.message}`); }
  const { last, notesOut } = check(dir, verifier, anchors);
  console.log(`ok: size ${last.size}, root ${last.root}`);
  if (anchors.length) console.log(`anchors: ${anchors.length} fit, the newest of ${Math.max(...anchors.map((a) => a.size))} records`);
  for (const n of notesOut) console.log(`note: ${n}`);
  if (not.length) fail(5, `${not.length} anchors are not of this log; the first: ${not[0]}`);
} catch (e) {
  console.error(e.message);
  process.exitCode = e.exit ?? 1;
}
