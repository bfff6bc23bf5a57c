"""Where people, programs and hosts come in: translate, call, print. No rule about runs lives here."""
