"""The subcommands of `rejoinder`, one a module."""
