"""The web app and the command line: `routes` -> `services` -> `engine`; `rendering` turns moments into contexts."""
