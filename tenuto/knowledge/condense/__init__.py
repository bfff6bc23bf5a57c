"""From a text to the lines of it that matter: outline, topics, declarations, edge cases, parts."""
