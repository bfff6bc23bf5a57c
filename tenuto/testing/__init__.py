"""What ships for tests: scripted agents, fakes, contracts, crash points. Nothing in Tenuto imports it."""
