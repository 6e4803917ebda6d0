// Shows the API's own description. A file of its own, as the page allows no script that stands in it.
window.addEventListener("load", () => {
  SwaggerUIBundle({
    url: new URL("openapi.json", document.baseURI).href,
    dom_id: "#swagger-ui",
    deepLinking: true,
    layout: "BaseLayout",
    presets: [SwaggerUIBundle.presets.apis],
    validatorUrl: null, // no badge, which another host would draw
    oauth2RedirectUrl: null,
  });
});
