// The first page: the theme's switch, and topics without asking the server.

import "./theme-button.js";

const links = [...document.querySelectorAll(".stories nav a")];

function choose(topic) {
  for (const link of links) {
    if (link.dataset.topic === topic) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  for (const card of document.querySelectorAll(".story")) card.hidden = topic !== "" && card.dataset.topic !== topic;
}

for (const link of links) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(link.dataset.topic);
    history.replaceState(null, "", link.dataset.topic ? `?topic=${link.dataset.topic}` : location.pathname);
  });
}
