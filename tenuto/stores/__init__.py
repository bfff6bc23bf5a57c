"""Where the journal is kept: one contract (tenuto.ports.Journal), several stores."""
