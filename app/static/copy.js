// Buttons that copy what stands in a field. Without a secure context the field is selected, and the old command tried.

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  const done = await copy(field);
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  const live = document.getElementById("live");
  if (live) live.textContent = button.textContent;
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    field.focus();
    field.select();
    return document.execCommand("copy");
  }
}
