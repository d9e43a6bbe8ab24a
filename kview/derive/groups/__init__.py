"""Consumer, streams, share, Connect and simple groups: their offsets, verdicts, events and findings."""
