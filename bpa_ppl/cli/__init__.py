"""The command `bpa`: subcommands on files, without logic of their own."""
