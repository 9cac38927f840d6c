// A classic script in <head>, so that the chosen theme stands before the first paint.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage is off: the system's theme stays */ }
document.documentElement.classList.add("js");
