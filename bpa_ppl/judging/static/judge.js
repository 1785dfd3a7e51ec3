"use strict";
const element = (id) => document.getElementById(id);
const SIDES = ["first", "second"];
const NAMES = {
  first: "the first is better",
  second: "the second is better",
  tie: "no difference",
  skip: "skipped",
};
const KEYS = { ArrowLeft: "first", ArrowRight: "second", ArrowDown: "tie", s: "skip" };
let number = null; // of the question on the page
let last = null; // the last answer
let busy = false; // while an answer is being sent

async function request(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    const problem = "the server does not answer. Start it again, and open the address that it prints:";
    return { error: `${problem} all answers that were confirmed are there.`, status: 0 };
  }
  const text = await response.text();
  try {
    return { ...JSON.parse(text), status: response.status };
  } catch {
    return { error: text, status: response.status };
  }
}

function showText(side, parts) {
  const nodes = parts.map(([text, differs]) =>
    differs ? Object.assign(document.createElement("mark"), { textContent: text }) : text,
  );
  element(`${side}-text`).replaceChildren(...nodes);
  const only = parts.filter(([, differs]) => differs).map(([text]) => text);
  element(`${side}-only`).textContent = only.length
    ? `Only in the ${side}: ${only.join("; ")}.`
    : `Nothing is only in the ${side}.`;
}

function showQuestion(question) {
  ({ number, last } = question);
  element("heading").textContent = `Question ${question.answers + 1}`;
  const context = question.context.map((text) =>
    Object.assign(document.createElement("p"), { textContent: text, dir: "auto", lang: "" }),
  );
  element("context").replaceChildren(...context);
  element("context-part").hidden = !context.length;
  element("source").textContent = question.source ?? "";
  for (const id of ["source", "source-title"]) element(id).hidden = question.source === null;
  element("source-section").hidden = question.source === null && !context.length;
  for (const side of SIDES) {
    showText(side, question[side]);
    correct(side, false);
  }
  element("undo").disabled = last === null;
  element("question").hidden = false;
  showState();
}

const percent = (value) => `${(100 * value).toFixed(1)} %`;
const count = (value) => value.toLocaleString("en");

async function showState() {
  const asked = number;
  const state = await request("state");
  if (state.status !== 200 || asked !== number) return; // the next one will show it
  const [code, sentence] = state.advice;
  const { dataset } = element("advice");
  if (code !== dataset.code) element("announcement").textContent = code === "continue" ? "" : sentence;
  dataset.code = code;
  element("advice").textContent = sentence;
  const rows = {
    Answers: count(state.answers),
    "Choices changed": `${count(state.changed)} of ${count(state.lists)}`,
    "Choice is best, mean P": percent(state.best),
    "Won of what exact weights win": percent(state.headroom),
    "… by ten more answers": `+${(100 * state.further).toFixed(1)} points`,
    "Random pairs predicted": state.random ? `${state.predicted} of ${state.random}` : "–",
    "… by the start": state.random ? `${state.predicted_before} of ${state.random}` : "–",
    "Repeats answered alike": state.repeated ? `${state.agreed} of ${state.repeated}` : "–",
  };
  const parts = Object.entries(rows).flatMap(([name, value]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: value }),
  ]);
  element("numbers").replaceChildren(...parts);
  showWeights(state.weights, state.more_weights);
}

function showWeights(weights, more) {
  const largest = Math.max(...weights.map(([, mean, half]) => Math.abs(mean) + half), 1e-9);
  const cell = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const rows = weights.map(([name, mean, half, start]) => {
    const row = document.createElement("tr");
    const picture = document.createElement("td");
    picture.append(bar(mean / largest, half / largest, start / largest));
    const weight = `${mean.toFixed(2)} ± ${half.toFixed(2)}`.replace("-", "−");
    row.append(
      Object.assign(cell("th", name), { scope: "row" }),
      cell("td", weight),
      picture,
    );
    return row;
  });
  element("weights").tBodies[0].replaceChildren(...rows);
  element("weights").hidden = !rows.length;
  element("more-weights").textContent = more ? `and ${more} smaller ones` : "";
}

/** Draw an interval: numbers from -1 to 1. */
function bar(mean, half, start) {
  const draw = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const x = (value) => 50 + 46 * Math.max(-1, Math.min(1, value));
  const svg = draw("svg", { viewBox: "0 0 100 20", "aria-hidden": true });
  svg.append(
    draw("line", { class: "zero", x1: 50, x2: 50, y1: 0, y2: 20 }),
    draw("line", { class: "start", x1: x(start), x2: x(start), y1: 4, y2: 16 }),
    draw("line", { class: "interval", x1: x(mean - half), x2: x(mean + half), y1: 10, y2: 10 }),
    draw("circle", { class: "mean", cx: x(mean), cy: 10, r: 4 }),
  );
  return svg;
}

/** Send an answer or an undo, and show the next question, or what went wrong. */
async function send(path, body, done) {
  if (busy || number === null) return;
  busy = true;
  const result = await request(path, { number, ...body });
  busy = false;
  element("status").textContent = "";
  element("error").textContent = "";
  if (result.status === 200) {
    showQuestion(result);
    element("status").textContent = done;
    element("heading").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  } else {
    const kept = result.status === 0 ? "is not confirmed" : "was not kept";
    element("error").textContent = `This click ${kept}: ${result.error}`;
    if (result.status === 409) showQuestion(result.question);
  }
}

function answer(name, correction) {
  const body = { answer: name };
  if (correction !== undefined) body.correction = correction;
  return send("answer", body, `Saved: ${NAMES[name]}.`);
}

const undo = () => last !== null && send("undo", {}, `Taken back: ${NAMES[last]}.`);

/** Open or close the correction of a side. */
function correct(side, open = true) {
  element(`${side}-correction`).hidden = !open;
  element(`${side}-buttons`).hidden = open;
  if (!open) return;
  const text = element(`${side}-corrected`);
  text.value = element(`${side}-text`).textContent;
  text.focus();
}

function close(side) {
  correct(side, false);
  document.querySelector(`[data-correct=${side}]`).focus();
}

for (const side of SIDES) {
  const form = element(`${side}-correction`);
  const save = () => answer(side, element(`${side}-corrected`).value);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(side);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null || event.detail > 1) return; // the second click of two is about no question
  if (button.dataset.answer) answer(button.dataset.answer);
  if (button.dataset.correct) correct(button.dataset.correct);
  if (button.dataset.cancel) close(button.dataset.cancel);
  if (button.id === "undo") undo();
  if (button.id === "help-button") element("help").showModal();
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("textarea") !== null;
  if (typing || element("help").open || event.repeat) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const name = KEYS[event.key];
  if (event.key === "?") element("help").showModal();
  else if (event.shiftKey && SIDES.includes(name)) correct(name);
  else if (event.shiftKey) return;
  else if (name) answer(name);
  else if (event.key === "u") undo();
  else return;
  event.preventDefault();
});

/** Show the question of the session, which another window may have answered. */
async function refresh() {
  if (busy) return;
  const question = await request("question");
  if (question.status !== 200) {
    element("error").textContent = question.error;
  } else if (question.number !== number) {
    showQuestion(question);
  }
}

window.addEventListener("focus", refresh);
refresh();
