"""`python -m bpa_ppl` is the command `bpa`."""

from bpa_ppl.cli import main

if __name__ == "__main__":
    main()
