"""The promises of docs/promises.md, each with the program that tries to break it. `make prove` runs all of them."""
