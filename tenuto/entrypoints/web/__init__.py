"""`tenuto ui`: the pages of pages/ over HTTP, on this machine only. Judges who asks, asks show/, calls, answers."""
