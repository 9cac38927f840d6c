// A file that is dropped on any page is opened: a scenario as a session, anything else in the editor that says what is wrong.

import { refusal, watchDrops } from "./editor/files.js";
import { say } from "./frames.js";

const form = document.getElementById("drop");

function tell(message) {
  if (!document.getElementById("notice")) {
    const place = Object.assign(document.createElement("div"), { id: "notice", className: "notice" });
    place.setAttribute("role", "status");
    document.body.append(place);
  }
  say(message);
}

watchDrops((file, files) => {
  const problem = refusal(file, Number(form.dataset.most));
  if (problem) {
    tell(problem);
    return;
  }
  form.elements.file.files = files;
  form.submit();
}, tell);
