"""Memory growth of a callable over epochs, against its tolerance."""
