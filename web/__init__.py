"""The ways in: the websocket server, the realtime protocol, the pages and the command line."""
