"""The phone bridge: carriers' media sockets into calls. `mounting.mount` puts it on the server."""
