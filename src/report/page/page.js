// Draws the page from the data in it. No network, no storage; one pass from top to bottom.
'use strict';
(() => {
  const {version, runs} = JSON.parse(document.getElementById('data').textContent);
  const main = document.getElementById('main');
  const style = getComputedStyle(document.documentElement);
  const colour = name => style.getPropertyValue('--' + name).trim() || style.getPropertyValue('--off').trim();
  const spare = ['parallel', 'sealane', 'pipellm', 'engine', 'stock', 'async', 'off'];
  for (const each of runs) each.run.kind = each.kind;  // whatever the file says of itself
  const of = kind => runs.filter(each => kind(each.run));

  // --- small helpers
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.filter(child => child !== null));
    return element;
  };
  const tag = kind => make('span', {class: 'tag ' + kind}, kind.toUpperCase());
  const section = (title, kind, text) => {
    const at = make('section', {}, make('h2', {}, title + ' ', kind ? tag(kind) : null));
    if (text) at.append(make('p', {class: 'note'}, text));
    main.append(at);
    return at;
  };
  const short = value => {
    if (typeof value !== 'number') return String(value ?? '');
    if (value === 0) return '0';
    if (Number.isInteger(value)) return value.toLocaleString('en-US');
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
    return value.toFixed(Math.abs(value) >= 100 ? 1 : 2);
  };
  // A row of one cell begins a group. Columns that are empty in every row are left out; those of numbers go to the right.
  const table = (titles, rows) => {
    const full = rows.filter(row => row.length > 1);
    const text = cell => cell instanceof Node ? cell.textContent : short(cell);
    const shown = titles.map((_, i) => i).filter(i => full.some(row => text(row[i]) !== ''));
    const numeric = i => full.every(row => /^([-+]?\d[\d,.]* ?\S*( to .*| \/ .*| \(.*)?|holds|inside|)$/.test(text(row[i])));
    const alike = i => numeric(i) ? {class: 'number'} : {};
    return make('div', {class: 'scroll'}, make('table', {},
      make('thead', {}, make('tr', {}, ...shown.map(i => make('th', alike(i), titles[i])))),
      make('tbody', {}, ...rows.map(row => row.length === 1
        ? make('tr', {class: 'group'}, make('td', {colspan: shown.length}, row[0]))
        : make('tr', {}, ...shown.map(i => make('td', alike(i), row[i] instanceof Node ? row[i] : short(row[i]))))))));
  };

  // --- charts
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  let drawn = 0;
  const theme = () => {
    Chart.defaults.color = colour('quiet');
    Chart.defaults.borderColor = colour('line');
  };
  theme();
  const chart = (at, title, config, caption) => {
    const canvas = make('canvas', {role: 'img', 'aria-label': title});
    at.append(make('figure', {}, make('h3', {}, title), make('div', {class: 'plot'}, canvas),
      caption ? make('figcaption', {}, caption) : null));
    const made = new Chart(canvas, config);
    ++drawn;
    return made;
  };
  const axis = (text, more = {}) => ({title: {display: true, text}, ...more});
  const bars = (labels, series, y, more = {}) => ({
    type: 'bar',
    data: {labels, datasets: series.map(({label, data, name}, i) => ({
      label, data, backgroundColor: colour(name ?? spare[i % spare.length]), borderRadius: 3, maxBarThickness: 34}))},
    options: {scales: {x: {grid: {display: false}, ...more.x}, y: axis(y, more.y)}, indexAxis: more.indexAxis ?? 'x',
      plugins: {legend: {display: series.length > 1 || Boolean(series[0]?.label), position: 'bottom'}}},
  });
  const lines = (series, x, y, more = {}) => ({
    type: 'line',
    data: {datasets: series.map(({label, data, name}, i) => ({
      label, data, borderColor: colour(name ?? spare[i % spare.length]),
      backgroundColor: colour(name ?? spare[i % spare.length]), borderWidth: 2, pointRadius: 3, tension: 0}))},
    options: {scales: {x: axis(x, {type: 'logarithmic', ticks: {callback: more.tick ?? short, minRotation: 0, autoSkip: true},
      // Labels where there are points.
      afterBuildTicks: scale => { scale.ticks = [...new Set(series.flatMap(each => each.data.map(point => point.x)))].sort((a, b) => a - b).map(value => ({value})); },
      ...more.x}), y: axis(y, more.y)},
      plugins: {legend: {position: 'bottom'}}},
  });
  const size = bytes => bytes >= 2 ** 30 ? short(bytes / 2 ** 30) + ' GiB' : bytes >= 2 ** 20
    ? short(bytes / 2 ** 20).replace('.00', '') + ' MiB' : bytes >= 1024 ? short(bytes / 1024).replace('.00', '') + ' KiB' : bytes + ' B';

  // Where a prediction lies four times out of five, if it says so.
  const range = (pair, digits, unit) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite)
    ? `${pair[0].toFixed(digits)} to ${pair[1].toFixed(digits)}${unit}` : '';

  // What a unit of work costs, where cores and GPUs have a price.
  const priceTable = run => {
    const priced = Object.entries(run.prices?.policies ?? {}).filter(([, price]) => Number.isFinite(price?.together));
    if (!priced.length) return null;
    const of = name => order(run).indexOf(name);
    priced.sort((a, b) => of(a[0]) - of(b[0]));
    // Four digits of the whole price; its parts no finer.
    const whole = Math.max(...priced.map(([, price]) => price.together), 1e-9);
    const digits = Math.max(0, Math.min(9, 4 - Math.ceil(Math.log10(whole))));
    const figure = value => Number(value).toFixed(digits);
    return table(['price of a ' + run.prices.per, 'GPUs', 'cores', 'together', '80 %'], priced.map(([name, price]) => [
      name, figure(price.gpus), figure(price.cores), figure(price.together),
      Array.isArray(price.together_80) ? price.together_80.map(figure).join(' to ') : '']));
  };

  // --- serving
  const order = run => run.policy_order ?? Object.keys(run.policies);
  const label = run => [run.workload.split('/').pop(), run.model, ...Object.entries(run.options ?? {})
    .map(([key, value]) => key + ' ' + value)].filter(Boolean);
  // For axes: what tells a run from the others, one thing per line.
  const brief = (run, list) => label(run).filter((part, i) => i < 2 ||
    list.some(other => other.run !== run && other.run.workload === run.workload && other.run.model === run.model && !label(other.run).includes(part)));
  const serving = of(run => run.kind === 'estimate' && run.workload !== 'ddp');
  const policiesOf = list => [...new Set(list.flatMap(each => order(each.run)))];

  if (serving.length) {
    const at = section('Serving: what confidential mode takes', 'simulated',
      'Loss of throughput (or added share of time) against the same program with confidential mode off. Less is better.');
    const grid = make('div');
    at.append(grid);
    const named = policiesOf(serving).filter(policy => policy !== 'off');
    const lowest = -20;
    const below = serving.some(each => named.some(policy => each.run.policies[policy]?.loss_pct < lowest));
    chart(grid, 'Loss by policy', bars(serving.map(each => brief(each.run, serving)),
      named.map(policy => ({label: policy, name: policy, data: serving.map(each => each.run.policies[policy]?.loss_pct ?? null)})),
      'loss, %', {y: {...(below ? {min: lowest} : {}), suggestedMax: 100}}),
      below ? 'Bars that reach the lower edge go on: several cores stage memory there that one core stages with confidential mode off. The table has the figures.' : '');
    const withHits = serving.filter(each => Object.values(each.run.policies).some(policy => policy.hit_rate > 0));
    if (withHits.length) {
      const guess = named.filter(policy => withHits.some(each => each.run.policies[policy]?.hit_rate > 0));
      chart(grid, 'Bulk copies that had been foreseen', bars(withHits.map(each => brief(each.run, withHits)),
        guess.map(policy => ({label: policy, name: policy, data: withHits.map(each => 100 * (each.run.policies[policy]?.hit_rate ?? 0))})),
        'hit rate, %', {y: {max: 100, min: 0}}));
    }
    for (const each of serving) {
      const run = each.run;
      at.append(make('h3', {}, label(run).join(' · ') + ' on ' + run.platform), table(
        ['policy', 'throughput', 'loss', '80 %', 'hit rate', 'sealed', 'cores busy', 'p50', 'p99'],
        order(run).map(name => {
          const policy = run.policies[name];
          return [name, policy.unit ? short(policy.throughput) + ' ' + policy.unit : short(policy.time_s) + ' s',
            policy.loss_pct.toFixed(1) + ' %', range(policy.loss_pct_80, 1, ' %'), policy.hit_rate ? (100 * policy.hit_rate).toFixed(1) + ' %' : '',
            policy.sealed_bytes ? short(policy.sealed_bytes / 1e9) + ' GB' : '', policy.worker_cores ? policy.worker_cores.toFixed(1) : '',
            policy.latency_p50_ms ? short(policy.latency_p50_ms) + ' ms' : '', policy.latency_p99_ms ? short(policy.latency_p99_ms) + ' ms' : ''];
        })), priceTable(run) ?? '');
    }
  }

  // --- what each part buys
  const ladder = ['stock', 'engine', 'async', 'parallel', 'sealane'];
  const ladders = serving.filter(each => ladder.every(step => each.run.policies[step]));
  if (ladders.length) {
    const at = section('What each part buys', 'simulated',
      'The same program with one more part switched on at a time: a fast engine, copies that do not block, all cores on one copy, and sealing ahead of the request.');
    const grid = make('div', {class: 'grid'});
    at.append(grid);
    const titles = ['stock', '+ engine', '+ asynchrony', '+ parallelism', '+ speculation'];
    for (const each of ladders) {
      const config = bars(titles, [{label: 'loss', data: ladder.map(step => each.run.policies[step].loss_pct)}], '',
        {indexAxis: 'y', x: {title: {display: true, text: 'loss, %'}, min: 0, suggestedMax: 100}});
      config.data.datasets[0].backgroundColor = ladder.map(colour);
      chart(grid, label(each.run).join(' · '), config);
    }
  }

  // --- loss by size and by concurrency
  const curves = (title, group, xOf, x, tick) => {
    const groups = Object.entries(Object.groupBy ? Object.groupBy(serving, group) : serving.reduce((all, each) => {
      (all[group(each)] ??= []).push(each); return all; }, {}));
    for (const [name, list] of groups) {
      const points = list.filter(each => xOf(each.run) !== undefined);
      if (new Set(points.map(each => xOf(each.run))).size < 2) continue;
      points.sort((a, b) => xOf(a.run) - xOf(b.run));
      const at = document.getElementById('curves') ?? section('Loss by size and concurrency', 'simulated');
      at.id = 'curves';
      chart(at, title + ': ' + name, lines(policiesOf(points).filter(policy => policy !== 'off').map(policy => ({
        label: policy, name: policy, data: points.filter(each => each.run.policies[policy])
          .map(each => ({x: xOf(each.run), y: each.run.policies[policy].loss_pct}))})), x, 'loss, %', {tick, y: {min: 0}}));
    }
  };
  curves('By concurrency', each => each.run.workload + ' ' + (each.run.model ?? ''), run => run.options?.concurrency && Number(run.options.concurrency), 'sequences at a time', String);
  curves('By model size', each => each.run.workload, run => run.model_bytes && run.model_bytes / 1e9, 'model, GB');

  // --- timelines
  const timed = serving.filter(each => order(each.run).some(name => each.run.policies[name].timeline?.length));
  for (const each of timed.slice(0, 2)) {
    const at = section('The last 200 ms, side by side: ' + label(each.run).join(' · '), 'simulated',
      'Each block is one policy, on the same scale of time. Dense bars are many short jobs drawn as one.');
    const kinds = {kernel: 'sealane', transfer: 'parallel', 'seal ahead': 'pipellm', seal: 'engine', open: 'async', publish: 'off',
      'seal and copy': 'stock', pad: 'study', 'copy to device': 'stock', 'copy to host': 'stock', synchronise: 'off', launch: 'line', call: 'line'};
    const used = new Set();
    for (const name of order(each.run)) {
      const bars = each.run.policies[name].timeline;
      if (!bars?.length) continue;
      const figure = make('figure', {}, make('h3', {}, name));
      const tracks = [...new Set(bars.map(bar => bar[0]))];
      for (const track of tracks) {
        const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
        svg.setAttribute('viewBox', '0 0 200 10');
        svg.setAttribute('preserveAspectRatio', 'none');
        for (const [, what, from, until] of bars.filter(bar => bar[0] === track)) {
          used.add(what);
          const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
          for (const [key, value] of Object.entries({x: from, y: 0, height: 10, width: Math.max(until - from, .15), fill: colour(kinds[what] ?? 'off')})) rect.setAttribute(key, value);
          const hint = document.createElementNS('http://www.w3.org/2000/svg', 'title');
          hint.textContent = `${what}, ${(until - from).toFixed(3)} ms`;
          rect.append(hint);
          svg.append(rect);
        }
        figure.append(make('div', {class: 'lane'}, make('span', {class: 'name'}, track), svg));
      }
      figure.append(make('div', {class: 'axis'}, ...[0, 50, 100, 150, 200].map(ms => make('span', {}, ms + ' ms'))));
      at.append(figure);
    }
    const keys = make('p', {class: 'keys'});
    for (const what of used) keys.append(make('span', {}, make('i', {style: 'background:' + colour(kinds[what] ?? 'off')}), what));
    at.append(keys);
  }

  // --- GPUs that share a host
  const fleets = of(run => run.kind === 'estimate' && run.fleet?.points?.length);
  if (fleets.length) {
    const at = section('How many cores a GPU needs', 'simulated',
      'GPUs of one host share its cores and the bandwidth of its memory. Loss of throughput by the cores that each GPU has, the program’s own among them.');
    const grid = make('div', {class: 'grid'});
    at.append(grid);
    for (const {run} of fleets) {
      const names = order(run).filter(name => name !== 'off');
      chart(grid, `${run.workload} ${run.model ?? ''}: loss by cores for each GPU`, lines(names.map(name => ({
        label: name, name, data: run.fleet.points.map(point => ({x: point.cores_per_gpu, y: point.loss_pct[name]}))})), 'cores for each GPU', 'loss, %',
        {tick: String, y: {min: 0}}),
        run.platform + (run.fleet.cores_enough ? `; ${run.fleet.cores_enough} are enough for a loss of ${run.fleet.goal_pct} %` : `; no number keeps the loss at ${run.fleet.goal_pct} %`));
      at.append(make('h3', {}, `${run.workload} ${run.model ?? ''} on ${run.platform}: loss by cores for each GPU`), table(
        ['cores', 'GPUs', ...names.flatMap(name => [name, '80 %'])], run.fleet.points.map(point => [
          String(point.cores_per_gpu), String(point.gpus),
          ...names.flatMap(name => [Number(point.loss_pct[name]).toFixed(1) + ' %', range(point.loss_pct_80?.[name], 1, ' %')])])));
    }
  }

  // --- training
  const training = of(run => run.kind === 'estimate' && run.workload === 'ddp');
  if (training.length) {
    const at = section('Data-parallel training', 'simulated',
      'One iteration against the same with confidential mode off. “study” is the emulated path of the GPU-TEE study, calibrated on its 41.6x; “stock” are the physical costs of today’s path.');
    const grid = make('div', {class: 'grid'});
    at.append(grid);
    for (const each of training) {
      const run = each.run;
      const names = order(run);
      if (run.scaling?.length) {
        chart(grid, `${run.model}: slowdown by number of GPUs`, lines(names.filter(name => name !== 'off').map(name => ({
          label: name, name, data: run.scaling.map(point => ({x: point.gpus, y: point[name]}))})), 'GPUs', 'times “off”',
          {tick: String, x: {min: 1, max: 1024}, y: {type: 'logarithmic', min: 1}}),
          `${run.platform}, link ${run.link}; sealed by ${run.sealer} at ${short(run.seal_gb_per_s)} GB/s each` +
          (run.needed_seal_gb_per_s ? `; 1.15x needs ${short(run.needed_seal_gb_per_s)} GB/s at ${run.gpus} GPUs` : ''));
      }
      const parts = ['compute_s', 'wire_s', 'seal_s', 'verify_s', 'wait_s'];
      chart(grid, `${run.model}: where the time goes, ${run.gpus} GPUs`, bars(names, parts.map((part, i) => ({
        label: part.replace('_s', ''), name: ['off', 'parallel', 'pipellm', 'engine', 'stock'][i], data: names.map(name => run.policies[name][part])})),
        'seconds', {y: {type: 'logarithmic'}}), 'wire, seal and verify overlap with compute and each other; wait is what is left');
      at.append(make('h3', {}, `${run.model}, ${run.gpus} GPUs`), table(['policy', 'iteration', 'slowdown', '80 %', 'buckets', 'sealed messages', 'sealed'],
        names.map(name => {
          const policy = run.policies[name];
          return [name, short(policy.time_s) + ' s', policy.slowdown.toFixed(2) + ' x', range(policy.slowdown_80, 2, ' x'), policy.buckets, policy.messages, short(policy.sealed_bytes / 1e9) + ' GB'];
        })), priceTable(run) ?? '');
    }
  }

  // --- what was measured here
  for (const {file, run} of of(run => run.kind === 'study')) {
    drawStudy({make, section, tag, short, table, chart, bars, axis, colour}, file, run);
  }
  for (const {file, run} of of(run => run.kind === 'rows')) {
    const rows = run.rows?.length ? run.rows : run.results;
    const at = section('Measured: ' + file, 'measured', run.label ?? '');
    const grid = make('div', {class: 'grid'});
    at.append(grid);
    const has = key => rows.every(row => row[key] !== undefined);
    const by = (key, name) => [...new Set(rows.map(key))].map((value, i) => ({label: value, name, rows: rows.filter(row => key(row) === value)}));
    if (has('busbw_gb_s')) {
      chart(grid, `${rows[0].op ?? 'collective'}: bus bandwidth by size`, lines(by(row => row.system + ' ' + row.mode).map(({label, rows}) => ({
        label, data: rows.map(row => ({x: row.bytes, y: row.busbw_gb_s}))})), 'bytes', 'GB/s', {tick: size, y: {min: 0}}));
    } else if (has('example') && has('policy')) {
      const examples = [...new Set(rows.map(row => row.example))];
      chart(grid, 'Time by policy', bars(examples, by(row => row.policy).map(({label, rows}) => ({
        label, name: label, data: examples.map(example => rows.find(row => row.example === example)?.total_s ?? null)})), 's'));
    } else if (has('gb_s') && has('record_bytes')) {
      chart(grid, 'Rate by record size', lines(by(row => [row.engine, row.op, row.where].filter(Boolean).join(' ')).map(({label, rows}) => ({
        label, data: rows.map(row => ({x: row.record_bytes, y: row.gb_s}))})), 'record', 'GB/s', {tick: size, y: {min: 0}}));
    }
    const titles = Object.keys(rows[0]).filter(key => typeof rows[0][key] !== 'object');
    const details = make('details', {}, make('summary', {}, 'All rows'), table(titles, rows.map(row => titles.map(key => row[key]))));
    at.append(details);
  }

  // --- validation
  for (const {run} of of(run => run.kind === 'validation')) {
    const at = section('How near the model comes', 'published',
      'Published measurements next to what the model says. Points that set a parameter are marked: they are no evidence.');
    const rows = [];
    let group = '';
    for (const check of run.checks) {
      if (check.group !== group) rows.push([group = check.group]);
      const [low, high] = check.published;
      const holds = check.unit === 'holds';
      const error = make('span', Math.abs(check.error) > 25 ? {class: 'far'} : {},
        holds || check.error == null ? '' : low !== high && check.error === 0 ? 'inside' : (check.error > 0 ? '+' : '') + check.error.toFixed(1) + (check.error_unit === 'points' ? ' pts' : ' %'));
      rows.push([check.what + (check.note ? ` (${check.note})` : ''), holds ? 'holds' : (low === high ? short(low) : short(low) + ' to ' + short(high)) + ' ' + check.unit,
        holds ? (check.predicted === 1 ? 'holds' : 'does not hold') : short(check.predicted) + ' ' + check.unit, holds ? '' : range(check.predicted_80, 2, ''), error, check.calibrated ? 'calibrated' : '', check.source]);
    }
    at.append(table(['what', 'published', 'predicted', '80 %', 'error', '', 'source'], rows));
    for (const note of run.notes ?? []) at.append(make('p', {class: 'note'}, note));
  }

  // --- provenance
  const platforms = new Map(of(run => run.kind === 'estimate' && run.parameters).map(each => [each.run.platform, each.run]));
  if (platforms.size) {
    const at = section('Where the numbers come from', null, 'Every parameter of the platforms used above. Sources that begin with “assumed” are nobody’s measurement.');
    for (const [name, run] of platforms) {
      at.append(make('details', {}, make('summary', {}, name + ': ' + (run.platform_description ?? '')),
        table(['parameter', 'value', 'source'], run.parameters.map(each => [each.key, each.value, each.source]))));
    }
  }
  document.getElementById('summary').textContent = `${runs.length} result${runs.length === 1 ? '' : 's'}: ${runs.map(each => each.file.split('/').pop()).join(', ')}`;
  document.getElementById('footer').textContent = `Made by sealane ${version}. This page needs no network.`;

  // Colours are read once: a change of theme draws them again. Paper is light for a moment only, and a page that is
  // loaded anew cannot be printed.
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const drawnDark = dark.matches;
  dark.addEventListener('change', () => setTimeout(() => { if (dark.matches !== drawnDark) location.reload(); }, 1000));
  addEventListener('beforeprint', () => { for (const each of Object.values(Chart.instances)) each.resize(); });
  document.documentElement.dataset.charts = drawn;
})();
