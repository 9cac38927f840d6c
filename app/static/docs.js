// Starts Swagger UI: our own document, nothing from another host.
const docs = document.getElementById("docs");
SwaggerUIBundle({
  domNode: docs,
  url: "openapi.json",
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
});
