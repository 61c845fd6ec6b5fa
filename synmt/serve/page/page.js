// The page: a sentence, its tree, and what each run makes of them.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const PATIENCE = 250; // ms without a key before the server is asked
const FAINTEST = 0.05; // attention below it is not drawn

/** What the user has chosen; `heads` has the parent of each word, from 1, and 0 for the root. */
const chosen = { q: "", tree: "parser", heads: null, head: "" };
/** The answers that are shown, one for each run, and those with the parser's tree. */
let answers = [];
let usual = [];
let usualText = "";
let runs = [];
let asking = new AbortController();
let selected = null; // the word whose parent can be chosen

// The server

async function ask(path, fields) {
  const key = $("key").value;
  const response = await fetch(path, {
    method: fields ? "POST" : "GET",
    headers: fields ? { "content-type": "application/json" } : {},
    body: fields ? JSON.stringify({ ...fields, api_key: key }) : undefined,
    signal: fields ? asking.signal : undefined,
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Ask every run; a run that fails has its error in place of an answer. */
function askAll(q, tree, heads) {
  const own = tree === "own";
  return Promise.all(runs.map((run) =>
    ask("explain", { q, run: run.name, tree: own ? "parser" : tree, heads: own ? heads : null })
      .catch((error) => {
        if (error.name === "AbortError") throw error;
        return { error: error.message || "The server does not answer." };
      })));
}

async function update() {
  asking.abort();
  asking = new AbortController();
  const { q, tree, heads } = chosen;
  if (!runs.length) return;
  remember();
  if (!q.trim()) {
    answers = usual = [];
    show();
    return;
  }
  busy(true);
  try {
    const isUsual = usualText === q && usual.every((answer) => !answer.error);
    const before = isUsual ? usual : await askAll(q, "parser", null);
    const now = tree === "parser" ? before : await askAll(q, tree, heads);
    usual = before;
    usualText = q;
    answers = now;
  } catch (error) {
    if (error.name === "AbortError") return;
    throw error;
  }
  busy(false);
  show();
}

// What is shown

function show() {
  const failed = answers.length > 0 && answers.every((answer) => answer.error);
  $("error").hidden = !failed;
  $("error").textContent = failed ? answers[0].error : "";
  const first = treeAnswer();
  $("shown").hidden = !first;
  $("reset").hidden = chosen.tree === "parser";
  if (first) {
    showTree(first);
    showHeads(first);
  }
  runs.forEach((run, number) => showRun(run, number, failed));
  $("status").textContent = answers.length ? "" : "Translations appear as you type.";
}

/** The answer whose tree is drawn: that of the first run that reads trees. */
function treeAnswer() {
  const withTree = answers.filter((answer) => answer.svg);
  return withTree.find((answer) => answer.reads === "trees") || withTree[0];
}

function showTree(answer) {
  const drawn = new DOMParser().parseFromString(answer.svg, "image/svg+xml").documentElement;
  const picture = document.importNode(drawn, true);
  $("picture").replaceChildren(picture);
  for (const group of picture.querySelectorAll("[data-word]")) {
    const word = Number(group.dataset.word);
    const changed = (usualWords()[word] || {}).head !== answer.words[word].head;
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", described(answer.words, word));
    group.classList.toggle("changed", changed);
    group.addEventListener("pointerdown", (event) => drag(event, word, answer));
    group.addEventListener("focus", () => select(word));
    group.addEventListener("keydown", (event) => walk(event, word));
    hovered(group, () => alignedTo(word));
  }
  addSpace(picture);
  showAttention();
  select(selected !== null && selected < answer.words.length ? selected : null);
}

/** Make the area of each word easy to hit. */
function addSpace(picture) {
  for (const group of picture.querySelectorAll("[data-word]")) {
    const box = group.querySelector(".word");
    const area = document.createElementNS(SVG, "rect");
    const size = Math.max(24, box.getBBox().width + 10);
    const top = Number(box.getAttribute("y")) - 16;
    const place = { x: box.getAttribute("x") - size / 2, y: top, width: size, height: 54 };
    for (const [name, value] of Object.entries(place)) area.setAttribute(name, value);
    area.classList.add("area");
    group.prepend(area);
  }
}

function usualWords() {
  const answer = usual.find((one) => one.svg);
  return answer ? answer.words : [];
}

function described(words, number) {
  const { text, relation, head, probability } = words[number];
  const parent = head ? `${relation} of ${words[head - 1].text}` : "root";
  const sure = probability === null ? "" : `, ${percent(probability)}`;
  return `${text}: ${parent}${sure}`;
}

function showHeads(answer) {
  const options = [new Option("hidden", "")];
  for (const { head, to_parents } of answer.attention) {
    const share = to_parents === null ? "" : `, ${percent(to_parents)} on parents`;
    options.push(new Option(head + share, head));
  }
  $("head").replaceChildren(...options);
  $("head").value = chosen.head;
  if ($("head").selectedIndex < 0) $("head").value = "";
  $("head").disabled = options.length === 1;
  const learned = answer.induced.map(({ name }) => new Option(`learned: ${name}`, `:${name}`));
  for (const old of $("tree").querySelectorAll("[value^=':']")) old.remove();
  $("tree").append(...learned);
}

/** Draw the weights of the chosen head below the words; those of one word if it is selected. */
function showAttention() {
  const picture = $("picture").querySelector("svg");
  const answer = treeAnswer();
  picture.querySelector(".attention")?.remove();
  const head = answer.attention.find((one) => one.head === chosen.head);
  const height = Number(picture.dataset.height ||= picture.getAttribute("height"));
  const room = head ? 90 : 0;
  picture.setAttribute("height", height + room);
  picture.setAttribute("viewBox", `0 0 ${picture.getAttribute("width")} ${height + room}`);
  if (!head) return;
  const lines = document.createElementNS(SVG, "g");
  lines.classList.add("attention");
  const places = [...picture.querySelectorAll(".word")].map((word) => Number(word.getAttribute("x")));
  head.weights.forEach((row, from) => row.forEach((weight, to) => {
    if (weight < FAINTEST || (selected !== null && selected !== from)) return;
    const line = document.createElementNS(SVG, "path");
    const deep = height + Math.min(80, 20 + Math.abs(places[to] - places[from]) / 4);
    const [left, right] = [places[from], places[to]];
    const wide = from === to ? 12 : 0; // a loop
    line.setAttribute("d",
      `M${left} ${height}C${left - wide} ${deep} ${right + wide} ${deep} ${right} ${height}`);
    line.setAttribute("stroke-opacity", Math.min(1, weight + 0.1));
    line.setAttribute("stroke-width", 1 + 4 * weight);
    lines.append(line);
  }));
  picture.append(lines);
}

function showRun(run, number, failed) {
  const section = $("runs").children[number];
  const answer = answers[number];
  const part = (name) => section.querySelector(name);
  section.hidden = !answer || failed;
  if (section.hidden) return;
  part(".problem").hidden = !answer.error;
  part(".problem").textContent = answer.error || "";
  const before = usual[number];
  const texts = answer.error ? [] : answer.translations.map((one) => one.text);
  const isOther = answer !== before && !answer.error && !before.error;
  const old = isOther ? before.translations[0].text : "";
  const changes = changed(old.split(/\s+/), answer.target_words || []);
  part(".translation").replaceChildren(...(answer.target_words || []).flatMap((word, place) => {
    const shown = document.createElement(isOther && changes.has(place) ? "mark" : "span");
    shown.textContent = word;
    shown.dataset.target = place;
    const gate = answer.gates?.[place];
    if (gate !== undefined && gate !== null) {
      shown.title = `gate to syntax: ${percent(gate)} open`;
      shown.classList.add(`gate-${Math.round(4 * gate)}`);
    }
    hovered(shown, () => alignedFrom(answer, place));
    return [shown, " "];
  }));
  const same = isOther && texts[0] === old;
  part(".before").hidden = !isOther;
  part(".old").textContent = same ? "the same" : old;
  part(".note").textContent = noteOn(run, answer);
  const listed = (answer.translations || []).map((one, place) => {
    const item = document.createElement(place ? "li" : "span");
    const share = document.createElement("small");
    item.dir = "auto";
    item.textContent = place ? `${one.text} ` : "";
    share.textContent = percent(Math.exp(one.log_probability));
    item.append(share);
    return item;
  });
  part(".translation").append(...listed.splice(0, 1));
  part(".others").replaceChildren(...listed);
}

function noteOn(run, answer) {
  const notes = [];
  if (!run.reads) notes.push("This run reads no trees: another tree changes nothing.");
  else if (run.reads !== "trees") notes.push(`This run reads ${run.reads} trees, whatever you choose.`);
  const problems = { empty: "no text", loop: "a loop", limit: "cut off", copy: "a copy" };
  if (answer.degenerate) notes.push(`The translation is degenerate: ${problems[answer.degenerate]}.`);
  return notes.join(" ");
}

/** The places of new words that are not in a longest common subsequence with the old ones. */
function changed(old, words) {
  const length = [...Array(old.length + 1)].map(() => Array(words.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = words.length - 1; j >= 0; j--) {
      length[i][j] = old[i] === words[j]
        ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const places = new Set(words.keys());
  for (let i = 0, j = 0; i < old.length && j < words.length;) {
    if (old[i] === words[j]) { places.delete(j); i++; j++; }
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return places;
}

const percent = (share) => share > 0 && share < 0.01 ? "< 1 %" : `${Math.round(100 * share)} %`;

// Alignment

function hovered(element, others) {
  const mark = (on) => {
    for (const other of [element, ...others()]) other.classList.toggle("aligned", on);
  };
  element.addEventListener("pointerenter", () => mark(true));
  element.addEventListener("pointerleave", () => mark(false));
  element.addEventListener("focus", () => mark(true));
  element.addEventListener("blur", () => mark(false));
}

function alignedTo(word) {
  return answers.flatMap((answer, number) => (answer.alignment || [])
    .filter(([source]) => source === word)
    .map(([, target]) => $("runs").children[number].querySelector(`[data-target="${target}"]`)))
    .filter(Boolean);
}

function alignedFrom(answer, place) {
  return answer.alignment.filter(([, target]) => target === place)
    .map(([source]) => $("picture").querySelector(`[data-word="${source}"]`)).filter(Boolean);
}

// Another parent

/** Give a word another parent; 0 is the root. What would close a circle takes the word's place. */
function attach(word, parent) {
  const heads = treeAnswer().words.map((one) => one.head);
  if (parent === word + 1 || heads[word] === parent) return;
  const place = heads[word];
  if (parent === 0) heads[heads.indexOf(0)] = word + 1;
  for (let above = parent; above; above = heads[above - 1]) {
    if (above === word + 1) {
      heads[parent - 1] = place;
      break;
    }
  }
  heads[word] = parent;
  chosen.heads = heads;
  chosen.tree = $("tree").value = "own";
  update();
}

function drag(event, word, answer) {
  if (event.button) return;
  const picture = $("picture").querySelector("svg");
  const group = picture.querySelector(`[data-word="${word}"]`);
  const line = document.createElementNS(SVG, "path");
  const place = (at) => new DOMPoint(at.clientX, at.clientY)
    .matrixTransform(picture.getScreenCTM().inverse());
  // the word itself: arcs of others lie above it
  const below = (at) => document.elementFromPoint(at.clientX, at.clientY)
    ?.closest(".area, [data-word] text")?.parentNode;
  const start = place(event);
  line.classList.add("dragged");
  picture.append(line);
  group.setPointerCapture(event.pointerId);
  let moved = false;
  let target = null;

  function move(at) {
    const { x, y } = place(at);
    moved ||= Math.hypot(x - start.x, y - start.y) > 6;
    line.setAttribute("d", `M${start.x} ${start.y}L${x} ${y}`);
    target?.classList.remove("target");
    target = below(at);
    if (moved) target?.classList.add("target");
  }

  function end(at) {
    group.removeEventListener("pointermove", move);
    line.remove();
    target?.classList.remove("target");
    if (at.type === "pointercancel" || !moved) return;
    const other = below(at);
    const isAbove = place(at).y < Number(group.querySelector(".word").getAttribute("y")) - 16;
    if (other) attach(word, Number(other.dataset.word) + 1);
    else if (isAbove) attach(word, 0);
  }

  group.addEventListener("pointermove", move);
  group.addEventListener("pointerup", end, { once: true });
  group.addEventListener("pointercancel", end, { once: true });
}

/** Offer all words as parents of one. */
function select(word) {
  selected = word;
  $("parent-field").hidden = word === null;
  for (const group of $("picture").querySelectorAll("[data-word]")) {
    group.classList.toggle("selected", Number(group.dataset.word) === word);
  }
  if (word === null) return;
  const { words } = treeAnswer();
  $("parent-label").textContent = `Parent of “${words[word].text}”`;
  const options = words.map((one, number) => new Option(`${number + 1} ${one.text}`, number + 1));
  options.splice(word, 1);
  $("parent").replaceChildren(new Option("none: it is the root", 0), ...options);
  $("parent").value = words[word].head;
  showAttention();
}

/** Go from word to word by the arrow keys, and to its parents by Enter. */
function walk(event, word) {
  const groups = [...$("picture").querySelectorAll("[data-word]")];
  const next = { ArrowRight: word + 1, ArrowLeft: word - 1, Home: 0, End: groups.length - 1 };
  if (event.key in next) groups[next[event.key]]?.focus();
  else if (event.key === "Enter" || event.key === " ") $("parent").focus();
  else if (event.key === "Escape") select(null);
  else return;
  event.preventDefault();
}

// State, files

/** Keep the state in the address, behind the #, which browsers do not send. */
function remember() {
  const state = new URLSearchParams({ q: chosen.q });
  if (chosen.tree !== "parser") state.set("tree", chosen.tree);
  if (chosen.tree === "own") state.set("heads", chosen.heads.join(","));
  if (chosen.head) state.set("head", chosen.head);
  history.replaceState(null, "", chosen.q ? `#${state}` : location.pathname);
}

function recall() {
  const state = new URLSearchParams(location.hash.slice(1));
  chosen.q = state.get("q") || "";
  chosen.tree = state.get("tree") || "parser";
  chosen.heads = state.get("heads")?.split(",").map(Number) || null;
  chosen.head = state.get("head") || "";
  if (chosen.tree === "own" && !chosen.heads) chosen.tree = "parser";
  $("text").value = chosen.q;
  $("tree").value = chosen.tree;
}

function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The picture with its own style, for other programs. */
function standalone() {
  const picture = $("picture").querySelector("svg").cloneNode(true);
  const style = document.createElementNS(SVG, "style");
  const rules = [...document.styleSheets[0].cssRules].map((rule) => rule.cssText);
  style.textContent = rules.filter((rule) => rule.includes(".tree")).join("\n");
  picture.prepend(style);
  return new XMLSerializer().serializeToString(picture);
}

function busy(is) {
  $("status").textContent = is ? "Translating …" : "";
  for (const section of $("runs").children) section.setAttribute("aria-busy", is);
}

function later(action) {
  let waiting;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(action, PATIENCE);
  };
}

// Events

$("text").addEventListener("input", later(() => {
  chosen.q = $("text").value;
  // the words may be others
  if (chosen.tree === "own" || chosen.tree.startsWith(":")) chosen.tree = $("tree").value = "parser";
  selected = null;
  update();
}));
$("tree").addEventListener("change", () => {
  const name = $("tree").value;
  const learned = treeAnswer()?.induced.find((one) => `:${one.name}` === name);
  const heads = learned ? learned.heads : treeAnswer()?.words.map((one) => one.head);
  if (!heads && (learned || name === "own")) return;
  chosen.tree = learned ? "own" : name;
  $("tree").value = chosen.tree;
  chosen.heads = chosen.tree === "own" ? heads : null;
  update();
});
$("head").addEventListener("change", () => {
  chosen.head = $("head").value;
  remember();
  showAttention();
});
$("parent").addEventListener("change", () => attach(selected, Number($("parent").value)));
$("reset").addEventListener("click", () => {
  chosen.tree = $("tree").value = "parser";
  chosen.heads = null;
  update();
});
$("key").addEventListener("change", () => {
  sessionStorage.setItem("key", $("key").value);
  update();
});
$("save-svg").addEventListener("click", () => save("tree.svg", standalone(), "image/svg+xml"));
$("save-conllu").addEventListener("click", () =>
  save("tree.conllu", treeAnswer().conllu, "text/plain"));
$("share").addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  $("status").textContent = "Copied.";
});
$("asked").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => {
  recall();
  update();
});

async function begin() {
  let settings;
  try {
    settings = await ask("frontend/settings");
  } catch {
    $("error").hidden = false;
    $("error").textContent = "The server does not answer. Is it still running? Reload the page then.";
    return;
  }
  runs = settings.runs;
  $("key-field").hidden = !settings.keyRequired;
  $("key").value = sessionStorage.getItem("key") || "";
  $("text").maxLength = settings.charLimit;
  const [first] = runs;
  $("text").lang = first.source.code;
  $("text-label").textContent = `${first.source.name} sentence`;
  for (const run of runs) {
    const section = $("run").content.cloneNode(true).firstElementChild;
    const title = runs.length > 1 ? `${run.name}: ${run.targets[0].name}` : run.targets[0].name;
    section.querySelector("h2").textContent = title;
    section.hidden = true;
    section.querySelector(".translation").lang = run.targets[0].code;
    $("runs").append(section);
  }
  update();
}

recall();
begin();
