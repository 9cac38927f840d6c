// The config form with JavaScript: rows for groups come and go one at a time.

const form = document.querySelector(".config form");
const add = document.getElementById("add-group");
const groups = () => [...form.querySelectorAll(".group")];
const kindOf = (group) => group.querySelector('[data-option="kind"] select');

/** What is out of sight isn't sent, and the rows in sight are counted. */
function settle() {
  let nth = 0;
  for (const group of groups()) {
    const shown = !group.matches(".spare, .gone");
    if (shown) group.querySelector(".nth").textContent = nth++;
    for (const field of group.querySelectorAll("input, select")) {
      const option = field.closest(".option");
      field.disabled = !shown || (option.matches(".only:not(.wrong)") && !option.classList.contains(`for-${kindOf(group).value}`));
    }
  }
}

function addGroup() {
  const last = groups().at(-1);
  const row = Number(last.dataset.row) + 1;
  let group = groups().find((one) => one.classList.contains("spare"));
  if (!group) {
    group = last.cloneNode(true);
    renumber(group, row);
    last.after(group);
  }
  empty(group);
  group.classList.remove("spare", "gone");
  kindOf(group).value = "full_attention";
  settle();
  kindOf(group).focus();
}

function renumber(group, row) {
  group.dataset.row = row;
  const now = (text) => text.replace(/groups\.\d+\./, `groups.${row}.`);
  for (const one of group.querySelectorAll("[id], [name], [for], [aria-describedby]")) {
    for (const name of ["id", "name", "for", "aria-describedby"]) {
      if (one.hasAttribute(name)) one.setAttribute(name, now(one.getAttribute(name)));
    }
  }
}

function empty(group) {
  for (const field of group.querySelectorAll("input, select")) {
    if (field.type === "checkbox") field.checked = false;
    else field.value = "";
    field.removeAttribute("aria-invalid");
  }
  for (const option of group.querySelectorAll(".wrong")) {
    option.classList.remove("wrong");
    option.querySelector("strong")?.remove();
  }
}

form.addEventListener("click", (event) => {
  if (event.target.closest("#add-group")) addGroup();
  const group = event.target.closest(".remove")?.closest(".group");
  if (!group) return;
  empty(group);
  group.classList.add("gone");
  settle();
  add.focus();
});
form.addEventListener("change", settle);
settle();
form.querySelector('[aria-invalid="true"]')?.focus();
