// The sheet of keys and words. What leads to the page of words opens it there, where one is.

const PHONE = matchMedia("(max-width: 700px)"); // no keys to speak of

export function watchSheet() {
  const sheet = document.getElementById("keys");
  const open = (part) => {
    document.getElementById(`part-${part}`).checked = true;
    sheet.showModal();
    document.getElementById(`part-${part}`).focus();
  };
  document.getElementById("help")?.addEventListener("click", () => open(PHONE.matches ? "words" : "keys"));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-sheet]");
    if (event.target === sheet) sheet.close(); // beside it
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link.dataset.sheet);
  });
}
