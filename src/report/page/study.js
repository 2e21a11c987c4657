// Draws the training study (examples/ddp/characterize.py): what sealing costs an iteration, by model, ranks and bucket size,
// where the time goes, and what is published of GPUs beside it. The tools are the page's.
'use strict';
const drawStudy = ({make, section, tag, short, table, chart, bars, axis, colour}, file, run) => {
  const rows = run.rows;
  const distinct = list => [...new Set(list)];
  const ascending = list => distinct(list).sort((a, b) => a - b);
  const times = value => value.toFixed(2) + 'x';
  const variants = [
    {name: 'Gloo', backend: 'gloo', mode: 'plain', colour: 'engine'},
    {name: 'Sealane, plain', backend: 'sealane', mode: 'plain', colour: 'parallel'},
    {name: 'Sealane, sealed', backend: 'sealane', mode: 'sealed', colour: 'sealane'},
  ];
  const find = (model, ranks, bucket, variant) => rows.find(row => row.model === model && row.ranks === ranks &&
    row.bucket_mb === bucket && row.backend === variant.backend && row.mode === variant.mode);
  const sealed = rows.filter(row => row.mode === 'sealed');
  const exposed = row => row.exposed_ms ?? Math.max(0, row.iteration_ms - row.compute_ms);

  // The bucket size of most rows is the study's own; the others are its sweep.
  const count = bucket => sealed.filter(row => row.bucket_mb === bucket).length;
  const buckets = ascending(sealed.map(row => row.bucket_mb));
  const usual = [...buckets].sort((a, b) => count(b) - count(a))[0];
  const plainly = sealed.filter(row => row.bucket_mb === usual);
  const models = distinct(plainly.map(row => row.model));
  const sizes = ascending(plainly.map(row => row.ranks));
  const most = sizes[sizes.length - 1];
  const shades = ['off', 'async', 'engine', 'parallel', 'sealane', 'stock'];  // purple is for what is published

  const at = section('Training study: what sealing costs an iteration', 'measured');
  const machine = run.machine ?? {};
  at.append(make('p', {class: 'note'}, [file.split('/').pop(), machine.cpu, machine.cores && machine.cores + ' cores',
    machine.torch && 'PyTorch ' + machine.torch, machine.threads_per_rank && machine.threads_per_rank + ' thread per rank']
    .filter(Boolean).join(' · ') + '. Real models on generated data; one iteration of each variant per round, ratios taken within rounds.'));
  if (run.differs) at.append(make('p', {}, run.differs));
  const grid = make('div', {class: 'grid'});
  at.append(grid);

  // --- ratios: a bar from the first to the third quartile, a tick at the median, a line at 1
  const ratioMarks = {
    id: 'ratioMarks',
    afterDatasetsDraw(drawn) {
      const {ctx, chartArea, scales} = drawn;
      const line = (from, until, value) => {
        const y = scales.y.getPixelForValue(value);
        if (y < chartArea.top || y > chartArea.bottom) return;
        ctx.beginPath();
        ctx.moveTo(from, y);
        ctx.lineTo(until, y);
        ctx.stroke();
      };
      ctx.save();
      ctx.strokeStyle = colour('ink');
      ctx.setLineDash([4, 3]);
      line(chartArea.left, chartArea.right, 1);
      ctx.setLineDash([]);
      ctx.lineWidth = 2.5;
      drawn.data.datasets.forEach((set, i) => {
        if (!drawn.isDatasetVisible(i)) return;
        drawn.getDatasetMeta(i).data.forEach((bar, j) => {
          if (set.medians[j] !== null) line(bar.x - bar.width / 2 - 1, bar.x + bar.width / 2 + 1, set.medians[j]);
        });
      });
      ctx.restore();
    },
  };
  const ratios = (title, field, caption) => {
    const quartiles = row => row ? [row[field + '_q1'] ?? row[field], row[field + '_q3'] ?? row[field]] : null;
    const config = bars(models, sizes.map((ranks, i) => ({
      label: ranks + (ranks === 1 ? ' rank' : ' ranks'), name: shades[i % shades.length],
      data: models.map(model => quartiles(find(model, ranks, usual, variants[2])))})), 'times', {y: {beginAtZero: false, grace: '8%'}});
    config.data.datasets.forEach((set, i) => {
      set.medians = models.map(model => find(model, sizes[i], usual, variants[2])?.[field] ?? null);
      set.minBarLength = 2;
      set.borderRadius = 2;
    });
    config.options.plugins.legend.display = true;
    config.options.plugins.tooltip = {callbacks: {label: item => `${item.dataset.label}: ${times(item.dataset.medians[item.dataIndex])}`}};
    config.plugins = [ratioMarks];
    chart(grid, title, config, caption);
  };
  ratios('Sealed : our plain mode', 'slowdown_vs_plain',
    `What encryption and authentication add. Buckets of ${usual} MB; tick: median, bar: middle half of the rounds.`);
  ratios('Sealed : plain Gloo', 'slowdown_vs_gloo',
    'What changes for who used PyTorch’s CPU backend, unprotected, until now. Below the line: sealed training is faster.');

  // --- beside what is published
  const published = run.published ?? [];
  const middle = list => [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) / 2)];
  const here = plainly.filter(row => row.ranks === most).map(row => row.slowdown_vs_plain);
  if (published.length && here.length) {
    const points = [
      ...published.map(point => ({label: [`${point.model}, ${point.ranks} GPUs`, point.buckets ? 'buckets: ' + point.buckets + (/^\d/.test(point.buckets) ? ' MiB' : '') : 'PUBLISHED'],
        value: point.slowdown, name: 'pipellm'})),
      {label: [`worst of ${here.length} models`, `${most} CPU ranks`], value: Math.max(...here), name: 'sealane'},
      {label: [`median of ${here.length} models`, `${most} CPU ranks`], value: middle(here), name: 'sealane'},
    ];
    const config = bars(points.map(point => point.label), [{label: 'slowdown', data: points.map(point => point.value)}], '',
      {indexAxis: 'y', x: {type: 'logarithmic', min: 0.5, max: 100, title: {display: true, text: 'times the unprotected iteration'},
        afterBuildTicks: scale => { scale.ticks = [0.5, 1, 2, 5, 10, 20, 50, 100].map(value => ({value})); }, ticks: {callback: value => value + 'x'}}});
    config.data.datasets[0].base = 1;
    config.data.datasets[0].backgroundColor = points.map(point => colour(point.name));
    config.options.plugins.tooltip = {callbacks: {label: item => times(points[item.dataIndex].value)}};
    config.plugins = [{id: 'values', afterDatasetsDraw(drawn) {
      const {ctx} = drawn;
      ctx.save();
      ctx.fillStyle = colour('ink');
      ctx.font = '12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      drawn.getDatasetMeta(0).data.forEach((bar, i) => ctx.fillText(times(points[i].value), bar.x + 6, bar.y));
      ctx.restore();
    }}];
    const figure = chart(grid, 'Beside what is published', config).canvas.closest('figure');
    figure.append(make('figcaption', {}, tag('published'), ` ${distinct(published.map(point => point.source ?? '')).filter(Boolean).join(', ')}, emulated GPU TEEs. `,
      tag('measured'), ` sealed : plain, buckets of ${usual} MB.`));
  }

  // --- by bucket size
  if (buckets.length > 1) {
    const swept = distinct(sealed.filter(row => row.bucket_mb !== usual).map(row => row.model + '|' + row.ranks))
      .map(name => ({model: name.slice(0, name.lastIndexOf('|')), ranks: Number(name.slice(name.lastIndexOf('|') + 1))}));
    const columns = [...buckets.map(String), ...distinct(published.map(point => point.buckets).filter(Boolean))].filter((name, i, all) => all.indexOf(name) === i);
    const line = (label, name, data, dashed) => ({label, data, borderColor: colour(name), backgroundColor: colour(name), borderWidth: 2,
      borderDash: dashed ? [5, 4] : [], pointRadius: 4, pointStyle: dashed ? 'rectRot' : 'circle', spanGaps: true});
    const names = distinct(published.filter(point => point.buckets).map(point => point.model));
    const sets = [
      ...swept.map(({model, ranks}, i) => line(`${model}, ${ranks} ranks`, shades[(i + 2) % shades.length],
        columns.map(column => find(model, ranks, Number(column), variants[2])?.slowdown_vs_plain ?? null), false)),
      ...names.map(model => line(`PUBLISHED: ${model}, GPUs`, 'pipellm',
        columns.map(column => published.find(point => point.model === model && point.buckets === column)?.slowdown ?? null), true)),
    ];
    chart(grid, 'By bucket size', {type: 'line', data: {labels: columns, datasets: sets}, options: {
      scales: {x: axis('bucket_cap_mb'), y: axis('sealed : plain', {type: 'logarithmic', min: 0.5, max: names.length ? 100 : undefined,
        afterBuildTicks: scale => { scale.ticks = [0.5, 1, 2, 5, 10, 20, 50, 100].map(value => ({value})); }, ticks: {callback: value => value + 'x'}})},
      plugins: {legend: {position: 'bottom', labels: {usePointStyle: true, boxHeight: 7}}}}},
    'A fit of the published points gives every message there a high fixed cost, which large buckets avoid. Here a message is a record of at most 64 KiB, whatever the bucket.');
  }

  // --- where the time goes
  const breakdown = (title, parts, y, caption) => {
    const sets = variants.flatMap(variant => parts.map(part => ({
      label: part.label ? `${part.label}` : variant.name, stack: variant.name, maxBarThickness: 20, backgroundColor: colour(part.colour ?? variant.colour),
      data: models.map(model => {
        const row = find(model, most, usual, variant);
        return row ? part.value(row, find(model, most, usual, variants[0]) ?? row) : null;
      })})));
    const seen = new Set();
    chart(grid, title, {type: 'bar', data: {labels: models, datasets: sets}, options: {
      scales: {x: {stacked: true, grid: {display: false}}, y: axis(y, {stacked: true})},
      plugins: {legend: {position: 'bottom', labels: {filter: item => !seen.has(item.text) && !!seen.add(item.text) || sets.findIndex(set => set.label === item.text) === item.datasetIndex}}}}}, caption);
  };
  breakdown(`Where an iteration goes, ${most} ranks`, [
    {label: 'compute', colour: 'off', value: (row, gloo) => 100 * Math.min(row.compute_ms, row.iteration_ms) / gloo.iteration_ms},
    {value: (row, gloo) => 100 * Math.min(exposed(row), row.iteration_ms) / gloo.iteration_ms},
  ], '% of Gloo’s iteration', 'Coloured: exposed communication, what an iteration takes longer than its computation alone. It includes waiting for other ranks and for a core.');
  breakdown(`Communication alone, ${most} ranks`, [{value: row => row.comm_ms}], 'ms',
    'All buckets of an iteration, one after the other, with nothing else to do.');

  // --- the numbers
  const list = [];
  for (const ranks of ascending(sealed.map(row => row.ranks))) {
    list.push([ranks + (ranks === 1 ? ' rank' : ' ranks')]);
    for (const row of sealed.filter(each => each.ranks === ranks).sort((a, b) => a.bucket_mb - b.bucket_mb || models.indexOf(a.model) - models.indexOf(b.model))) {
      const three = variants.map(variant => find(row.model, ranks, row.bucket_mb, variant));
      const all = value => three.map(each => each ? short(Math.round(value(each))) : '–').join(' / ');
      const spread = field => times(row[field]) + (row[field + '_q1'] ? ` (${row[field + '_q1'].toFixed(2)}–${row[field + '_q3'].toFixed(2)})` : '');
      list.push([row.model, row.bucket_mb, all(each => each.iteration_ms), Math.round(row.compute_ms), all(exposed), all(each => each.comm_ms),
        row.overlap == null ? '' : Math.round(100 * row.overlap) + ' %', row.sealed_messages, (row.sealed_bytes / 2 ** 20).toFixed(1),
        spread('slowdown_vs_plain'), spread('slowdown_vs_gloo'), row.rounds, row.others_cores ?? '']);
    }
  }
  at.append(make('h3', {}, 'All points: Gloo / Sealane plain / sealed, ms'),
    make('div', {class: 'tight'}, table(['model', 'MB', 'iteration', 'compute', 'exposed', 'comm.', 'hidden', 'messages', 'MiB', 'sealed : plain', 'sealed : Gloo', 'rounds', 'others'], list)),
    make('p', {class: 'note'}, 'MB: bucket_cap_mb. Comm.: all buckets alone. Messages and MiB: sealed per iteration by one rank. Hidden: the part of the sealed communication that does not lengthen the iteration. ' +
      'In brackets: quartiles over the rounds. Others: the cores that everybody else on the machine took meanwhile.'));
};
