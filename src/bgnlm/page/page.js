"use strict";
(() => {
  // ---- numbers ----------------------------------------------------------------------------------------------------
  const ROOT_PI = Math.sqrt(Math.PI);

  function erfSeries(x) {
    let term = x, sum = x;
    for (let n = 1; n < 200; n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
      if (Math.abs(term) < 1e-17 * Math.abs(sum)) break;
    }
    return (2 / ROOT_PI) * Math.exp(-x * x) * sum;
  }

  // The continued fraction of the complement, from the right of 2 on.
  function erfcTail(x) {
    let f = 0;
    for (let n = 120; n > 0; n--) f = (n / 2) / (x + f);
    return Math.exp(-x * x) / (ROOT_PI * (x + f));
  }

  const erf = x => Number.isNaN(x) ? NaN : Math.abs(x) < 2 ? erfSeries(x) : Math.sign(x) * (1 - erfcTail(Math.abs(x)));
  const erfc = x => Number.isNaN(x) ? NaN : x < -2 ? 2 - erfcTail(-x) : x < 2 ? 1 - erfSeries(x) : erfcTail(x);
  const normalCdf = z => 0.5 * erfc(-z * Math.SQRT1_2);

  const LANCZOS = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
    -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
  ];

  function logGamma(a) {
    if (a < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * a)) - logGamma(1 - a);
    if (a > 30) {
      const b = 1 / (a * a);
      return (a - 0.5) * Math.log(a) - a + 0.5 * Math.log(2 * Math.PI) + (1 / 12 - b * (1 / 360 - b / 1260)) / a;
    }
    const t = a + 6.5;
    let sum = 0.9999999999998099;
    LANCZOS.forEach((c, i) => { sum += c / (a + i); });
    return 0.5 * Math.log(2 * Math.PI) + (a - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  function betaFraction(a, b, x) {
    const tiny = 1e-300;
    let c = 1, d = 1 - ((a + b) * x) / (a + 1);
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    let h = d;
    for (let m = 1; m < 5000; m++) {
      for (const value of [
        (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
      ]) {
        d = 1 + value * d;
        d = 1 / (Math.abs(d) < tiny ? tiny : d);
        c = 1 + value / c;
        if (Math.abs(c) < tiny) c = tiny;
        h *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-15) break;
    }
    return h;
  }

  // A function of z: the distribution function of Student's t, normal without degrees of freedom.
  const known = new Map();
  function distribution(degrees) {
    if (degrees === null || degrees > 1e9) return normalCdf;
    if (!known.has(degrees)) {
      const a = degrees / 2, constant = logGamma(a + 0.5) - logGamma(a) - 0.5 * Math.log(Math.PI);
      known.set(degrees, z => {
        const square = z * z, y = square / (degrees + square), x = degrees / (degrees + square);
        if (square === 0) return 0.5;
        if (!Number.isFinite(square)) return z > 0 ? 1 : 0;
        const front = Math.exp(constant + a * Math.log1p(-y) + 0.5 * Math.log(y));
        const tail = y < 1.5 / (a + 2.5)
          ? 0.5 - front * betaFraction(0.5, a, y)
          : (0.5 * front * betaFraction(a, 0.5, x)) / a;
        return z > 0 ? 1 - tail : tail;
      });
    }
    return known.get(degrees);
  }

  // The place where an increasing function crosses a level, by false position with bisection as its guard.
  function solve(fn, level, low, high) {
    let a = low, b = high, fa = fn(a) - level, fb = fn(b) - level, side = 0;
    for (let i = 0; i < 60 && fa > 0; i++) { a -= 2 * (b - a); fa = fn(a) - level; }
    for (let i = 0; i < 60 && fb < 0; i++) { b += 2 * (b - a); fb = fn(b) - level; }
    const width = high - low;
    for (let i = 0; i < 200 && b - a > 1e-12 * width && b - a > 1e-15 * (Math.abs(a) + Math.abs(b)); i++) {
      let c = i % 4 === 3 ? (a + b) / 2 : (a * fb - b * fa) / (fb - fa);
      if (!(c > a && c < b)) c = (a + b) / 2;
      const fc = fn(c) - level;
      if (fc === 0) return c;
      if (fc < 0) { a = c; fa = fc; if (side < 0) fb /= 2; side = -1; } else { b = c; fb = fc; if (side > 0) fa /= 2; side = 1; }
    }
    return (a + b) / 2;
  }

  // ---- the models -------------------------------------------------------------------------------------------------
  const number = value => value === "inf" ? Infinity : value === "-inf" ? -Infinity : value === "nan" ? NaN : value;
  const OPERATIONS = {
    neg: x => -x, add: (x, y) => x + y, sub: (x, y) => x - y, mul: (x, y) => x * y, div: (x, y) => x / y,
    pow: (x, y) => x === 1 || y === 0 ? 1 : Math.pow(x, y),
    sqrt: Math.sqrt, abs: Math.abs, sign: Math.sign, floor: Math.floor, ceil: Math.ceil,
    exp: Math.exp, expm1: Math.expm1, log: Math.log, log1p: Math.log1p,
    sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan,
    sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh, asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh,
    erf, erfc, max: (x, y) => Math.max(x, y), min: (x, y) => Math.min(x, y),
    clip: (x, low, high) => Number.isNaN(x) ? x : Math.min(Math.max(x, low), high),
    where: (c, x, y) => c ? x : y, lt: (x, y) => x < y, le: (x, y) => x <= y, gt: (x, y) => x > y,
    ge: (x, y) => x >= y, eq: (x, y) => x === y, and: (x, y) => x && y, or: (x, y) => x || y, not: x => !x,
    isnan: Number.isNaN,
  };

  function run(steps, columns) {
    const results = [];
    for (const [op, ...rest] of steps) {
      if (op === "column") results.push(columns.get(rest[0]));
      else if (op === "number") results.push(number(rest[0]));
      else results.push(OPERATIONS[op](...rest.map(place => results[place])));
    }
    return results;
  }

  const last = list => list[list.length - 1];
  // Keys of what is no input: the offset, and positions, whose columns may be inputs as well.
  const OFFSET = "\u0000", LATENT = "\u0000at ";

  class Model {
    constructor(document) {
      Object.assign(this, document);
      this.byName = new Map(this.columns.map(one => [one.name, one]));
    }

    mean(eta) { return last(run(this.inverse_link, new Map([["eta", eta]]))); }

    // Coded numbers from values of the columns; null is missing.
    coded(values) {
      const found = new Map();
      for (const one of this.columns) {
        const given = values.get(one.name), missing = given === null || given === undefined;
        const own = one.kind === "categorical" ? one.levels.map(level => given === level ? 1 : 0) : [missing ? Number(one.fill) : given];
        if (one.indicator) own.push(missing ? 1 : 0);
        one.coded.forEach((name, i) => found.set(name, own[i]));
      }
      return found;
    }

    standardised(values) {
      const results = run(this.steps, this.coded(values));
      return this.features.map(one => {
        let x = results[one.step];
        if (Number.isNaN(x)) x = one.median;
        else if (x === Infinity) x = one.maximum;
        else if (x === -Infinity) x = one.minimum;
        return Math.min(Math.max((x - one.centre) / one.scale, -1e100), 1e100);
      });
    }

    // A slope is an input, or a position that is a number.
    slope(name, values) {
      const own = this.coded(values).get(name);
      return own === undefined ? Number(values.get(LATENT + name)) : own;
    }

    // What latent components add in one model.
    latentPart(part, m, values) {
      let sum = 0;
      for (const one of this.latent) {
        const place = one.values.indexOf(values.get(LATENT + one.column));
        if (place < 0) continue;
        sum += one.effects[part][m][place] * (one.slope === null ? 1 : this.slope(one.slope, values));
      }
      return sum;
    }

    // Averaged means: one number, or one for each class against the rest.
    means(values) {
      const z = this.standardised(values), offset = values.get(OFFSET) || 0;
      return this.parts.map((part, p) => {
        let total = 0;
        part.models.forEach((model, m) => {
          let eta = model.intercept + model.offset * offset;
          model.features.forEach((j, k) => { eta += model.coefficients[k] * z[j]; });
          total += model.probability * this.mean(eta + this.latentPart(p, m, values));
        });
        return total;
      });
    }

    predict(values) {
      const means = this.means(values);
      if (this.classes === null) return means;
      if (means.length === 1) return [1 - means[0], means[0]];
      const sum = means.reduce((x, y) => x + y, 0);
      return means.map(x => sum > 0 ? x / sum : 1 / means.length);
    }

    // Ends of central intervals of one part: of the mean, and for the Gaussian family of a response.
    interval(p, values, withNoise) {
      if (!this.parts[p].uncertainty) return null;
      const z = this.standardised(values), offset = values.get(OFFSET) || 0, gaussian = this.family === "gaussian";
      const each = this.parts[p].uncertainty.map(model => {
        const u = [1, ...model.features.map(j => z[j])];
        let place = offset, square = 0;
        u.forEach((x, i) => { place += x * model.mean[i]; });
        for (let j = 0; j < u.length; j++) {
          let sum = 0;
          for (let i = 0; i <= j; i++) sum += model.factor[i][j - i] * u[i];
          square += sum * sum;
        }
        const scale = gaussian ? Math.sqrt(model.dispersion) : 1;
        const width = Math.max(scale * Math.sqrt(square + (withNoise ? 1 : 0)), 1e-290);
        return { probability: model.probability, place, width, cdf: distribution(gaussian ? model.degrees_of_freedom : null) };
      });
      const low = Math.min(...each.map(one => one.place - 3 * one.width));
      const high = Math.max(...each.map(one => one.place + 3 * one.width));
      const mixture = x => each.reduce((sum, one) => sum + one.probability * one.cdf((x - one.place) / one.width), 0);
      const tail = (1 - this.level) / 2;
      return [tail, 1 - tail].map(level => solve(mixture, level, low, high)).map(x => gaussian ? x : this.mean(x));
    }
  }

  // ---- the controls -----------------------------------------------------------------------------------------------
  const byId = id => document.getElementById(id);
  const shown = x => Number.isFinite(x)
    ? (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(3) : String(Number(x.toPrecision(5))))
    : String(x);
  const percent = x => `${(100 * x).toFixed(1)} %`;

  // The value of an option of a control; null is missing.
  function optionValue(model, control, chosen) {
    const { kind, place } = control.dataset;
    if (chosen === "missing") return null;
    if (kind === "latent") return model.latent[place].values[chosen];
    if (kind === "boolean") return Number(chosen);
    const one = model.columns[place];
    return chosen === "0" ? one.reference : one.levels[chosen - 1];
  }

  function valueOf(model, control) {
    const kind = control.dataset.kind;
    if (kind === "numeric" || kind === "offset") {
      const box = control.querySelector("input[type=checkbox]");
      return box && box.checked ? null : control.querySelector("input[type=number]").valueAsNumber;
    }
    return optionValue(model, control, control.querySelector("select").value);
  }

  function keyOf(model, control) {
    const { kind, place } = control.dataset;
    return kind === "offset" ? OFFSET : kind === "latent" ? LATENT + model.latent[place].column : model.columns[place].name;
  }

  const readAll = (model, controls) => new Map(controls.map(one => [keyOf(model, one), valueOf(model, one)]));

  function refused(model, values) {
    for (const [name, x] of values) {
      if (typeof x === "number" && !(Math.abs(x) <= model.largest_input)) return name === OFFSET ? "the offset" : name;
    }
    return null;
  }

  function showNumber(model, values) {
    const [value] = model.predict(values), output = byId("prediction");
    output.textContent = shown(value);
    output.dataset.value = value;
    const area = byId("intervals"), kinds = model.family === "gaussian" ? ["response", "mean"] : ["mean"];
    area.replaceChildren();
    const found = {};
    for (const kind of kinds) {
      const ends = model.interval(0, values, kind === "response");
      if (!ends) continue;
      found[kind] = ends;
      const span = document.createElement("span");
      const what = kind === "response" ? "of a new response" : "of the mean";
      span.textContent = `${Math.round(100 * model.level)} % ${what}: ${shown(ends[0])} to ${shown(ends[1])}`;
      span.dataset.of = kind;
      span.dataset.low = ends[0];
      span.dataset.high = ends[1];
      area.append(span);
    }
    return found;
  }

  function showClasses(model, values) {
    const shares = model.predict(values);
    document.querySelectorAll("#probabilities .bar").forEach((bar, k) => {
      const output = bar.querySelector("output");
      output.textContent = percent(shares[k]);
      output.dataset.value = shares[k];
      bar.querySelector(".fill").style.width = `${100 * shares[k]}%`;
      const single = model.parts.length === 1;
      let ends = single && k === 0 ? null : model.interval(single ? 0 : k, values, false);
      const text = bar.querySelector(".bar-interval"), whisker = bar.querySelector(".whisker");
      if (!ends) { text.textContent = ""; return; }
      text.textContent = `${percent(ends[0])} to ${percent(ends[1])}`;
      text.dataset.low = ends[0];
      text.dataset.high = ends[1];
      if (single) {
        whisker.style.left = `${100 * ends[0]}%`;
        whisker.style.width = `${100 * (ends[1] - ends[0])}%`;
      }
    });
  }

  // ---- the curve along the input that was changed last ------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  function draw(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  function niceTicks(low, high) {
    const raw = (high - low) / 6, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw) || raw, ticks = [];
    for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step && ticks.length < 9; x += step) {
      ticks.push(Math.abs(x) < 1e-9 * step ? 0 : x);
    }
    return ticks;
  }

  function points(model, control, values) {
    const name = keyOf(model, control), slide = control.querySelector("input[type=range]");
    if (slide) {
      const low = Number(slide.min), high = Number(slide.max);
      return Array.from({ length: 61 }, (_, i) => low + ((high - low) * i) / 60)
        .map(x => ({ x, y: model.predict(new Map(values).set(name, x)) }));
    }
    const select = control.querySelector("select");
    if (!select || select.options.length > 40) return [];
    return Array.from(select.options, (option, i) => {
      const given = optionValue(model, control, option.value);
      return { x: i, label: option.textContent, y: model.predict(new Map(values).set(name, given)) };
    });
  }

  function drawCurve(model, control, values, intervals) {
    const svg = byId("curve"), line = control ? points(model, control, values) : [];
    svg.replaceChildren();
    svg.classList.toggle("empty", line.length < 2);
    if (line.length < 2) return;
    const isClasses = model.classes !== null, here = model.predict(values);
    const chosen = isClasses ? (here.length === 2 ? [1] : here.map((_, k) => k)) : [0];
    const ends = intervals.response || intervals.mean || [];
    const heights = [...line.flatMap(p => chosen.map(k => p.y[k])), ...(isClasses ? [0, 1] : [...here, ...ends])].filter(Number.isFinite);
    let low = Math.min(...heights), high = Math.max(...heights);
    if (!(high > low)) { low -= 0.5; high += 0.5; }
    const left = 58, right = 468, top = chosen.length > 1 ? 30 : 12, bottom = 184;
    const x0 = line[0].x, x1 = last(line).x;
    const px = x => left + ((right - left) * (x - x0)) / (x1 - x0), py = y => bottom - ((bottom - top) * (y - low)) / (high - low);
    for (const y of niceTicks(low, high)) {
      draw(svg, "line", { x1: left, x2: right, y1: py(y), y2: py(y), class: "grid" });
      draw(svg, "text", { x: left - 6, y: py(y) + 4, "text-anchor": "end" }, shown(y));
    }
    const labelled = line[0].label !== undefined, every = Math.ceil(line.length / 8);
    const ticks = labelled ? line.filter((_, i) => i % every === 0).map(p => [p.x, p.label]) : niceTicks(x0, x1).map(x => [x, shown(x)]);
    for (const [x, text] of ticks) {
      const short = text.length > 10 ? `${text.slice(0, 9)}…` : text;
      const isLast = labelled && x === x1;  // half of it would be outside of the picture
      draw(svg, "text", { x: px(x) + (isLast ? 10 : 0), y: bottom + 18, "text-anchor": isLast ? "end" : "middle" }, short);
    }
    const at = labelled ? control.querySelector("select").selectedIndex : values.get(keyOf(model, control));
    chosen.forEach((k, i) => {
      if (chosen.length > 1) {
        const name = String(model.classes[k]), x = left + ((right - left) * i) / chosen.length, most = Math.floor(48 / chosen.length);
        draw(svg, "path", { d: `M${x} 11h22`, class: `line ink-${i % 4}` });
        draw(svg, "text", { x: x + 28, y: 15 }, name.length > most ? `${name.slice(0, most - 1)}…` : name);
      }
      if (!labelled) {
        draw(svg, "path", { d: `M${line.map(p => `${px(p.x)} ${py(p.y[k])}`).join("L")}`, class: `line ink-${i % 4}` });
      } else {
        line.forEach(p => draw(svg, "circle", { cx: px(p.x), cy: py(p.y[k]), r: 4, class: `dot ink-${i % 4}` }));
      }
      if (typeof at !== "number" || !(at >= x0 && at <= x1)) return;
      draw(svg, "circle", { cx: px(at), cy: py(here[k]), r: 6, class: `now ink-${i % 4}` });
    });
    if (!isClasses && ends.length && typeof at === "number" && at >= x0 && at <= x1) {
      for (const kind of ["response", "mean"]) {
        if (!intervals[kind]) continue;
        const [a, b] = intervals[kind].map(py);
        draw(svg, "line", { x1: px(at), x2: px(at), y1: a, y2: b, class: `whisk ${kind}` });
      }
    }
    draw(svg, "text", { x: (left + right) / 2, y: 216, "text-anchor": "middle", class: "axis" }, control.dataset.column || "offset");
  }

  function startSliders() {
    const source = byId("bgnlm-model");
    if (!source) return;
    const model = new Model(JSON.parse(source.textContent));
    const controls = Array.from(document.querySelectorAll(".control"));
    let touched = controls.find(one => one.querySelector("input[type=range], select")) || null, waiting = false;
    const update = () => {
      waiting = false;
      const values = readAll(model, controls), wrong = refused(model, values), caption = byId("curve-title");
      if (wrong !== null) { caption.textContent = `${wrong} needs a number.`; return; }
      const intervals = model.classes === null ? showNumber(model, values) : (showClasses(model, values), {});
      drawCurve(model, touched, values, intervals);
      caption.textContent = touched && byId("curve").childElementCount
        ? `Prediction along ${touched.dataset.column || "the offset"}, the other inputs as they are set.`
        : "Change an input to see the prediction along it.";
    };
    for (const control of controls) {
      const box = control.querySelector("input[type=number]"), slide = control.querySelector("input[type=range]");
      control.addEventListener("input", event => {
        if (slide && event.target === slide) box.value = Number(Number(slide.value).toPrecision(6));
        if (slide && event.target === box) slide.value = box.value;
        touched = control;
        if (!waiting) { waiting = true; requestAnimationFrame(update); }
      });
    }
    update();
  }

  // ---- tables that sort and filter --------------------------------------------------------------------------------
  function startTable(table) {
    const body = table.tBodies[0], headers = Array.from(table.tHead.rows[0].cells);
    const cellValue = (row, k) => row.cells[k].dataset.value !== undefined ? Number(row.cells[k].dataset.value) : row.cells[k].textContent;
    headers.forEach((header, k) => {
      const button = header.querySelector("button");
      button.addEventListener("click", () => {
        const isNumber = body.rows.length > 0 && body.rows[0].cells[k].dataset.value !== undefined;
        const before = header.getAttribute("aria-sort");
        const direction = before ? (before === "ascending" ? "descending" : "ascending") : (isNumber ? "descending" : "ascending");
        headers.forEach(one => one.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", direction);
        const sign = direction === "ascending" ? 1 : -1;
        const rows = Array.from(body.rows).map(row => [cellValue(row, k), row]);
        rows.sort(([a], [b]) => sign * (isNumber ? a - b : a.localeCompare(b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
    const box = byId(table.dataset.filter), count = byId(`${table.dataset.filter}-count`), total = body.rows.length;
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      let n = 0;
      for (const row of body.rows) {
        const text = `${row.textContent} ${row.dataset.text || ""}`.toLowerCase();
        row.hidden = !text.includes(wanted);
        n += row.hidden ? 0 : 1;
      }
      count.textContent = wanted ? `${n} of ${total} rows` : "";
    });
  }

  document.querySelectorAll("table[data-filter]").forEach(startTable);
  startSliders();
})();
