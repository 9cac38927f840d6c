// Starts Swagger UI: our own document, nothing from another host. Its dark mode is a class on <html>.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const shade = () => root.classList.toggle("dark-mode", root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
system.addEventListener("change", shade);
shade();

SwaggerUIBundle({
  domNode: document.getElementById("docs"),
  url: "openapi.json",
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: -1,
  docExpansion: "list",
});
