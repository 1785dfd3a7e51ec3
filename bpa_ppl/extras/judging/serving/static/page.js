"use strict";
const element = (id) => document.getElementById(id);

async function showModel() {
  const model = await (await fetch("model")).json();
  element("model").textContent =
    `Features: ${model.features.join(", ")}. Rule: ${model.rule}, ${model.draws} draws.`;
  const texts = model.needs.filter((name) => name !== "sources").map((name) => [name, ""]);
  const columns = (value) =>
    Object.fromEntries([...model.features.map((name) => [name, value]), ...texts]);
  const candidates = [
    { text: "a cat", ...columns(-1) },
    { text: "the cat", ...columns(-0.5) },
  ];
  element("list").value = JSON.stringify({ candidates }, null, 1);
}

async function rerank() {
  element("error").textContent = "";
  element("result").hidden = true;
  let body;
  try {
    const response = await fetch("rerank", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: element("list").value,
    });
    body = await response.json();
    if (!response.ok) throw new Error(body.error);
    if (Array.isArray(body)) throw new Error("the page shows one list: give one object");
  } catch (error) {
    element("error").textContent = error.message;
    return;
  }
  const texts = JSON.parse(element("list").value).candidates.map((candidate) => candidate.text);
  const order = texts.map((_, i) => i);
  order.sort((i, j) => body.probabilities[j] - body.probabilities[i]);
  const rows = order.map((i) => {
    const row = document.createElement("tr");
    if (i === body.choice) row.className = "chosen";
    for (const value of [body.probabilities[i].toFixed(4), texts[i]]) {
      row.append(Object.assign(document.createElement("td"), { textContent: value }));
    }
    return row;
  });
  element("result").tBodies[0].replaceChildren(...rows);
  element("result").hidden = false;
}

element("rerank").addEventListener("click", rerank);
showModel().then(rerank);
