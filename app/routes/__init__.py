"""URLs: each route asks a service, has the answer rendered, and sends it."""
