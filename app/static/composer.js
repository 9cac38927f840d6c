// The composer's three ways to give a prompt. Where text or JSON is typed, what the form only proposed in the other
// fields goes, and comes back when the text goes; what somebody typed there stays, and is told to be one too many.

const PROPOSED = { tokens: ["text", "json"], shared: ["json"], shared_tokens: ["json"] };
const SAID = { text: "the text counts", json: "the JSON counts" };

export function watchComposer() {
  document.addEventListener("input", ({ target }) => {
    const form = target.closest?.("form.composer");
    if (form && ["text", "json"].includes(target.name)) settle(form);
  }, true); // before htmx reads the form
}

function settle(form) {
  const { text, json } = form.elements;
  const way = json.value.trim() ? "json" : text.value ? "text" : "";
  for (const [name, ways] of Object.entries(PROPOSED)) {
    const field = form.elements[name];
    if (ways.includes(way)) withdraw(field, SAID[way]);
    else propose(field);
  }
}

function withdraw(field, said) {
  field.dataset.hint ??= field.placeholder;
  field.placeholder = said;
  if (field.value && field.value === field.defaultValue) {
    field.dataset.proposed = field.value;
    field.value = "";
  }
}

function propose(field) {
  if (field.dataset.hint) field.placeholder = field.dataset.hint;
  if (field.dataset.proposed && !field.value) field.value = field.dataset.proposed;
  delete field.dataset.proposed;
}
