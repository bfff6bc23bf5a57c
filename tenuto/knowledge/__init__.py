"""What a project knows: its artifacts, its memory, and how to find the part an agent needs."""
