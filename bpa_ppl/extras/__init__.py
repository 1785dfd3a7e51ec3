"""What a newcomer may ignore: nothing in the core imports it.

Its commands and components are entry points, as those of any other package would be: converters of
files, the demos, judges, phrase tables, and tuners.
"""
