// The switch between light and dark, for pages that have little else to do.

import { toggleTheme } from "./figures/theme.js";

document.getElementById("theme").addEventListener("click", toggleTheme);
