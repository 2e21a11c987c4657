// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does one bar far below nothing leave the others of its chart to be seen? Usage: charts.js SEALANE
//
// The page's own script, with a document that only remembers and a Chart that only takes notes. What needs a browser
// is in browser.py.
'use strict';
const assert = require('assert');
const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const vm = require('vm');

class Node {
  constructor(tag = '') { Object.assign(this, {tag, attributes: {}, children: [], dataset: {}, style: {}, own: ''}); }
  setAttribute(key, value) { this.attributes[key] = value; }
  append(...children) { this.children.push(...children); }
  addEventListener() {}
  set textContent(text) { this.own = text; }
  get textContent() { return this.own + this.children.map(each => each.textContent ?? String(each)).join(''); }
}

// Charts by title, and all that the page says.
function drawn(page) {
  const html = fs.readFileSync(page, 'utf8');
  const scripts = [...html.matchAll(/<script( [^>]*)?>\n?([^]*?)<\/script>/g)];
  const data = scripts.find(each => (each[1] ?? '').includes('id="data"'))[2];
  const code = scripts.filter(each => !each[1]).slice(1).map(each => each[2]);  // the first one is the library
  const known = {};
  const charts = {};
  class Chart {
    constructor(canvas, config) { charts[canvas.attributes['aria-label']] = config; }
    resize() {}
  }
  Object.assign(Chart, {defaults: {font: {}}, instances: {}});
  const document = {
    documentElement: new Node(), body: new Node(), createElement: tag => new Node(tag),
    createElementNS: (_, tag) => new Node(tag),
    getElementById: id => (known[id] ??= Object.assign(new Node(), id === 'data' ? {own: data} : {})),
  };
  const world = {
    document, Chart, Node, addEventListener() {}, setTimeout() {}, location: {},
    getComputedStyle: () => ({getPropertyValue: () => '#888', fontFamily: ''}),
    matchMedia: () => ({matches: false, addEventListener() {}}),
  };
  world.window = world;
  vm.createContext(world);
  for (const each of code) vm.runInContext(each, world);
  return {charts, text: known.main.textContent};
}

const sealane = path.resolve(process.argv[2]);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sealane-charts-'));
try {
  const page = workload => {
    const run = (...words) => execFileSync(sealane, words, {cwd: scratch, stdio: ['ignore', 'ignore', 'inherit']});
    run('estimate', '--workload', workload, '--draws', '0', '--json', workload + '.json');
    run('report', workload + '.json', '-o', workload + '.html');
    return drawn(path.join(scratch, workload + '.html'));
  };
  const losses = ({charts}) => charts['Loss by policy'].data.datasets.flatMap(each => each.data);
  const axis = ({charts}) => charts['Loss by policy'].options.scales.y;
  const goesOn = 'Bars that reach the lower edge go on';

  const far = page('load');
  const least = Math.min(...losses(far));
  assert(least < -50, 'find another workload for this test: ' + losses(far));
  assert(axis(far).min > least && axis(far).min >= -50 && axis(far).suggestedMax === 100, JSON.stringify(axis(far)));
  assert(far.text.includes(goesOn), far.text);

  const usual = page('decode');
  assert(Math.min(...losses(usual)) > -20 && axis(usual).min === undefined, JSON.stringify(axis(usual)));
  assert(!usual.text.includes(goesOn), usual.text);
  console.log(`ok: a loss of ${least.toFixed(0)} % ends at ${axis(far).min} %`);
} finally {
  fs.rmSync(scratch, {recursive: true});
}
