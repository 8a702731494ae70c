// SPDX-License-Identifier: Apache-2.0
// Live refresh, half a second without ears, and j and k. The page works without
// it but for the first, and nothing is decided here.
'use strict';
(() => {
  const deaf = 500;
  let hears;

  // What appeared a moment ago, or moved, can't have been meant.
  function still() {
    hears = performance.now() + deaf;
    document.body.classList.add('deaf');
    setTimeout(() => {
      if (performance.now() >= hears - 1) document.body.classList.remove('deaf');
    }, deaf);
  }
  still();
  for (const what of ['click', 'submit']) {
    document.addEventListener(what, (e) => {
      const answers = e.target.closest && e.target.closest('form') && (what === 'submit' || e.target.closest('button, label, input[type=checkbox]'));
      if (answers && e.target.closest('.card, .plan, [data-live]') && performance.now() < hears) {
        e.preventDefault();
        e.stopPropagation();
      }
    }, true);
  }

  // merge takes over what is new of a list, and leaves alone what is there: a
  // text that is being typed, what has the focus, what is being read.
  function merge(old, next) {
    const have = new Map();
    for (const n of old.children) have.set(n.dataset.key, n);
    const want = [...next.children].map((n) => have.get(n.dataset.key) || document.importNode(n, true));
    const keep = new Set(want);
    let changed = false;
    for (const n of [...old.children]) {
      if (keep.has(n)) continue;
      if (n.contains(document.activeElement)) document.getElementById('main').focus();
      n.remove();
      changed = true;
    }
    let at = old.firstElementChild;
    for (const n of want) {
      if (n === at) {
        at = at.nextElementSibling;
        continue;
      }
      old.insertBefore(n, at);
      changed = true;
    }
    return changed;
  }

  let busy = false;
  let again = false;
  async function look() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { redirect: 'error', cache: 'no-store' });
      if (answer.status === 401) {
        location.reload();
        return;
      }
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
      document.title = next.title;
      for (const o of document.querySelectorAll('[data-text]')) {
        const n = next.querySelector(`[data-text="${o.dataset.text}"]`);
        if (n && n.textContent !== o.textContent) o.textContent = n.textContent;
      }
      for (const o of document.querySelectorAll('[data-live]')) {
        const n = next.querySelector(`[data-live="${o.dataset.live}"]`);
        if (!n || !merge(o, n)) continue;
        still();
        if (o.dataset.live === 'cards') document.querySelector('[data-passing]')?.remove();
      }
    } catch {
      // The next event tries again.
    } finally {
      busy = false;
      if (again) {
        again = false;
        setTimeout(look, 300);
      }
    }
  }

  const events = document.body.dataset.events;
  if (events) {
    const lost = document.getElementById('lost');
    let source;
    let opened = false;
    let left = false;
    function connect() {
      source = new EventSource(events);
      source.onmessage = look;
      source.onopen = () => {
        lost.textContent = '';
        if (opened) look();
        opened = true;
      };
      source.onerror = () => {
        if (left) return;
        const text = "not connected: nothing here is current, and calls don't wait; run postern page";
        if (lost.textContent !== text) lost.textContent = text;
        if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
        opened = true;
        look(); // which finds a session that has ended
        setTimeout(connect, 3000);
      };
    }
    connect();
    addEventListener('pagehide', () => {
      left = true;
      source.close();
    });
    addEventListener('pageshow', (e) => {
      if (e.persisted) location.reload();
    });
  }

  // A tick for all is seen on each, and is for none once one of them is taken back.
  document.addEventListener('change', (e) => {
    const form = e.target.closest('form');
    if (e.target.name === 'all') {
      for (const each of form.querySelectorAll('input[name=tick]')) each.checked = e.target.checked;
    } else if (e.target.name === 'tick' && !e.target.checked) {
      form.querySelector('input[name=all]').checked = false;
    }
  });

  document.addEventListener('keydown', (e) => {
    if ((e.key !== 'j' && e.key !== 'k') || e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input:not([type=checkbox])')) return;
    const cards = [...document.querySelectorAll('.card[tabindex]')];
    const here = cards.findIndex((c) => c.contains(document.activeElement));
    const next = cards[e.key === 'j' ? Math.min(here + 1, cards.length - 1) : Math.max(here - 1, 0)];
    if (next) next.focus();
  });
})();
