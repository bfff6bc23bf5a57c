"""Agent programs that call us: how each names its events and fields, and how it wants to be answered."""
