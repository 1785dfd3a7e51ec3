"use strict";
const element = (id) => document.getElementById(id);
const PLACES = ["first", "second"];
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

const capital = (text) => text[0].toUpperCase() + text.slice(1);

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

/** Create an element with some properties, attributes and children. */
function create(name, properties = {}, attributes = {}, children = []) {
  const node = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Return the article of a candidate. */
function candidate(parts, place) {
  const article = element("candidate").content.firstElementChild.cloneNode(true);
  const find = (selector) => article.querySelector(selector);
  const name = PLACES[place];
  article.setAttribute("aria-labelledby", `${name}-title`);
  Object.assign(find("h3"), { id: `${name}-title`, textContent: capital(name) });
  find(".text").append(
    ...parts.map(([text, differs]) => (differs ? create("mark", { textContent: text }) : text)),
  );
  const only = parts.filter(([, differs]) => differs).map(([text]) => text);
  find(".only").textContent = only.length
    ? `Only in the ${name}: ${only.join("; ")}.`
    : `Nothing is only in the ${name}.`;
  const better = `${capital(name)} is better`;
  const key = create("kbd", { textContent: "←→"[place] }, { "aria-hidden": true });
  find(".best").append(...(place ? [`${better} `, key] : [key, ` ${better}`]));
  find(".best").dataset.answer = name;
  find(".best").setAttribute("aria-keyshortcuts", ["ArrowLeft", "ArrowRight"][place]);
  find(".correct").setAttribute("aria-label", `${better}: correct it`);
  find("form .main").textContent = `Save: ${name} is better`;
  find(".correct").addEventListener("click", () => correct(place));
  find(".cancel").addEventListener("click", () => close(place));
  const save = () => answer(name, find("textarea").value);
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  find("form").addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(place);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  });
  return article;
}

function showQuestion(question) {
  ({ number, last } = question);
  const { context, candidates } = question;
  element("heading").textContent = `Question ${question.answers + 1}`;
  element("context").replaceChildren(
    ...context.map((text) => create("p", { textContent: text, dir: "auto", lang: "" })),
  );
  element("context-part").hidden = !context.length;
  element("source").textContent = question.source ?? "";
  for (const id of ["source", "source-title"]) element(id).hidden = question.source === null;
  element("source-section").hidden = question.source === null && !context.length;
  element("candidates").replaceChildren(...candidates.map(candidate));
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
  for (const id of ["panel", "panel-help"]) element(id).hidden = Boolean(state.hidden);
  if (state.hidden) return;
  const [code, sentence] = state.advice;
  const { dataset } = element("advice");
  if (code !== dataset.code) element("announcement").textContent = code === "continue" ? "" : sentence;
  dataset.code = code;
  element("advice").textContent = sentence;
  const rows = {
    Answers: count(state.answers),
    "Choices changed": `${count(state.changed)} of ${count(state.lists)}`,
    "Mean confidence": percent(state.best),
    "Share of the achievable gain": percent(state.headroom),
    "… lower bound (95 %)": percent(state.least),
    "… from ten more answers": `+${(100 * state.further).toFixed(1)} points`,
    "Random questions predicted": state.random ? `${state.predicted} of ${state.random}` : "–",
    "… by the starting weights": state.random ? `${state.predicted_before} of ${state.random}` : "–",
    "Repeats answered alike": state.repeated ? `${state.agreed} of ${state.repeated}` : "–",
  };
  const parts = Object.entries(rows).flatMap(([name, value]) => [
    create("dt", { textContent: name }),
    create("dd", { textContent: value }),
  ]);
  element("numbers").replaceChildren(...parts);
  showWeights(state.weights, state.more_weights);
}

function showWeights(weights, more) {
  const largest = Math.max(...weights.map(([, mean, half]) => Math.abs(mean) + half), 1e-9);
  const rows = weights.map(([name, mean, half, start]) => {
    const weight = `${mean.toFixed(2)} ± ${half.toFixed(2)}`.replace("-", "−");
    return create("tr", {}, {}, [
      create("th", { scope: "row", textContent: name }),
      create("td", { textContent: weight }),
      create("td", {}, {}, [bar(mean / largest, half / largest, start / largest)]),
    ]);
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
  return send("answer", { answer: name, correction }, `Saved: ${NAMES[name]}.`);
}

const undo = () => last !== null && send("undo", {}, `Taken back: ${NAMES[last]}.`);

/** Open or close the correction of a candidate. */
function correct(place, open = true) {
  const article = element("candidates").children[place];
  article.querySelector("form").hidden = !open;
  article.querySelector(".choose").hidden = open;
  if (!open) return;
  const text = article.querySelector("textarea");
  text.value = article.querySelector(".text").textContent;
  text.focus();
}

function close(place) {
  correct(place, false);
  element("candidates").children[place].querySelector(".correct").focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null || event.detail > 1) return; // the second click of two is about no question
  if (button.dataset.answer) answer(button.dataset.answer);
  if (button.id === "undo") undo();
  if (button.id === "help-button") element("help").showModal();
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("textarea") !== null;
  if (typing || element("help").open || event.repeat || number === null) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const name = KEYS[event.key];
  if (event.key === "?") element("help").showModal();
  else if (event.shiftKey && PLACES.includes(name)) correct(PLACES.indexOf(name));
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
