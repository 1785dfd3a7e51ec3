"""The data of the demo, installed as `bpa_ppl.demo_data`; README.md says what it is."""
